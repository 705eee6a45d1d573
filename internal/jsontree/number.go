package jsontree

import (
	"strconv"
)

const (
	// maxExponent and maxDigits bound a number as its sender writes it.
	maxExponent = 400
	maxDigits   = 1000
	// maxPlain is how many digits an integral value may have to be spelled
	// without an exponent.
	maxPlain = 40
)

// numberLimits bounds the exponent and the number of digits of a literal.
type numberLimits struct{ exponent, digits int }

var (
	written = numberLimits{maxExponent, maxDigits}
	// rewritten is what canonical spellings stay within: moving the point to
	// the first digit can add all digits to the exponent, and an exponent of
	// up to four digits can come in.
	rewritten = numberLimits{maxExponent + maxDigits, maxDigits + 4}
)

// CanonicalNumber gives the canonical spelling of a JSON number
// (docs/identity.md): equal values have equal spellings, different values
// different ones, exactly and not only as far as a double tells them apart.
//
// An integral value of up to 40 digits is spelled in plain digits. Any other
// is spelled as RFC 8785 spells its nearest double, if that spelling is exactly
// the same value, else as d.ddde±x without trailing zeros. Zero is "0", without
// a sign. A literal that is no JSON number, has an exponent beyond ±400 or more
// than 1,000 digits (all of them count, the exponent's and leading zeros too)
// gives a *SyntaxError, whose offset is in the literal. These limits are on the
// literal: the spelling of a very long one can lie beyond them, see
// Limits.Canonical.
func CanonicalNumber(literal string) (string, error) {
	n, reason := scanNumber(literal, 0, written)
	if reason == "" && n.end != len(literal) {
		reason = "unexpected " + describe(literal, n.end) + " in a number"
	}
	if reason != "" {
		return "", &SyntaxError{Offset: n.end, Reason: reason}
	}
	if n.plain() {
		return literal, nil
	}
	var digits, out [64]byte
	text, _ := appendNumber(out[:0], digits[:0], literal, n)
	if string(text) == literal {
		return literal, nil
	}
	return string(text), nil
}

// number reads the number at p.i.
func (p *parser) number() (string, bool) {
	n, reason := scanNumber(p.s, p.i, p.numbers)
	if reason != "" {
		return "", p.fail(n.end, reason)
	}
	literal := p.s[n.start:n.end]
	p.i = n.end
	if n.plain() {
		return literal, true
	}
	p.buf, p.digits = appendNumber(p.buf[:0], p.digits[:0], p.s, n)
	if string(p.buf) == literal {
		return literal, true
	}
	return p.keep(p.buf), true
}

// numberParts are the parts of a number literal, as indices in the text around
// it: the sign if any is at start, then int, frac and exponent.
type numberParts struct {
	start, end       int
	intFrom, intTo   int
	fracFrom, fracTo int
	exp              int
	hasExp           bool
	minusZero        bool
}

// plain says that the literal is its own canonical spelling: an integer of
// few digits, not -0 (other leading zeros are no JSON).
func (n *numberParts) plain() bool {
	return n.fracTo == n.fracFrom && !n.hasExp && n.intTo-n.intFrom <= maxPlain && !n.minusZero
}

func digitsEnd(s string, i int) int {
	for i < len(s) && s[i]-'0' <= 9 {
		i++
	}
	return i
}

