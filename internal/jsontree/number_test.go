package jsontree

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestCanonicalNumber(t *testing.T) {
	nines := strings.Repeat("9", 40)
	// Each line: the canonical spelling, then others of the same value.
	for _, spellings := range [][]string{
		{"0", "-0", "0.0", "-0.0", "0e0", "-0e5", "0E-400", "0.000e+400", "-0.00e-00"},
		{"1", "1.0", "1e0", "10e-1", "0.1e1", "100E-2", "1.000", "1e+00"},
		{"-1", "-1.0", "-1e0", "-0.1E+1"},
		{"10", "1e1", "1E+1", "10.0", "100e-1", "1e001"},
		{"123", "1.23e2", "12300e-2", "123.00"},
		{"1000000000000000000000", "1e21", "1.0e21", "1E+21", "0.001e24"},
		{"9007199254740993", "9.007199254740993e15", "9007199254740993.0"},
		{"18446744073709551616", "1.8446744073709551616e19"},
		{nines, nines + ".0", nines + "0e-1", "0." + nines + "e40"},
		{"1" + strings.Repeat("0", 39), "1e39"},
		{"-1" + strings.Repeat("0", 39), "-1e39"},
		// 41 digits: a double spells it exactly, or not.
		{"1e+40", "1" + strings.Repeat("0", 40), "1e40", "0.1e41"},
		{"9.9999999999999999999999999999999999999999e+40", nines + "9", nines + "9.0"},
		{"1e+400", "1e400", "10e399", "1" + strings.Repeat("0", 400)},
		{"1.5e+400", "15e399", "1.50E+400"},
		{"1e-400", "1e-400", "0.1e-399"},
		{"-1e-400", "-1.0e-400"},
		{"1.7976931348623157e+308", "17976931348623157e292"},
		{"5e-324", "0.5e-323"},
		{"4.9406564584124654e-324", "49406564584124654e-340"},
		{"1e-330"},
		// Fractions.
		{"0.1", "0.10", "1e-1", "1E-01", "0.01e1", "100e-3"},
		{"-0.1", "-0.10", "-1e-1"},
		{"0.5", "5e-1", "0.50"},
		{"1.5", "15e-1", "1.50"},
		{"0.000001", "1e-6", "0.0000010"},
		{"1e-7", "0.0000001", "1e-07", "1.0e-7"},
		{"1.5e-7", "0.00000015"},
		{"0.0000015", "1.5e-6"},
		{"123456.789", "1.23456789e5"},
		{"24504.900000000005", "24504.9000000000050", "2.4504900000000005e4"},
		{"0.30000000000000004", "3.0000000000000004e-1"},
		{"100000000000000.1", "1.000000000000001e14"},
		{"1.0000000000000002", "1.00000000000000020"},
		// No double has these as its shortest decimal.
		{"1.0000000000000001e+0", "1.0000000000000001", "1.00000000000000010", "10000000000000001e-16"},
		{"1.000000000000000055511151231257827e-1", "0.1000000000000000055511151231257827"},
		{"9.007199254740993001e+15", "9007199254740993.001"},
		{"-1.23456789012345678901e+0", "-1.23456789012345678901"},
		// An integral value never takes that form below 41 digits.
		{"100000000000000005000", "1.00000000000000005e20"},
	} {
		want := spellings[0]
		for _, in := range spellings {
			got, err := CanonicalNumber(in)
			if err != nil || got != want {
				t.Errorf("%.60s: got %s, %v, want %s", in, got, err, want)
			}
			if got := mustParse(t, in).Text; got != want {
				t.Errorf("Parse(%.60s): got %s, want %s", in, got, want)
			}
			if got := mustParse(t, "["+in+"]").Items[0].Value.Text; got != want {
				t.Errorf("Parse([%.60s]): got %s, want %s", in, got, want)
			}
		}
	}
}

