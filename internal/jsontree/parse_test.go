package jsontree

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestParseCanonical(t *testing.T) {
	cases := []struct{ in, want string }{
		{`null`, `null`},
		{"\t\r\n true \n", `true`},
		{`false`, `false`},
		{`0`, `0`},
		{`""`, `""`},
		{`[]`, `[]`},
		{`[ ]`, `[]`},
		{`{}`, `{}`},
		{"{\n}", `{}`},
		{`[1, "a" ,null,[true,{}]]`, `[1,"a",null,[true,{}]]`},
		{`{"b":1,"a":{"d":[],"c":2}}`, `{"a":{"c":2,"d":[]},"b":1}`},
		{`{"":1,"a":2}`, `{"":1,"a":2}`},
		{bom + `{"a":1}`, `{"a":1}`},
		{bom + " 1", `1`},
		{`NaN`, `null`},
		{`[NaN,Infinity,-Infinity,-1]`, `[null,null,null,-1]`},
		{`{"x":NaN}`, `{"x":null}`},
	}
	for _, c := range cases {
		if got := canonical(mustParse(t, c.in)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.in, got, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	digits := strings.Repeat("7", 1001)
	cases := []struct {
		in      string
		offset  int
		pointer string
		reason  string
	}{
		{"", 0, "", "empty input"},
		{" \n", 2, "", "empty input"},
		{bom, 3, "", "empty input"},
		{bom + bom + "1", 3, "", "unexpected byte 0xef, want a value"},
		{"1 2", 2, "", "unexpected character '2' after the document"},
		{`{} x`, 3, "", "unexpected character 'x' after the document"},
		{"1\x00", 1, "", "unexpected byte 0x00 after the document"},
		{`nul`, 0, "", "invalid literal, want null"},
		{`True`, 0, "", "unexpected character 'T', want a value"},
		{`Inf`, 0, "", "invalid literal, want Infinity"},
		{`+Infinity`, 0, "", "unexpected character '+', want a value"},
		{`-Inf`, 1, "", "unexpected character 'I' in a number, want a digit"},
		{`nan`, 0, "", "invalid literal, want null"},
		{"\xff", 0, "", "unexpected byte 0xff, want a value"},
		{`é`, 0, "", "unexpected character 'é', want a value"},
		{`'a'`, 0, "", `unexpected character '\'', want a value`},

		{`[`, 1, "/0", "unexpected end of input, want a value"},
		{`[1`, 2, "", "unexpected end of input in an array"},
		{`[1,`, 3, "/1", "unexpected end of input, want a value"},
		{`[1,]`, 3, "/1", "unexpected character ']', want a value"},
		{`[,1]`, 1, "/0", "unexpected character ',', want a value"},
		{`[1 2]`, 3, "", "unexpected character '2', want ',' or ']'"},
		{`[1}`, 2, "", "unexpected character '}', want ',' or ']'"},
		{`]`, 0, "", "unexpected character ']', want a value"},

		{`{`, 1, "", "unexpected end of input in an object"},
		{`{"a"`, 4, "", "unexpected end of input, want ':' after a key"},
		{`{"a":`, 5, "/a", "unexpected end of input, want a value"},
		{`{"a":1`, 6, "", "unexpected end of input in an object"},
		{`{"a":1,`, 7, "", "unexpected end of input in an object"},
		{`{"a":1,}`, 7, "", "unexpected character '}', want a key"},
		{`{"a" 1}`, 5, "", "unexpected character '1', want ':' after a key"},
		{`{"a":1 "b":2}`, 7, "", "unexpected character '\"', want ',' or '}'"},
		{`{a:1}`, 1, "", "unexpected character 'a', want a key"},
		{`{1:1}`, 1, "", "unexpected character '1', want a key"},
		{`{"x":{"y":1]}`, 11, "/x", "unexpected character ']', want ',' or '}'"},
		{`{"a/b":{"~":[0,{"c":tru}]}}`, 20, "/a~1b/~0/1/c", "invalid literal, want true"},
		{`{"":{"":?}}`, 8, "//", "unexpected character '?', want a value"},

		{`"abc`, 4, "", "unexpected end of input in a string"},
		{`"`, 1, "", "unexpected end of input in a string"},
		{`"\`, 2, "", "unexpected end of input in a string"},
		{`["\"]`, 5, "/0", "unexpected end of input in a string"},
		{`["\x"]`, 2, "/0", "invalid escape in a string"},
		{`["\u12g4"]`, 2, "/0", `invalid \u escape in a string`},
		{`["\u12"]`, 2, "/0", `invalid \u escape in a string`},
		{`["\U0041"]`, 2, "/0", "invalid escape in a string"},
		{`["\ud83d\u12g4"]`, 8, "/0", `invalid \u escape in a string`},
		{"[\"a\nb\"]", 3, "/0", "control byte 0x0a in a string"},
		{"{\"k\":\"0123456789\x1f\"}", 16, "/k", "control byte 0x1f in a string"},
		{"[\"\x00\"]", 2, "/0", "control byte 0x00 in a string"},
		{"{\"a\":[\"\",\"ab\xffc\"]}", 12, "/a/1", "invalid UTF-8 in a string"},
		{"{\"x\":{\"a\xc3(\":1}}", 8, "/x", "invalid UTF-8 in a string"},
		{"[\"\xc0\x80\"]", 2, "/0", "invalid UTF-8 in a string"},                     // overlong
		{"[\"\\n\xed\xa0\x80\"]", 4, "/0", "invalid UTF-8 in a string"},              // raw surrogate
		{"[\"\xf4\x90\x80\x80\"]", 2, "/0", "invalid UTF-8 in a string"},             // beyond U+10FFFF
		{"[\"\xe2\x82\"]", 2, "/0", "invalid UTF-8 in a string"},                     // cut short
		{"[\"\xe4\xb8\xad\xe6\x96\x87\x80\"]", 8, "/0", "invalid UTF-8 in a string"}, // stray continuation

		{`01`, 0, "", "leading zero in a number"},
		{`[-012]`, 2, "/0", "leading zero in a number"},
		{`-`, 1, "", "unexpected end of input in a number, want a digit"},
		{`[-]`, 2, "/0", "unexpected character ']' in a number, want a digit"},
		{`1.`, 2, "", "unexpected end of input in a number, want a digit"},
		{`[1.e5]`, 3, "/0", "unexpected character 'e' in a number, want a digit"},
		{`.5`, 0, "", "unexpected character '.', want a value"},
		{`1e`, 2, "", "unexpected end of input in a number, want a digit"},
		{`{"a":1e+}`, 8, "/a", "unexpected character '}' in a number, want a digit"},
		{`[0x10]`, 2, "", "unexpected character 'x', want ',' or ']'"},
		{`[0,1e401]`, 3, "/1", "exponent of a number beyond ±400"},
		{`[0,1E-401]`, 3, "/1", "exponent of a number beyond ±400"},
		{`{"n":0e1000000}`, 5, "/n", "exponent of a number beyond ±400"},
		{`{"n":1e99999999999999999999}`, 5, "/n", "exponent of a number beyond ±400"},
		{`[` + digits + `]`, 1, "/0", "number of more than 1000 digits"},
		{`[0.` + digits[:1000] + `]`, 1, "/0", "number of more than 1000 digits"},
		{`[1e` + strings.Repeat("0", 1000) + `]`, 1, "/0", "number of more than 1000 digits"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%.30q", c.in), func(t *testing.T) {
			v, stats, err := Parse([]byte(c.in), Limits{})
			if v != nil || stats != (Stats{}) {
				t.Errorf("got %v and %v with an error", v, stats)
			}
			wantSyntaxError(t, err, c.offset, c.pointer, c.reason)
		})
	}
}

func TestErrorMessage(t *testing.T) {
	_, _, err := Parse([]byte(`{"run":{"facets":[1,tru]}}`), Limits{})
	const want = `invalid literal, want true at "/run/facets/1" (byte 20)`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// A sender's long key must not fill the log, but the pointer stays whole.
	key := strings.Repeat("k", 1<<16)
	_, _, err = Parse([]byte(`{"`+key+`":?}`), Limits{})
	var e *SyntaxError
	if !errors.As(err, &e) || e.Pointer != "/"+key {
		t.Fatalf("got %.100v", err)
	}
	if len(e.Error()) > 400 {
		t.Errorf("message of %d bytes", len(e.Error()))
	}
}

func TestDepth(t *testing.T) {
	nest := func(n int) []byte {
		return []byte(strings.Repeat("[", n) + strings.Repeat("]", n))
	}
	for _, c := range []struct {
		limit, depth int
		ok           bool
	}{
		{0, DefaultDepth, true}, {0, DefaultDepth + 1, false}, {-1, DefaultDepth + 1, false},
		{1, 1, true}, {1, 2, false}, {3, 3, true}, {20000, 20000, true},
	} {
		if _, _, err := Parse(nest(c.depth), Limits{Depth: c.limit}); (err == nil) != c.ok {
			t.Errorf("limit %d, depth %d: %.100v", c.limit, c.depth, err)
		}
	}
	_, _, err := Parse(nest(10000), Limits{})
	wantSyntaxError(t, err, 512, strings.Repeat("/0", 512), "nested deeper than 512 levels")
	_, _, err = Parse([]byte(`{"a":[{"b":{}}]}`), Limits{Depth: 3})
	wantSyntaxError(t, err, 11, "/a/0/b", "nested deeper than 3 levels")
	// Containers side by side do not add up.
	mustParse(t, "["+strings.Repeat("[],{},", 1000)+"[]]")
}

func TestInputTooLong(t *testing.T) {
	if err := checkSize(maxInput); err != nil {
		t.Error(err)
	}
	wantSyntaxError(t, checkSize(maxInput+1), maxInput, "", "input is longer than 2147483647 bytes")
}

func TestOffsets(t *testing.T) {
	const text = bom + ` { "b" : [ 1.50 , "x\n" ] , "a" : { } , "n" : NaN, "t":true } `
	v := mustParse(t, text)
	for pointer, want := range map[string]string{
		"":     strings.TrimSpace(text[3:]),
		"/b":   `[ 1.50 , "x\n" ]`,
		"/b/0": `1.50`,
		"/b/1": `"x\n"`,
		"/a":   `{ }`,
		"/n":   `NaN`,
		"/t":   `true`,
	} {
		got := v.Lookup(pointer)
		if got == nil || text[got.Off:got.End] != want {
			t.Errorf("%q: %v, want the offsets of %s", pointer, got, want)
		}
	}
}

func TestStats(t *testing.T) {
	for in, want := range map[string]Stats{
		`{"a":1}`:                                  {},
		`[NaN,[-Infinity],{"x":Infinity}]`:         {NonFinite: 3},
		`["NaN"]`:                                  {},
		`{"a":1,"a":2,"b":{"c":1,"c":1}}`:          {DuplicateKeys: 2},
		`{"a":1,"a":2,"a":3}`:                      {DuplicateKeys: 2},
		`["\ud800","\udfff\ud800","\ud83d\ude00"]`: {LoneSurrogates: 3},
		`{"\udc00":"\udc00"}`:                      {LoneSurrogates: 2},
		`{"a":NaN,"a":"\ud800","a":0}`:             {DuplicateKeys: 2, NonFinite: 1, LoneSurrogates: 1},
	} {
		_, got, err := Parse([]byte(in), Limits{})
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", in, got, err, want)
		}
	}
}

// TestIndependence checks that a tree depends neither on the caller's buffer
// nor on later uses of the pooled parser.
func TestIndependence(t *testing.T) {
	const text = `{"key":["plain","esc\taped","e\u0301",1.50,10000e3],"z":{"y":1}}`
	buf := []byte(text)
	v, _, err := Parse(buf, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := canonical(v)
	clear(buf)
	for i := range 100 {
		mustParse(t, strings.ReplaceAll(text, "plain", fmt.Sprint(i, `\n`)))
		_, _, _ = Parse([]byte(`{"other\t":[1e5,2e5,"\u00e9`), Limits{})
	}
	if got := canonical(v); got != want {
		t.Errorf("the tree changed from %s to %s", want, got)
	}
	// Slices of the shared chunk must not run into each other.
	a := v.Get("key")
	_ = append(a.Items, Item{Key: "intruder"})
	if got := canonical(v); got != want {
		t.Errorf("append changed the tree from %s to %s", want, got)
	}
}

// TestPoolKeepsNothing checks that the scratch of a parser does not keep a
// document alive.
func TestPoolKeepsNothing(t *testing.T) {
	p := &parser{stack: make([]Item, 0, 8)}
	p.reset(`{"a":[1,2,{"b":"c\n","d":tru}]}`, Limits{})
	p.document()
	p.syntaxError()
	p.release()
	for i, it := range p.stack[:cap(p.stack)] {
		if it.Key != "" || it.Value.Text != "" || it.Value.Items != nil {
			t.Errorf("stack[%d] = %+v", i, it)
		}
	}
	for _, token := range p.failPath[:cap(p.failPath)] {
		if token != "" {
			t.Errorf("path keeps %q", token)
		}
	}
	if p.s != "" || p.arena != nil || p.text.Len() != 0 {
		t.Error("the parser keeps text")
	}
}

func TestParallel(t *testing.T) {
	want := canonical(mustParse(t, sampleEvent))
	done := make(chan string)
	for range 4 {
		go func() {
			for range 50 {
				v, _, err := Parse([]byte(sampleEvent), Limits{})
				if err != nil || canonical(v) != want {
					done <- fmt.Sprint("differs: ", err)
					return
				}
			}
			done <- ""
		}()
	}
	for range 4 {
		if msg := <-done; msg != "" {
			t.Error(msg)
		}
	}
	runtime.GC()
}
