package namesearch

import (
	"encoding/binary"
	"slices"
)

// gramKind says what a gram is of.
type gramKind uint8

// The kinds of grams.
const (
	nameGram      gramKind = iota // three bytes of a name
	spaceGram                     // three bytes of a namespace
	startGram                     // the first one, two or three bytes of a name
	segmentGram                   // the same of a segment
	wholeGram                     // the hash of a name
	lastGram                      // the hash of a last segment
	namespaceGram                 // the hash of a namespace, not folded
	kindGram                      // the hash of a kind of entity
)

// gram is a feature that names have and queries look for.
type gram struct {
	kind  gramKind
	value uint32
}

// slotBits sizes the table of postings. Two grams in a slot cost a look at
// blocks in vain, no hit.
const slotBits = 17

func (g gram) slot() uint64 {
	return (uint64(g.kind)<<32 | uint64(g.value)) * 0x9e3779b97f4a7c15 >> (64 - slotBits)
}

// trigrams calls add for each three bytes of text.
func trigrams(kind gramKind, text []byte, add func(gram)) {
	for i := 2; i < len(text); i++ {
		add(gram{kind, uint32(text[i-2]) | uint32(text[i-1])<<8 | uint32(text[i])<<16})
	}
}

// prefixes calls add for the first one, two and three bytes of text.
func prefixes(kind gramKind, text []byte, add func(gram)) {
	value := uint32(0)
	for i := range min(3, len(text)) {
		value |= uint32(text[i]) << (8 * i)
		add(gram{kind, value})
	}
}

// prefixGram is the longest of the prefixes of text.
func prefixGram(kind gramKind, text []byte) (g gram) {
	prefixes(kind, text, func(longer gram) { g = longer })
	return g
}

// posting is the ascending numbers of blocks, as uvarints of how many were left
// out before each. next is the last one plus one.
type posting struct {
	list []byte
	next uint32
}

// postings is a list for each slot, nil before the first.
type postings []posting

func (ps *postings) add(g gram, n uint32) {
	if *ps == nil {
		*ps = make(postings, 1<<slotBits)
	}
	if p := &(*ps)[g.slot()]; p.next <= n {
		// In smaller steps than append's: lists are most of what an index adds to names.
		if len(p.list)+binary.MaxVarintLen32 > cap(p.list) {
			p.list = append(make([]byte, 0, len(p.list)*17/16+8), p.list...)
		}
		p.list = binary.AppendUvarint(p.list, uint64(n-p.next))
		p.next = n + 1
	}
}

// list returns a snapshot of a list: what is appended later is behind its end.
func (ps postings) list(g gram) []byte {
	if ps == nil {
		return nil
	}
	return ps[g.slot()].list
}

// maxLists is how many lists are intersected for one word. The shortest ones
// leave little for the others to take away.
const maxLists = 8

// lists returns the shortest lists of the trigrams of word. None, for a word of
// less than three bytes, says nothing of any block.
func (ps postings) lists(kind gramKind, word []byte) (lists [][]byte) {
	trigrams(kind, word, func(g gram) { lists = append(lists, ps.list(g)) })
	slices.SortFunc(lists, func(a, b []byte) int { return len(a) - len(b) })
	return lists[:min(len(lists), maxLists)]
}

// bitset is a set of numbers of sealed blocks.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func fullBitset(n int) bitset {
	s := newBitset(n)
	for i := range s {
		s[i] = ^uint64(0)
	}
	return s
}

func (s bitset) has(n uint32) bool { return s[n/64]>>(n%64)&1 != 0 }
func (s bitset) set(n uint32)      { s[n/64] |= 1 << (n % 64) }

func (s bitset) and(t bitset) bitset {
	for i := range s {
		s[i] &= t[i]
	}
	return s
}

func (s bitset) or(t bitset) bitset {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

// setOf returns the numbers in a list, of n blocks.
func setOf(list []byte, n int) bitset {
	s := newBitset(n)
	for next := uint64(0); len(list) > 0; next++ {
		skipped, used := binary.Uvarint(list)
		list = list[used:]
		next += skipped
		s.set(uint32(next))
	}
	return s
}

// inAll returns the numbers that are in each of the lists.
func inAll(lists [][]byte, n int) bitset {
	s := fullBitset(n)
	for _, list := range lists {
		s.and(setOf(list, n))
	}
	return s
}

// entrySet is an open-addressing set of references to items, by the hash of
// their IDs: a sixth of what a map takes.
type entrySet struct {
	table []uint32 // reference plus one; 0 is free
	n     int
}

// has reports whether a reference under hash is the one.
func (s *entrySet) has(hash uint64, is func(ref uint32) bool) bool {
	if s.n == 0 {
		return false
	}
	i := s.find(hash, is)
	return s.table[i] != 0
}

func (s *entrySet) find(hash uint64, is func(ref uint32) bool) uint64 {
	mask := uint64(len(s.table) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if s.table[i] == 0 || is(s.table[i]-1) {
			return i
		}
	}
}

// add adds a reference that the set has not. hashOf gives the hash of one that
// it has, to make room.
func (s *entrySet) add(hash uint64, ref uint32, hashOf func(ref uint32) uint64) {
	free := func(uint32) bool { return false }
	if s.n >= len(s.table)*3/4 {
		old := s.table
		s.table = make([]uint32, max(64, 2*len(old)))
		for _, r := range old {
			if r != 0 {
				s.table[s.find(hashOf(r-1), free)] = r
			}
		}
	}
	s.table[s.find(hash, free)] = ref + 1
	s.n++
}
