package jsontree

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

const (
	loneHigh = "\xed\xa0\xbd" // U+D83D
	loneLow  = "\xed\xb8\x80" // U+DE00
)

func TestStrings(t *testing.T) {
	cases := []struct{ in, want string }{
		{`""`, ""},
		{`"a"`, "a"},
		{`"exactly8"`, "exactly8"},
		{`"more than eight bytes, and then some"`, "more than eight bytes, and then some"},
		{"\"del \x7f is no control\"", "del \x7f is no control"},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0000\u001f\u0041\u00e9\u20AC\u20ac"`, "\x00\x1fAé€€"},
		{`"0123456\n0123456\t"`, "0123456\n0123456\t"},
		{`"\\u0041"`, `\u0041`},
		{`"\ud83d\ude00"`, "😀"},
		{`"\uD83D\uDE00x\uDBFF\uDFFF\uD800\uDC00"`, "😀x\U0010ffff\U00010000"},
		{`"😀é中"`, "😀é中"},
		{`"` + "\u2028\u2029\ufeff\uffff" + `"`, "\u2028\u2029\ufeff\uffff"},

		{`"\ud83d"`, loneHigh},
		{`"\ude00"`, loneLow},
		{`"\ude00\ud83d"`, loneLow + loneHigh},
		{`"\ud83d\ud83d\ude00"`, loneHigh + "😀"},
		{`"\ud83dx\ude00"`, loneHigh + "x" + loneLow},
		{`"\ud83d\n\ude00"`, loneHigh + "\n" + loneLow},
		{`"\ud83d\u0041"`, loneHigh + "A"},
		{`"\ud83d😀"`, loneHigh + "😀"},
		{`"\ud83d\\ude00"`, loneHigh + `\ude00`},
		{`"\ud800\udbff\udc00\udfff"`, "\xed\xa0\x80\U0010fc00\xed\xbf\xbf"},

		// NFC
		{"\"e\u0301\"", "é"},
		{`"e\u0301"`, "é"},
		{`"\u0065\u0301\n"`, "é\n"},
		{"\"\u212b\u2126\"", "ÅΩ"},
		{"\"\u1100\u1161\u11a8\"", "각"},
		{"\"a\u0323\u0307\"", "ạ\u0307"},
		{"\"a\u0307\u0323\"", "ạ\u0307"},
		{"\"\u0958\"", "\u0915\u093c"}, // excluded from composition
		{"\"\ufb01\"", "\ufb01"},       // a compatibility character only
		{"\"\u0301\"", "\u0301"},
		{"\"plain then e\u0301 and 😀e\u0301\"", "plain then é and 😀é"},
		// NFC beside lone surrogates, which separate like any other base.
		{`"e\u0301\ud83de\u0301\ude00"`, "é" + loneHigh + "é" + loneLow},
		{`"e\ud83d\u0301"`, "e" + loneHigh + "\u0301"},
		{`"\ud83de\u0301"`, loneHigh + "é"},
	}
	for _, c := range cases {
		for _, text := range []string{c.in, `{` + c.in + `:0}`} {
			v, stats, err := Parse([]byte(text), Limits{})
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			got := v.Text
			if v.Kind == Object {
				got = v.Items[0].Key
			}
			if got != c.want {
				t.Errorf("%s: got %q, want %q", text, got, c.want)
			}
			lone := 0
			for i := range got {
				if _, ok := surrogateAt(got, i); ok {
					lone++
				}
			}
			if stats.LoneSurrogates != lone {
				t.Errorf("%s: counts %d lone surrogates, has %d", text, stats.LoneSurrogates, lone)
			}
		}
	}
}

// TestPlainEnd puts every byte at every place of a word.
func TestPlainEnd(t *testing.T) {
	for b := range 256 {
		for n := range 20 {
			s := strings.Repeat("a", n) + string([]byte{byte(b)}) + strings.Repeat("\"", 9)
			want := n
			if b >= 0x20 && b < 0x80 && b != '"' && b != '\\' {
				want = n + 1
			}
			if got := plainEnd(s, 0); got != want {
				t.Fatalf("byte %#x after %d: got %d, want %d", b, n, got, want)
			}
			if got := plainEnd(s[:n+1], 0); got != want {
				t.Fatalf("byte %#x after %d at the end: got %d, want %d", b, n, got, want)
			}
		}
	}
}

// TestLongMarks: NFC adds nothing to long runs of marks, other than the norm
// package; what it gives was computed with Python's unicodedata.
func TestLongMarks(t *testing.T) {
	acute, below := "\u0301", "\u0323"
	for in, want := range map[string]string{
		"e" + strings.Repeat(acute, 40):                                "é" + strings.Repeat(acute, 39),
		"e" + strings.Repeat(acute+below, 20):                          "ẹ" + strings.Repeat(below, 19) + strings.Repeat(acute, 20),
		strings.Repeat(below, 35) + "e" + acute:                        strings.Repeat(below, 35) + "é",
		"e" + strings.Repeat(acute, 40) + "\u1100\u1161\u11a8":         "é" + strings.Repeat(acute, 39) + "각",
		"a\u034fb" + strings.Repeat(acute, 33):                         "a\u034fb" + strings.Repeat(acute, 33),
		"\u1e69" + strings.Repeat(acute, 32) + "\u0958\u212b":          "\u1e69" + strings.Repeat(acute, 32) + "\u0915\u093cÅ",
		"\u09c7" + strings.Repeat("\u3099", 31) + "\u09be\u09c7\u09be": "\u09c7" + strings.Repeat("\u3099", 31) + "\u09be\u09cb",
	} {
		if got := normalize(in); got != want {
			t.Errorf("%+q:\ngot  %+q\nwant %+q", in, got, want)
		}
		if got := mustParse(t, `"`+in+`"`).Text; got != want {
			t.Errorf("Parse of %+q gives %+q", in, got)
		}
		if got := normalize(want); got != want {
			t.Errorf("not idempotent: %+q", got)
		}
	}
}

// FuzzNormalize compares the two ways of normalising where both apply.
func FuzzNormalize(f *testing.F) {
	f.Add("e\u0301\u0323\u1100\u1161\u11a8")
	f.Add("\u1e69\u0958\u212b\u09c7\u09be\U0001d15e\u0f73\u0344")
	f.Add("\uac00\u11a8\u1100\u1161\u1161\u11a8\u11a8")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\u0301")
		long := normalizeLong(s)
		if n := norm.NFC.String(s); strings.Count(n, joiner) == strings.Count(s, joiner) && n != long {
			t.Errorf("%+q: norm gives %+q, normalizeLong %+q", s, n, long)
		}
		if again := normalizeLong(long); again != long {
			t.Errorf("%+q: not idempotent: %+q, %+q", s, long, again)
		}
		if got := normalize(s); got != long {
			t.Errorf("%+q: normalize gives %+q, want %+q", s, got, long)
		}
	})
}
