package namesearch

import (
	"bytes"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// edge is how many bytes are compared at each end of a longer text.
	edge = 512
	// gap stands for the middle of a text that is cut, and separator between the
	// names of a block. Neither byte occurs in UTF-8.
	gap       = 0xfe
	separator = 0xff
)

// searchText returns the form in which texts are compared: folded, valid UTF-8
// but for a gap. It is s itself where that is so already.
func searchText(s string) string {
	if len(s) <= 2*edge {
		return fold(s)
	}
	head, tail := edge, len(s)-edge
	// Do not split a rune; more than three steps would be no rune.
	for i := 0; i < utf8.UTFMax-1 && !utf8.RuneStart(s[head]); i++ {
		head--
	}
	for i := 0; i < utf8.UTFMax-1 && !utf8.RuneStart(s[tail]); i++ {
		tail++
	}
	return fold(s[:head]) + string([]byte{gap}) + fold(s[tail:])
}

func fold(s string) string { return strings.Map(foldRune, s) }

// foldRune returns the same rune for all that differ only in case: the first
// lower-case one, so that most names are their own folding.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least, lower := r, rune(unicode.MaxRune+1)
	for f := r; ; {
		least = min(least, f)
		if f < lower && unicode.IsLower(f) {
			lower = f
		}
		if f = unicode.SimpleFold(f); f == r {
			break
		}
	}
	if lower <= unicode.MaxRune {
		return lower
	}
	return least
}

// endsSegment says which bytes stand between the segments of a name.
var endsSegment = [256]bool{'/': true, '.': true, ':': true, '_': true, '-': true}

// segments yields where the segments of a name start.
func segments(name []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		if len(name) == 0 || !yield(0) {
			return
		}
		for i, c := range name[:len(name)-1] {
			if endsSegment[c] && !yield(i+1) {
				return
			}
		}
	}
}

// lastSegment returns where the last segment of a name starts: at its end, if
// the name ends like a segment does.
func lastSegment(name []byte) int { return bytes.LastIndexAny(name, "/.:_-") + 1 }
