package jsontree

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// firstCombining is the first code point that normalisation can change or
// join to the one before it: text below it is in NFC as it stands.
const firstCombining = 0x300

func isNFC(s string) bool { return norm.NFC.IsNormalString(s) }

// joiner is U+034F COMBINING GRAPHEME JOINER.
const joiner = "\u034f"

// normalize gives the NFC of valid UTF-8.
//
// The norm package breaks runs of more than 30 combining marks with a joiner
// (Stream-Safe Text Format, UAX #15), which NFC itself and other languages do
// not: the same text must get the same identity in all of them. Normalising
// neither adds nor removes joiners otherwise, so their number tells.
func normalize(s string) string {
	n := norm.NFC.String(s)
	if strings.Count(n, joiner) == strings.Count(s, joiner) {
		return n
	}
	return normalizeLong(s)
}

// normalizeLong is NFC by its definition (UAX #15): decompose, order the
// marks, compose. The norm package supplies what it says about single
// characters and pairs.
func normalizeLong(s string) string {
	type char struct {
		r   rune
		ccc uint8
	}
	var chars []char
	for _, r := range s {
		for _, d := range norm.NFD.String(string(r)) {
			chars = append(chars, char{d, norm.NFD.PropertiesString(string(d)).CCC()})
		}
	}
	for i := 0; i < len(chars); {
		j := i + 1
		if chars[i].ccc != 0 {
			for j < len(chars) && chars[j].ccc != 0 {
				j++
			}
			slices.SortStableFunc(chars[i:j], func(a, b char) int { return cmp.Compare(a.ccc, b.ccc) })
		}
		i = j
	}
	out := chars[:0]
	starter := -1 // index in out of the last starter
	for _, c := range chars {
		if starter >= 0 {
			last := out[len(out)-1]
			// A mark reaches the starter if nothing that stayed behind it
			// has the same or a greater class.
			if len(out)-1 == starter || last.ccc != 0 && last.ccc < c.ccc {
				pair := []rune(norm.NFC.String(string([]rune{out[starter].r, c.r})))
				if len(pair) == 1 {
					out[starter].r = pair[0]
					continue
				}
			}
		}
		if c.ccc == 0 {
			starter = len(out)
		}
		out = append(out, c)
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, c := range out {
		b.WriteRune(c.r)
	}
	return b.String()
}

// normalizeWTF8 normalises the runs of valid UTF-8 between lone surrogates,
// which the norm package must not see: it knows no such characters.
func normalizeWTF8(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	from := 0
	for i := 0; i < len(s); {
		if _, ok := surrogateAt(s, i); !ok {
			i++
			continue
		}
		b.WriteString(normalize(s[from:i]))
		b.WriteString(s[i : i+3])
		i += 3
		from = i
	}
	b.WriteString(normalize(s[from:]))
	return b.String()
}
