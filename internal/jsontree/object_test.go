package jsontree

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

func TestMemberOrder(t *testing.T) {
	cases := []struct{ in, want string }{
		// The example of RFC 8785, section 3.2.3, but that U+FB33 is no NFC:
		// it becomes two characters, which sort lower.
		{
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",` +
				`"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\"," +
				"\"\u05d3\u05bc\":\"Hebrew Letter Dalet With Dagesh\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\"}",
		},
		{`{"a":1,"B":2,"aa":3,"":4,"a\u0000":5}`, `{"":4,"B":2,"a":1,"a\u0000":5,"aa":3}`},
		// U+FF5E is below U+1F600, but above its surrogates.
		{`{"～":1,"😀":2}`, `{"😀":2,"～":1}`},
		{`{"\udc00":1,"\ud800":2,"😀":3,"\ud83d":4,"\ud83dx":5}`, `{"\ud800":2,"\ud83d":4,"\ud83dx":5,"😀":3,"\udc00":1}`},
	}
	for _, c := range cases {
		got := canonical(mustParse(t, c.in))
		if got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestDuplicateKeys(t *testing.T) {
	cases := []struct {
		in, want string
		n        int
	}{
		{`{"a":1,"a":2}`, `{"a":2}`, 1},
		{`{"b":0,"a":1,"b":[2],"a":3,"c":4}`, `{"a":3,"b":[2],"c":4}`, 2},
		{`{"a":{"x":1},"a":{}}`, `{"a":{}}`, 1},
		// Equal only once unescaped and normalised.
		{`{"\u0061":1,"a":2}`, `{"a":2}`, 1},
		{"{\"e\u0301\":1,\"\u00e9\":2}", "{\"\u00e9\":2}", 1},
		{"{\"\u00e9\":1,\"e\\u0301\":2}", "{\"\u00e9\":2}", 1},
		{"{\"\u212b\":1,\"\u00c5\":2,\"A\u030a\":3}", "{\"\u00c5\":3}", 2},
		{`{"\ud800":1,"\uD800":2,"\ud801":3}`, `{"\ud800":2,"\ud801":3}`, 1},
	}
	for _, c := range cases {
		v, stats, err := Parse([]byte(c.in), Limits{})
		if err != nil || canonical(v) != c.want || stats.DuplicateKeys != c.n {
			t.Errorf("%s: got %s, %d duplicates, %v, want %s, %d", c.in, canonical(v), stats.DuplicateKeys, err, c.want, c.n)
		}
	}
}

// TestLargeObjects goes through both ways of sorting, with many orders and
// numbers of duplicates.
func TestLargeObjects(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		for _, distinct := range []int{1, 3, 1000} {
			last := map[string]int{}
			var b strings.Builder
			b.WriteByte('{')
			for i := range n {
				if i > 0 {
					b.WriteByte(',')
				}
				k := fmt.Sprint("k", rnd.IntN(distinct))
				last[k] = i
				fmt.Fprintf(&b, `%q:%d`, k, i)
			}
			b.WriteByte('}')
			v, stats, err := Parse([]byte(b.String()), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if v.Len() != len(last) || stats.DuplicateKeys != n-len(last) {
				t.Fatalf("%s: %d members, %d duplicates", b.String(), v.Len(), stats.DuplicateKeys)
			}
			for i, it := range v.Items {
				if i > 0 && v.Items[i-1].Key >= it.Key {
					t.Fatalf("%s: not sorted", b.String())
				}
				if it.Value.Text != itoa(last[it.Key]) || v.Get(it.Key) != &v.Items[i].Value {
					t.Fatalf("%s: %s is %s", b.String(), it.Key, it.Value.Text)
				}
			}
			if v.Get("k") != nil || v.Get("zzz") != nil || v.Get("") != nil {
				t.Fatal("Get found what is not there")
			}
		}
	}
}

// TestHostileObjects would take minutes if sorting were quadratic.
func TestHostileObjects(t *testing.T) {
	const n = 100_000
	object := func(key func(i int) string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"%s":%d`, key(i), i)
		}
		b.WriteByte('}')
		return b.String()
	}
	for name, c := range map[string]struct {
		key  func(i int) string
		keep int
	}{
		"equal":    {func(int) string { return "k" }, 1},
		"reversed": {func(i int) string { return fmt.Sprintf("%08d", n-i) }, n},
		"organ":    {func(i int) string { return fmt.Sprintf("%08d", min(i, n-i)) }, n/2 + 1},
		"saw":      {func(i int) string { return fmt.Sprintf("%08d", i%317*1000+i/317) }, n},
		"wide":     {func(i int) string { return fmt.Sprintf("😀%08d～", n-i) }, n},
	} {
		start := time.Now()
		v, stats, err := Parse([]byte(object(c.key)), Limits{})
		if err != nil || v.Len() != c.keep || stats.DuplicateKeys != n-c.keep {
			t.Errorf("%s: %d members, %+v, %v", name, v.Len(), stats, err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
}

// utf16Units gives the code units of WTF-8 by an independent way.
func utf16Units(s string) []uint16 {
	var units []uint16
	for i := 0; i < len(s); {
		if r, ok := surrogateAt(s, i); ok {
			units = append(units, uint16(r))
			i += 3
			continue
		}
		for j, r := range s[i:] {
			if _, ok := surrogateAt(s, i+j); ok {
				i += j
				break
			}
			units = utf16.AppendRune(units, r)
			if i+j+len(string(r)) == len(s) {
				return units
			}
		}
	}
	return units
}

func TestCompareKeys(t *testing.T) {
	parts := []string{
		"", "a", "b", "\x00", "~", "\u007f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff",
		"\U00010000", "\U00010001", "\U0001f600", "\U0001f601", "\U0010ffff",
		"\xed\xa0\x80", "\xed\xa0\xbd", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbf\xbf",
	}
	var keys []string
	for _, a := range parts {
		for _, b := range parts {
			keys = append(keys, a+b)
		}
	}
	for _, a := range keys {
		for _, b := range keys {
			want := slices.Compare(utf16Units(a), utf16Units(b))
			if got := CompareKeys(a, b); got != want {
				t.Fatalf("CompareKeys(%q, %q) = %d, want %d", a, b, got, want)
			}
			if got := CompareKeys("prefix"+a+"x", "prefix"+b+"x"); got != slices.Compare(utf16Units(a+"x"), utf16Units(b+"x")) {
				t.Fatalf("with more around: CompareKeys(%q, %q) = %d", a, b, got)
			}
		}
	}
	// Bytes that are no text at all must not panic, and keep one order.
	for _, a := range []string{"\xf0", "\xed", "\xee\x80", "\xff\xff", "\xf0\x9f"} {
		for _, b := range []string{"\xef", "\xee", "\xf5\x80\x80\x80", "\xed\xa0"} {
			if CompareKeys(a, b) != -CompareKeys(b, a) || cmp.Compare(a, b) == 0 {
				t.Errorf("CompareKeys(%q, %q) is not antisymmetric", a, b)
			}
		}
	}
}