func TestCanonicalNumberLimits(t *testing.T) {
	d1000 := strings.Repeat("7", 1000)
	for in, want := range map[string]string{
		d1000:                  "7." + d1000[1:] + "e+999",
		"-" + d1000[1:] + ".0": "-7." + d1000[2:] + "e+998",
		d1000[3:] + "e400":     "7." + d1000[4:] + "e+1396",
		"0." + strings.Repeat("0", 995) + "1e-40": "1e-1036", // 999 digits
	} {
		got, err := CanonicalNumber(in)
		if err != nil || got != want {
			t.Errorf("%.20s: got %.40s, %v", in, got, err)
		}
		// A sender may not write all that, but it can be read back.
		if _, err := CanonicalNumber(got); err == nil {
			t.Errorf("%.20s: %.40s is within the limits as written", in, got)
		}
		if v, _, err := Parse([]byte(got), Limits{Canonical: true}); err != nil || v.Text != got {
			t.Errorf("%.20s: %.40s is not read back: %v", in, got, err)
		}
	}
	for in, offset := range map[string]int{
		"": 0, "-": 1, "+1": 0, "01": 0, "-01": 1, "1.": 2, ".1": 0, "1e": 2, "1e+": 3, "1x": 1, " 1": 0, "1 ": 1,
		"NaN": 0, "Infinity": 0, "-Infinity": 1, "0x1": 1, "1_000": 1, "1e5.5": 3, "1e401": 0, "-1e-401": 0,
		"1e999999999999999999999": 0, d1000 + "7": 0, "0." + d1000: 0, "é": 0,
		// The digits of the exponent count.
		d1000[2:] + "e400": 0,
	} {
		got, err := CanonicalNumber(in)
		var e *SyntaxError
		if got != "" || !errors.As(err, &e) || e.Offset != offset || e.Pointer != "" || e.Reason == "" {
			t.Errorf("%.20q: got %q, %#v", in, got, err)
		}
	}
}

// TestNumberAlias checks that the usual numbers take no memory of their own.
func TestNumberAlias(t *testing.T) {
	for _, in := range []string{"0", "7", "-12", "1234567890123456789012345678901234567890", "0.5", "-12.75", "1e+40", "1.5e-7"} {
		if n := testing.AllocsPerRun(100, func() { _, _ = CanonicalNumber(in) }); n != 0 {
			t.Errorf("%s: %v allocations", in, n)
		}
	}
}

func parseRat(t testing.TB, s string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("no number: %q", s)
	}
	return r
}

var scientific = regexp.MustCompile(`^-?[1-9](\.[0-9]*[1-9])?e(\+(0|[1-9][0-9]*)|-[1-9][0-9]*)$`)

// checkCanonical checks got against the rule for literal, by big rationals.
func checkCanonical(t testing.TB, literal, got string) {
	t.Helper()
	exact := parseRat(t, literal)
	if parseRat(t, got).Cmp(exact) != 0 {
		t.Fatalf("%s: %s is another value", literal, got)
	}
	if again, _, err := Parse([]byte(got), Limits{Canonical: true}); err != nil || again.Text != got {
		t.Fatalf("%s: %s becomes %v, %v", literal, got, again, err)
	}
	if exact.IsInt() {
		if digits := exact.Num().String(); len(strings.TrimPrefix(digits, "-")) <= 40 {
			if got != digits {
				t.Fatalf("%s: got %s, want %s", literal, got, digits)
			}
			return
		}
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err == nil {
		// encoding/json writes doubles as ECMAScript does.
		short, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if parseRat(t, string(short)).Cmp(exact) == 0 {
			if got != string(short) {
				t.Fatalf("%s: got %s, want %s", literal, got, short)
			}
			return
		}
	}
	if !scientific.MatchString(got) {
		t.Fatalf("%s: %s is no d.ddde±x", literal, got)
	}
}

func checkFloat(t testing.TB, literal, text string) {
	t.Helper()
	want, _ := strconv.ParseFloat(literal, 64)
	if math.IsInf(want, 0) {
		want = math.Copysign(math.MaxFloat64, want)
	}
	if got := toFloat(text); got != want {
		t.Fatalf("%s (%s): got the double %v, want %v", literal, text, got, want)
	}
}

// TestNumbersNearDoubles tries the decimals at, next to and halfway between
// doubles of all sizes.
func TestNumbersNearDoubles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	n := 4000
	if testing.Short() {
		n = 500
	}
	for range n {
		bits := rnd.Uint64()
		switch rnd.IntN(4) {
		case 0: // moderate
			bits = bits&^(0x7ff<<52) | uint64(1023-30+rnd.IntN(110))<<52
		case 1: // subnormal, and the first normal ones
			bits &^= 0x7fe << 52
		}
		f := math.Float64frombits(bits)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		literals := []string{
			strconv.FormatFloat(f, 'e', -1, 64),
			strconv.FormatFloat(f, 'e', 14+rnd.IntN(8), 64),
		}
		if math.Abs(f) < 1e30 && math.Abs(f) > 1e-30 {
			literals = append(literals, strconv.FormatFloat(f, 'f', rnd.IntN(25), 64))
		}
		if next := math.Nextafter(f, math.Inf(1)); !math.IsInf(next, 0) {
			half := new(big.Float).SetPrec(100).SetFloat64(f)
			half.Add(half, new(big.Float).SetFloat64(next)).Quo(half, big.NewFloat(2))
			literals = append(literals,
				half.Text('e', 16), half.Text('e', 19), half.Text('e', 30),
				half.Text('e', 780), strings.Replace(half.Text('e', 780), "e", "1e", 1))
		}
		for _, literal := range literals {
			got, err := CanonicalNumber(literal)
			if err != nil {
				t.Fatalf("%s: %v", literal, err)
			}
			checkCanonical(t, literal, got)
			checkFloat(t, literal, got)
		}
	}
}

