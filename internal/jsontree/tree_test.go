package jsontree

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

const treeText = `{"a":{"b":["x",{"c/d":1,"e~f":2,"":3}]},"n":null,"s":"text","t":true,"é":"NFC"}`

func TestGet(t *testing.T) {
	v := mustParse(t, treeText)
	var absent *Value
	if absent.Get("a") != nil || absent.At("a", "b") != nil || v.Get("zz") != nil || v.Get("s").Get("a") != nil {
		t.Error("found what is not there")
	}
	if v.At("a", "b").Get("0") != nil {
		t.Error("Get is for objects only")
	}
	if v.At() != v || v.At("a", "b") != v.Get("a").Get("b") || v.At("a", "b").Len() != 2 {
		t.Error("At does not follow Get")
	}
	if s, ok := v.Get("s").Str(); s != "text" || !ok {
		t.Error("Str", s, ok)
	}
	for _, x := range []*Value{nil, v, v.Get("n"), v.Get("t")} {
		if s, ok := x.Str(); s != "" || ok || x.StrOr("def") != "def" {
			t.Errorf("%+v has text", x)
		}
	}
	if v.Get("s").StrOr("def") != "text" || v.Get("é").StrOr("") != "NFC" {
		t.Error("StrOr")
	}
	if !absent.IsNull() || !v.Get("n").IsNull() || v.Get("s").IsNull() || v.IsNull() {
		t.Error("IsNull")
	}
	if absent.Len() != 0 || v.Get("s").Len() != 0 || v.Len() != 5 {
		t.Error("Len")
	}
}

func TestLookup(t *testing.T) {
	v := mustParse(t, treeText)
	for pointer, want := range map[string]string{
		"": canonical(v), "/a/b/0": `"x"`, "/a/b/1/c~1d": "1", "/a/b/1/e~0f": "2", "/a/b/1/": "3", "/n": "null", "/é": `"NFC"`,
	} {
		if got := v.Lookup(pointer); got == nil || canonical(got) != want {
			t.Errorf("%q: got %v, want %s", pointer, got, want)
		}
	}
	for _, pointer := range []string{
		"a", "/", "/a/", "/a/b/", "/a/b/2", "/a/b/-", "/a/b/00", "/a/b/01", "/a/b/-1", "/a/b/+1", "/a/b/1x",
		"/a/b/99999999999", "/a/b/9999999999", "/a/b/4294967296", "/s/0", "/n/x", "/a/b/1/c/d", "/a/b/1/e~f", "/a/b/1/e~", "/a/b/1/e~2f", "/zz/a",
	} {
		if got := v.Lookup(pointer); got != nil {
			t.Errorf("%q: got %s", pointer, canonical(got))
		}
	}
	var absent *Value
	if absent.Lookup("") != nil || absent.Lookup("/a") != nil {
		t.Error("found something in nil")
	}
	for token, want := range map[string]string{"": "", "abc": "abc", "a/b": "a~1b", "m~n": "m~0n", "~1": "~01", "/~": "~1~0"} {
		if got := EscapePointer(token); got != want {
			t.Errorf("EscapePointer(%q) = %q, want %q", token, got, want)
		}
		if got, ok := unescapePointer(want); !ok || got != token {
			t.Errorf("unescapePointer(%q) = %q, %v", want, got, ok)
		}
	}
}

func TestConstructors(t *testing.T) {
	v := NewObject(
		Item{Key: "～", Value: NewInt(-7)},
		Item{Key: "😀", Value: NewArray(NewString("s"), NewBool(true), NewBool(false), Value{}, NewArray(), NewObject())},
		Item{Key: "", Value: NewNumber("1e-7")},
	)
	const want = `{"":1e-7,"😀":["s",true,false,null,[],{}],"～":-7}`
	if got := canonical(&v); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	back := mustParse(t, want)
	stripOffsets(back)
	if !reflect.DeepEqual(*back, v) {
		t.Errorf("differs from what Parse gives: %+v, %+v", v, back)
	}
	items := []Item{{Key: "b"}, {Key: "a"}}
	NewObject(items...)
	if items[0].Key != "b" {
		t.Error("NewObject sorts its argument")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for a duplicate key")
		}
	}()
	NewObject(Item{Key: "a"}, Item{Key: "b"}, Item{Key: "a"})
}

