package jsontree

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"sync/atomic"
)

// toFloat gives the double nearest to a canonical number, the greatest one of
// its sign if it is beyond all of them.
func toFloat(text string) float64 {
	// Integers of up to 15 digits are doubles.
	if i := digitsEnd(text, 0); i == len(text) && i <= 15 {
		n := 0
		for _, c := range []byte(text) {
			n = n*10 + int(c-'0')
		}
		return float64(n)
	}
	f, ok := hardFloat(text)
	if !ok {
		// An error is ErrRange, with an infinity, or means that the value was
		// made by hand and is no number: then f is 0.
		f, _ = strconv.ParseFloat(text, 64)
	}
	if math.IsInf(f, 0) {
		return math.Copysign(math.MaxFloat64, f)
	}
	return f
}

const (
	// easyDigits is how many digits strconv converts by a few multiplications.
	easyDigits = 19
	// subnormal is the decimal exponent from which on downwards a double can
	// lack bits.
	subnormal = -307
	// maxCanonicalExponent bounds the exponent of a canonical number, counted
	// from its last digit: see rewritten.
	maxCanonicalExponent = maxExponent + 2*maxDigits
)

// hardFloat converts the numbers d.ddde±x for which strconv.ParseFloat falls
// back on decimal long arithmetic, whose cost grows with the exponent: an array
// of "1e-320" would take it seconds per megabyte. It gives false for all
// others.
func hardFloat(text string) (float64, bool) {
	mantissa, exponent, found := strings.Cut(text, "e")
	if !found {
		return 0, false
	}
	e, err := strconv.Atoi(exponent)
	if err != nil || e > subnormal && len(mantissa) <= len("-.")+easyDigits {
		return 0, false
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, frac, _ := strings.Cut(digits, ".")
	e -= len(frac)
	if e < -maxCanonicalExponent || e > maxCanonicalExponent {
		return 0, false
	}
	num, ok := new(big.Int).SetString(whole+frac, 10)
	if !ok || num.Sign() <= 0 {
		return 0, false
	}
	f := nearest(num, e)
	if negative {
		f = -f
	}
	return f, true
}

// nearest gives the double nearest to num times 10 to the power of e, of two
// equally near ones the even one, +Inf if there is none. It may change num,
// which must be positive.
func nearest(num *big.Int, e int) float64 {
	den := pow10(0)
	if e >= 0 {
		num.Mul(num, pow10(e))
	} else {
		den = pow10(-e)
	}
	// m is the quotient in units of 2^unit: with 56 or 57 bits, more than the
	// 53 of a double by at least three; but the unit is never less than a
	// quarter of the least subnormal. Its last bit is set if anything is left
	// below it, which is all that rounding needs to know.
	const least = -1074 - 2
	unit := max(num.BitLen()-den.BitLen()-56, least)
	if unit < 0 {
		num.Lsh(num, uint(-unit))
	} else {
		den = new(big.Int).Lsh(den, uint(unit))
	}
	var rest big.Int
	num.QuoRem(num, den, &rest)
	m := num.Uint64()
	if rest.Sign() != 0 {
		m |= 1
	}
	if unit == least && m>>2 < 1<<52 {
		bits := m >> 2
		if low := m & 3; low == 3 || low == 2 && bits&1 == 1 {
			bits++ // into the normal doubles at the end, which follow on
		}
		return math.Float64frombits(bits)
	}
	return math.Ldexp(float64(m), unit)
}

// powers keeps the powers of ten that were asked for.
var powers [maxCanonicalExponent + 1]atomic.Pointer[big.Int]

func pow10(n int) *big.Int {
	if p := powers[n].Load(); p != nil {
		return p
	}
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
	powers[n].Store(p)
	return p
}
