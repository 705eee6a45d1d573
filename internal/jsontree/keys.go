package jsontree

import (
	"cmp"
	"slices"
	"strings"
)

// CompareKeys compares two strings (UTF-8, or WTF-8 for lone surrogates) by
// their UTF-16 code units, which is the order of members in RFC 8785. It
// gives -1, 0 or +1.
func CompareKeys(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n {
		return cmp.Compare(len(a), len(b))
	}
	x, y := a[i], b[i]
	// UTF-8 keeps code point order. UTF-16 differs from it only for code
	// points above U+FFFF (first byte 0xf0 and up), whose surrogates sort
	// below U+E000 to U+FFFF (0xee, 0xef) and among lone surrogates (0xed).
	// Those are first bytes of characters, never continuation bytes, so a
	// difference anywhere else is decided by the bytes.
	if (x >= 0xf0) != (y >= 0xf0) && x >= 0xed && y >= 0xed {
		return compareUnits(a[i:], b[i:])
	}
	return cmp.Compare(x, y)
}

// compareUnits compares unit by unit, from the start of a character.
func compareUnits(a, b string) int {
	var x, y units
	x.s, y.s = a, b
	for {
		u, okA := x.next()
		v, okB := y.next()
		switch {
		case !okA && !okB:
			return 0
		case !okA:
			return -1
		case !okB:
			return 1
		case u != v:
			return cmp.Compare(u, v)
		}
	}
}

// units reads the UTF-16 code units of a WTF-8 string.
type units struct {
	s   string
	low uint16 // second half of a pair that was begun, or 0
}

func (u *units) next() (uint16, bool) {
	if u.low != 0 {
		low := u.low
		u.low = 0
		return low, true
	}
	s := u.s
	switch {
	case s == "":
		return 0, false
	case s[0] >= 0xf0 && len(s) >= 4:
		u.s = s[4:]
		r := (uint32(s[0]&7)<<18 | uint32(s[1]&0x3f)<<12 | uint32(s[2]&0x3f)<<6 | uint32(s[3]&0x3f)) - 0x10000
		u.low = 0xdc00 | uint16(r&0x3ff)
		return 0xd800 | uint16(r>>10&0x3ff), true
	case s[0] >= 0xe0 && len(s) >= 3:
		u.s = s[3:]
		return uint16(s[0]&0xf)<<12 | uint16(s[1]&0x3f)<<6 | uint16(s[2]&0x3f), true
	case s[0] >= 0xc0 && len(s) >= 2:
		u.s = s[2:]
		return uint16(s[0]&0x1f)<<6 | uint16(s[1]&0x3f), true
	default:
		u.s = s[1:]
		return uint16(s[0]), true
	}
}

// smallObject is the size up to which plain loops beat sorting and searching
// algorithms.
const smallObject = 12

// members sorts the members of one object by key and resolves duplicates. It
// sorts indices, so that each item moves once, to its final place.
func (p *parser) members(raw []Item) []Item {
	compare := strings.Compare
	if p.wide {
		compare = CompareKeys
	}
	order := p.order[:0]
	sorted := true
	for i := range raw {
		order = append(order, int32(i))
		if i > 0 && sorted && compare(raw[i-1].Key, raw[i].Key) >= 0 {
			sorted = false
		}
	}
	p.order = order
	if sorted {
		items := p.take(len(raw))
		copy(items, raw)
		return items
	}
	if len(raw) <= smallObject {
		for i := 1; i < len(order); i++ {
			x := order[i]
			j := i
			for j > 0 && compare(raw[order[j-1]].Key, raw[x].Key) > 0 {
				order[j] = order[j-1]
				j--
			}
			order[j] = x
		}
	} else {
		slices.SortFunc(order, func(x, y int32) int {
			// The index breaks ties: of equal keys the last in the text
			// must come last, and the sort is not a stable one.
			return cmp.Or(compare(raw[x].Key, raw[y].Key), cmp.Compare(x, y))
		})
	}
	kept := order[:0]
	for i, x := range order {
		if i+1 < len(order) && raw[x].Key == raw[order[i+1]].Key {
			p.stats.DuplicateKeys++
			continue
		}
		kept = append(kept, x)
	}
	items := p.take(len(kept))
	for i, x := range kept {
		items[i] = raw[x]
	}
	return items
}