func stripOffsets(v *Value) {
	v.Off, v.End = 0, 0
	for i := range v.Items {
		stripOffsets(&v.Items[i].Value)
	}
}

func TestAny(t *testing.T) {
	const text = `{"a":[1,-1,0,255,256,0.5,1e400,-1e400,1e-400,18446744073709551615,true,false,null,"s","\ud800",{},[]],"a\n":{"b":{"c":3}}}`
	want := map[string]any{
		"a": []any{
			1.0, -1.0, 0.0, 255.0, 256.0, 0.5, math.MaxFloat64, -math.MaxFloat64, 0.0, 18446744073709551615.0,
			true, false, nil, "s", "\xed\xa0\x80", map[string]any{}, []any{},
		},
		"a\n": map[string]any{"b": map[string]any{"c": 3.0}},
	}
	if got := mustParse(t, text).Any(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
	var absent *Value
	if absent.Any() != nil {
		t.Error("nil is not nil")
	}
	var sample any
	if err := json.Unmarshal([]byte(sampleEvent), &sample); err != nil {
		t.Fatal(err)
	}
	if got := mustParse(t, sampleEvent).Any(); !reflect.DeepEqual(got, sample) {
		t.Error("the sample event differs from what encoding/json gives")
	}
}

func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{
		"":                               `""`,
		"plain":                          `"plain"`,
		"\"\\/":                          `"\"\\/"`,
		"\b\t\n\f\r":                     `"\b\t\n\f\r"`,
		"\x00\x01\x0b\x0e\x1f\x7f":       `"\u0000\u0001\u000b\u000e\u001f` + "\x7f\"",
		"<>&'\u2028\u2029":               "\"<>&'\u2028\u2029\"",
		"é€😀\ufffd\ufeff":                `"é€😀` + "\ufffd\ufeff\"",
		"long enough for words\nand €\n": `"long enough for words\nand €\n"`,
		"\xed\xa0\x80":                   `"\ud800"`,
		"a\xed\xaf\xbf\xed\xbf\xbfz":     `"a\udbff\udfffz"`,
		"\xed\x9f\xbf\xee\x80\x80":       "\"\ud7ff\ue000\"",
		"\xff":                           "\"\ufffd\"",
		"a\xc3":                          "\"a\ufffd\"",
		"\xc0\x80":                       "\"\ufffd\ufffd\"",
		"\xed\xa0":                       "\"\ufffd\ufffd\"",
		"\xed\xa0x":                      "\"\ufffd\ufffdx\"",
		"\xf4\x90\x80\x80":               "\"\ufffd\ufffd\ufffd\ufffd\"",
	} {
		if got := string(AppendString([]byte("> "), in)); got != "> "+want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestAppendCanonical(t *testing.T) {
	// RFC 8785, section 3.2.2, but that an integral value of up to 40 digits
	// is spelled exactly.
	const text = `{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`
	const want = `{"literals":[null,true,false],"numbers":[3.3333333333333329e+8,` +
		`1000000000000000000000000000000,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
	if got := canonical(mustParse(t, text)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := canonical(nil); got != "null" {
		t.Error(got)
	}
}

func TestMarshalJSON(t *testing.T) {
	v := mustParse(t, `{"b":[1.50,"<\ud800>"],"a":null}`)
	const tree = `{"a":null,"b":[1.5,"\u003c\ud800\u003e"]}`
	got, err := json.Marshal(struct {
		P, Nil *Value
		V      Value
		M      map[string]Value
	}{P: v, V: *v, M: map[string]Value{"k": *v}})
	want := `{"P":` + tree + `,"Nil":null,"V":` + tree + `,"M":{"k":` + tree + `}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}
