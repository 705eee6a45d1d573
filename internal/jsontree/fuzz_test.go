package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// exceptions are the reasons for which Parse may refuse what encoding/json
// accepts.
var exceptions = []string{
	"nested deeper than",
	"exponent of a number beyond",
	"number of more than",
	"invalid UTF-8",
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		sampleEvent, `{"a":[1,2.50,-0,1e21,NaN,{"b":null}],"a":"\ud83d\ude00\ud83d"}`, `[1e400,-1E-400,0.1e1]`,
		"{\"e\u0301\":1,\"\u00e9\":2}", "\"e\u0301\\ud800\u0301\"", "\xef\xbb\xbf[]", `[-Infinity,Infinity]`, `{"～":1,"😀":2,"\ud83d":3}`,
		`[1,]`, `{"a":1,}`, `"\u00`, "\"\xff\"", `[[[[[[]]]]]]`, `"\u0000\/\b"`, "[\"\u2028\"]", `1.0000000000000001`, `[1 , {"x" : true } ]`,
		"\"e" + strings.Repeat("\u0301", 33) + "\"",
		"[1" + strings.Repeat("0", 401) + "]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, stats, err := Parse(data, Limits{})
		if err != nil {
			checkRefused(t, data, err)
			return
		}
		if !json.Valid(data) {
			if stats.NonFinite == 0 && !json.Valid(bytes.TrimPrefix(data, []byte(bom))) {
				t.Fatalf("accepted %q", data)
			}
		} else if stats.LoneSurrogates == 0 {
			checkAny(t, data, v)
		}
		checkTree(t, data, v)
		text := AppendCanonical(nil, v)
		again, stats, err := Parse(text, Limits{Canonical: true})
		if err != nil || stats.DuplicateKeys != 0 || stats.NonFinite != 0 {
			t.Fatalf("%q: canonical form %q: %+v, %v", data, text, stats, err)
		}
		if next := AppendCanonical(nil, again); !bytes.Equal(next, text) {
			t.Fatalf("%q: no fixed point:\n%q\n%q", data, text, next)
		}
		stripOffsets(v)
		stripOffsets(again)
		if !reflect.DeepEqual(v, again) {
			t.Fatalf("%q: the tree changes with its canonical form", data)
		}
		if v.Kind == Array {
			checkElements(t, data, v)
		}
	})
}

func checkRefused(t *testing.T, data []byte, err error) {
	t.Helper()
	var e *SyntaxError
	if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(data) || e.Reason == "" ||
		e.Pointer != "" && e.Pointer[0] != '/' {
		t.Fatalf("%q: %#v", data, err)
	}
	if !json.Valid(data) {
		return
	}
	for _, reason := range exceptions {
		if strings.HasPrefix(e.Reason, reason) {
			if reason == "invalid UTF-8" && utf8.Valid(data) {
				break
			}
			return
		}
	}
	t.Fatalf("refused %q: %v", data, err)
}

// checkAny compares the tree with what encoding/json reads.
func checkAny(t *testing.T, data []byte, v *Value) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	// It refuses doubles out of range, so read their text.
	d.UseNumber()
	var want any
	if err := d.Decode(&want); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	want, ok := normalized(want)
	if !ok {
		return
	}
	if got := v.Any(); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q:\ngot  %#v\nwant %#v", data, got, want)
	}
}

// normalized converts numbers and text. It gives false where two keys of one
// object become one, since a map does not know which was the last.
func normalized(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		f, _ := strconv.ParseFloat(string(v), 64)
		if math.IsInf(f, 0) {
			f = math.Copysign(math.MaxFloat64, f)
		}
		return f + 0, true // the sum with 0 is 0 for -0
	case string:
		return normalizeLong(v), true
	case []any:
		for i := range v {
			var ok bool
			if v[i], ok = normalized(v[i]); !ok {
				return nil, false
			}
		}
		return v, true
	case map[string]any:
		m := map[string]any{}
		for k, x := range v {
			n, ok := normalized(x)
			k = normalizeLong(k)
			if _, found := m[k]; found || !ok {
				return nil, false
			}
			m[k] = n
		}
		return m, true
	default:
		return v, true
	}
}

// checkTree checks the promises of Value about order and offsets.
func checkTree(t *testing.T, data []byte, v *Value) {
	t.Helper()
	if v.Off < 0 || v.Off >= v.End || int(v.End) > len(data) {
		t.Fatalf("%q: offsets %d to %d", data, v.Off, v.End)
	}
	if len(data) < 2000 {
		part, _, err := Parse(data[v.Off:v.End], Limits{})
		if err != nil || canonical(part) != canonical(v) {
			t.Fatalf("%q: %q is not the text of %s: %v", data, data[v.Off:v.End], canonical(v), err)
		}
	}
	for i := range v.Items {
		it := &v.Items[i]
		if v.Kind == Object {
			if i > 0 && CompareKeys(v.Items[i-1].Key, it.Key) >= 0 {
				t.Fatalf("%q: members out of order", data)
			}
			if v.Get(it.Key) != &it.Value || v.Lookup("/"+EscapePointer(it.Key)) != &it.Value {
				t.Fatalf("%q: %q is not found", data, it.Key)
			}
		} else if v.Kind != Array || it.Key != "" {
			t.Fatalf("%q: stray item %q", data, it.Key)
		}
		checkTree(t, data, &it.Value)
	}
}

func checkElements(t *testing.T, data []byte, v *Value) {
	t.Helper()
	n := 0
	for raw, err := range Elements(data) {
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		e, _, err := Parse(raw.Data, Limits{})
		if err != nil {
			t.Fatalf("%q, element %d: %v", data, n, err)
		}
		stripOffsets(e)
		if n >= v.Len() || !reflect.DeepEqual(*e, v.Items[n].Value) {
			t.Fatalf("%q: element %d is %s", data, n, canonical(e))
		}
		n++
	}
	if n != v.Len() {
		t.Fatalf("%q: %d elements, want %d", data, n, v.Len())
	}
}

// FuzzElements checks that splitting loses no bytes but separators and space,
// whatever the elements are.
func FuzzElements(f *testing.F) {
	for _, s := range []string{`[1,{"a":[]},"]"]`, `[1,,}]`, `["\"`, `[]]`, `[[}]`, ` [ 1 ] x`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		end, failed := 0, false
		for raw, err := range Elements(data) {
			if failed {
				t.Fatalf("%q: a pair after the error", data)
			}
			if err != nil {
				var e *SyntaxError
				if !errors.As(err, &e) || e.Offset < end || e.Offset > len(data) {
					t.Fatalf("%q: %#v", data, err)
				}
				failed = true
				continue
			}
			if raw.Offset < end || !bytes.HasPrefix(data[raw.Offset:], raw.Data) {
				t.Fatalf("%q: element %+v after byte %d", data, raw, end)
			}
			if gap := strings.Trim(strings.TrimPrefix(string(data[end:raw.Offset]), bom), " \t\r\n"); gap != "," && (end > 0 || gap != "[") {
				t.Fatalf("%q: %q between elements", data, gap)
			}
			end = raw.Offset + len(raw.Data)
		}
		if _, _, err := Parse(data, Limits{Depth: 1 << 20}); err == nil && failed == bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(data, []byte(bom)), " \t\r\n"), []byte("[")) {
			t.Fatalf("%q: failed is %v", data, failed)
		}
	})
}