func TestToFloat(t *testing.T) {
	for in, want := range map[string]float64{
		"0": 0, "7": 7, "255": 255, "256": 256, "999999999999999": 999999999999999, "1000000000000001": 1000000000000001,
		"-1": -1, "0.5": 0.5, "1e+400": math.MaxFloat64, "-1e+400": -math.MaxFloat64, "1e-400": 0,
		"1e-323": 1e-323, "5e-324": 5e-324, "2e-324": 0, "2.4703282292062327e-324": 0, "2.4703282292062328e-324": 5e-324,
		"2.2250738585072011e-308": 2.2250738585072011e-308, "2.2250738585072014e-308": 2.2250738585072014e-308,
		"1.7976931348623158e+308": math.MaxFloat64, "1.797693134862315808e+308": math.MaxFloat64, "9e+1398": math.MaxFloat64,
		// Only a program can make these; they must not panic or take long.
		"": 0, "x": 0, "1e": 0, "e5": 0, "--1e-400": 0, "1.x23456789012345678901e-300": 0, "0e-400": 0,
		"1e-999999999": 0, "1e+999999999": math.MaxFloat64, "1e-99999999999999999999": 0,
	} {
		if got := toFloat(in); got != want {
			t.Errorf("%q: got %v, want %v", in, got, want)
		}
	}
}

func FuzzCanonicalNumber(f *testing.F) {
	for _, s := range []string{
		"0", "-0e5", "1e21", "1.0e21", "0.10", "1e-7", "24504.900000000005", "1e400", "1e-400", "1e401",
		"1.0000000000000001", "9007199254740993.001", "123456789012345678901234567890123456789012",
		"4.9406564584124654e-324", "2.2250738585072011e-308", "1.797693134862315808e308", "01", "1.", "-", "1e+",
		"0.00000099999999999999995", "0.000001000000000000000049", "999999999999999999999.5", "1e-323",
		"10000000e397", "0." + strings.Repeat("0", 900) + "1e-399", strings.Repeat("7", 997) + "e400",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, literal string) {
		got, err := CanonicalNumber(literal)
		isNumber := json.Valid([]byte(literal)) && strings.Trim(literal, "-0123456789.eE+") == ""
		if err != nil {
			var e *SyntaxError
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(literal) {
				t.Fatalf("%q: %#v", literal, err)
			}
			if isNumber && !strings.HasPrefix(e.Reason, "exponent of a number beyond") && !strings.HasPrefix(e.Reason, "number of more than") {
				t.Fatalf("%q: %v", literal, err)
			}
			return
		}
		if !isNumber {
			t.Fatalf("%q: got %s, though it is no number", literal, got)
		}
		checkCanonical(t, literal, got)
		checkFloat(t, literal, got)
	})
}