// scanNumber finds the parts of the number at s[i]. If there is none the
// reason is not empty and end is the index of the fault.
func scanNumber(s string, i int, lim numberLimits) (n numberParts, reason string) {
	n.start = i
	if i < len(s) && s[i] == '-' {
		i++
	}
	n.intFrom = i
	i = digitsEnd(s, i)
	n.intTo, n.end = i, i
	digits := i - n.intFrom
	if digits == 0 {
		return n, "unexpected " + describe(s, i) + " in a number, want a digit"
	}
	if s[n.intFrom] == '0' && digits > 1 {
		n.end = n.intFrom
		return n, "leading zero in a number"
	}
	n.minusZero = n.intFrom > n.start && s[n.intFrom] == '0'
	if i < len(s) && s[i] == '.' {
		n.fracFrom = i + 1
		i = digitsEnd(s, i+1)
		n.fracTo, n.end = i, i
		if i == n.fracFrom {
			return n, "unexpected " + describe(s, i) + " in a number, want a digit"
		}
		digits += i - n.fracFrom
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		n.hasExp = true
		i++
		negative := i < len(s) && s[i] == '-'
		if negative || i < len(s) && s[i] == '+' {
			i++
		}
		from := i
		for i < len(s) && s[i]-'0' <= 9 {
			// Beyond the limit the value does not matter any more, only
			// that it cannot overflow.
			if n.exp <= lim.exponent {
				n.exp = n.exp*10 + int(s[i]-'0')
			}
			i++
		}
		n.end = i
		if i == from {
			return n, "unexpected " + describe(s, i) + " in a number, want a digit"
		}
		digits += i - from
		if n.exp > lim.exponent {
			n.end = n.start
			return n, "exponent of a number beyond ±" + strconv.Itoa(lim.exponent)
		}
		if negative {
			n.exp = -n.exp
		}
	}
	if digits > lim.digits {
		n.end = n.start
		return n, "number of more than " + strconv.Itoa(lim.digits) + " digits"
	}
	return n, ""
}

// appendNumber appends the canonical spelling of the number with parts n in s.
// It uses digits as scratch and gives it back, perhaps grown. Its cost is in
// the length of the literal, whatever the exponent.
func appendNumber(dst, digits []byte, s string, n numberParts) (text, scratch []byte) {
	digits = append(digits, s[n.intFrom:n.intTo]...)
	digits = append(digits, s[n.fracFrom:n.fracTo]...)
	scratch = digits[:0]
	// The value is 0.d1d2d3... times 10 to the power of point.
	point := n.intTo - n.intFrom + n.exp
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
		point--
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	if len(digits) == 0 {
		return append(dst, '0'), scratch
	}
	if s[n.start] == '-' {
		dst = append(dst, '-')
	}
	k := len(digits)
	switch {
	case k <= point && point <= maxPlain:
		dst = append(dst, digits...)
		for ; k < point; k++ {
			dst = append(dst, '0')
		}
	// ECMAScript writes 1e-6 up to 1e21 without an exponent, and anything
	// else just as the exact form below does. So only in this range does it
	// matter whether a double holds the value.
	case 0 < point && point <= 21 && isShortest(digits, point):
		dst = append(dst, digits[:point]...)
		dst = append(dst, '.')
		dst = append(dst, digits[point:]...)
	case -6 < point && point <= 0 && isShortest(digits, point):
		dst = append(dst, "0.00000"[:2-point]...)
		dst = append(dst, digits...)
	default:
		dst = append(dst, digits[0])
		if k > 1 {
			dst = append(dst, '.')
			dst = append(dst, digits[1:]...)
		}
		dst = append(dst, 'e')
		if point > 0 {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, int64(point-1), 10)
	}
	return dst, scratch
}

// isShortest says whether 0.d1d2d3... times 10 to the power of point, a
// moderate one, is the shortest decimal of the double nearest to it.
func isShortest(digits []byte, point int) bool {
	// Every decimal of 15 digits survives the way through a double, and no
	// double needs more than 17 to be told from all others.
	if len(digits) <= 15 {
		return true
	}
	if len(digits) > 17 {
		return false
	}
	var buf [48]byte
	b := append(buf[:0], "0."...)
	b = append(b, digits...)
	b = append(b, 'e')
	b = strconv.AppendInt(b, int64(point), 10)
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return false
	}
	var short [32]byte
	mantissa := strconv.AppendFloat(short[:0], f, 'e', -1, 64)
	// d.ddd...e±xx, and no other exponent can have the same digits here.
	k := len(digits)
	return len(mantissa) > k+1 && mantissa[0] == digits[0] && mantissa[k+1] == 'e' &&
		string(mantissa[2:k+1]) == string(digits[1:])
}
