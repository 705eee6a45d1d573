package jsontree

import (
	"math/bits"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Byte-wise tests on eight bytes at once.
const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// load8 reads s[i:i+8] as a little-endian word; the compiler makes one load
// of it.
func load8(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// plainEnd gives the index of the first byte at or after i that is a quote, a
// backslash, a control character or not ASCII.
func plainEnd(s string, i int) int {
	for i+8 <= len(s) {
		w := load8(s, i)
		quote := w ^ lows*'"'
		slash := w ^ lows*'\\'
		// Each term sets the top bit of the bytes it is about. A borrow can
		// set it wrongly too, but only above a byte where it is right, and
		// only the lowest one is used.
		hit := (w | (w - lows*0x20) | (quote - lows) | (slash - lows)) & highs
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
		i += 8
	}
	for i < len(s) {
		c := s[i]
		if c == '"' || c == '\\' || c < 0x20 || c >= utf8.RuneSelf {
			break
		}
		i++
	}
	return i
}

// str reads the string whose opening quote is at p.i.
func (p *parser) str() (string, bool) {
	start := p.i + 1
	end := plainEnd(p.s, start)
	if end < len(p.s) && p.s[end] == '"' {
		p.i = end + 1
		return p.s[start:end], true
	}
	return p.strSlow(start, end)
}

// strSlow reads a string that is not plain ASCII; s[start:i] was found plain.
func (p *parser) strSlow(start, i int) (string, bool) {
	s := p.s
	buf := p.buf[:0]
	from := start // where the text that is not yet in buf begins
	var escaped, lone, combining bool
	for {
		// Text in other scripts comes in runs: look for the end of plain text
		// only where there is some.
		if i < len(s) && s[i] < utf8.RuneSelf {
			i = plainEnd(s, i)
		}
		if i >= len(s) {
			return "", p.fail(i, "unexpected end of input in a string")
		}
		c := s[i]
		if c == '"' {
			break
		}
		if c < 0x20 {
			return "", p.fail(i, "control "+describe(s, i)+" in a string")
		}
		var r rune
		if c != '\\' {
			var n int
			r, n = utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				return "", p.fail(i, "invalid UTF-8 in a string")
			}
			i += n
		} else {
			escaped = true
			buf = append(buf, s[from:i]...)
			var ok bool
			if r, i, ok = p.escape(i); !ok {
				return "", false
			}
			if isSurrogate(r) {
				lone = true
				p.stats.LoneSurrogates++
				buf = appendSurrogate(buf, r)
			} else {
				buf = utf8.AppendRune(buf, r)
			}
			from = i
		}
		combining = combining || r >= firstCombining
		p.wide = p.wide || r > 0xffff
	}
	p.i = i + 1
	if !escaped {
		raw := s[start:i]
		if combining && !isNFC(raw) {
			raw = normalize(raw)
		}
		return raw, true
	}
	buf = append(buf, s[from:i]...)
	p.buf = buf
	switch {
	case !combining:
		return p.keep(buf), true
	case lone:
		return normalizeWTF8(string(buf)), true
	case norm.NFC.IsNormal(buf):
		return p.keep(buf), true
	default:
		return normalize(string(buf)), true
	}
}

// keep copies b into the current chunk of text.
func (p *parser) keep(b []byte) string {
	if p.text.Cap()-p.text.Len() < len(b) {
		if len(b) > 1<<12 {
			return string(b)
		}
		// Chunks are small at first, so that one odd string in a document
		// costs little, and grow with their number.
		size := max(len(b), min(max(64, 2*p.text.Cap()), 1<<14))
		p.text = strings.Builder{}
		p.text.Grow(size)
	}
	from := p.text.Len()
	p.text.Write(b)
	return p.text.String()[from:]
}

// escape reads the escape at s[i], a backslash, and gives the code point and
// the index after it. A surrogate that is not half of a pair is given as it
// is.
func (p *parser) escape(i int) (rune, int, bool) {
	s := p.s
	if i+1 >= len(s) {
		return 0, i, p.fail(len(s), "unexpected end of input in a string")
	}
	switch s[i+1] {
	case '"':
		return '"', i + 2, true
	case '\\':
		return '\\', i + 2, true
	case '/':
		return '/', i + 2, true
	case 'b':
		return '\b', i + 2, true
	case 'f':
		return '\f', i + 2, true
	case 'n':
		return '\n', i + 2, true
	case 'r':
		return '\r', i + 2, true
	case 't':
		return '\t', i + 2, true
	case 'u':
	default:
		return 0, i, p.fail(i, `invalid escape in a string`)
	}
	r, ok := hex4(s, i+2)
	if !ok {
		return 0, i, p.fail(i, `invalid \u escape in a string`)
	}
	i += 6
	if r < 0xd800 || r > 0xdbff || i+1 >= len(s) || s[i] != '\\' || s[i+1] != 'u' {
		return r, i, true
	}
	// What follows a first half may be anything; if it is no second half it
	// is read on its own, where a fault in it is found.
	low, ok := hex4(s, i+2)
	if !ok || low < 0xdc00 || low > 0xdfff {
		return r, i, true
	}
	return 0x10000 + (r-0xd800)<<10 + (low - 0xdc00), i + 6, true
}

func hex4(s string, i int) (rune, bool) {
	if i+4 > len(s) {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[i : i+4]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

func isSurrogate(r rune) bool { return r >= 0xd800 && r <= 0xdfff }

// appendSurrogate writes a lone surrogate as WTF-8 does: by the pattern of
// UTF-8, which itself refuses surrogates.
func appendSurrogate(dst []byte, r rune) []byte {
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0xbf, 0x80|byte(r)&0xbf)
}

// surrogateAt gives the lone surrogate whose WTF-8 bytes are at s[i].
func surrogateAt(s string, i int) (rune, bool) {
	if i+3 > len(s) || s[i] != 0xed || s[i+1] < 0xa0 || s[i+1] > 0xbf || s[i+2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(s[i+1]&0x3f)<<6 | rune(s[i+2]&0x3f), true
}
