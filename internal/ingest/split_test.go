package ingest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/graphd/graphd/internal/jsontree"
)

// split runs Split over text in small reads and writes each document as its
// line, text and fault.
func split(text string, f Format, maxBody int) (out []string) {
	for b, err := range Split(iotest.OneByteReader(strings.NewReader(text)), f, maxBody) {
		line := string(b.Data)
		if b.Line > 0 {
			line = string(rune('0'+b.Line)) + ":" + line
		}
		if err != nil {
			line += "!" + err.Error()
		}
		out = append(out, line)
	}
	return out
}

func TestSplitTellsFormatsApart(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		format     Format
		want       []string
	}{
		{"array", ` [ {"a":1} , 2,"]," ] `, Detect, []string{`{"a":1}`, `2`, `"],"`}},
		{"empty array", `[ ]`, Array, nil},
		{"array behind a byte order mark", "\ufeff[1]", Lines, []string{"1"}},
		{"missing elements", `[1,,]`, Array, []string{"1", "", ""}},
		{"broken element alone", `[{"a":},{"b":1}]`, Array, []string{`{"a":}`, `{"b":1}`}},
		{"unfinished array", `[1,{"a":[`, Array, []string{"1", `!unexpected end of input in an array at "/1" (byte 9)`}},
		{"unfinished string", `["a\"]`, Array, []string{`!unexpected end of input in an array at "/0" (byte 6)`}},
		{"data behind an array", `[1] 2`, Array, []string{"1", `!unexpected data after the array at "" (byte 4)`}},
		{"no array", `{}`, Array, []string{`!not an array at "" (byte 0)`}},
		{"nothing", "  \n", Array, []string{`!empty input at "" (byte 0)`}},
		{"no lines", "\n \n", Lines, nil},
		{"lines", "{\"a\":1}\r\n\n{broken\n{\"b\":2}", Lines, []string{`1:{"a":1}`, `3:{broken`, `4:{"b":2}`}},
		{"lines found out", "\n{\"a\":1}\n{\"b\":{}}\n", Detect, []string{`2:{"a":1}`, `3:{"b":{}}`}},
		{"one document", "{\n \"a\": {\n }\n}\n", Detect, []string{"1:{\n \"a\": {\n }\n}"}},
		{"documents", "{\n\"a\": 1}\n\n{\"b\": 2} {\n}", Detect, []string{"1:{\n\"a\": 1}", `4:{"b": 2}`, "4:{\n}"}},
		{"unfinished document", "{\n\"a\": 1}\n{\n", Detect, []string{"1:{\n\"a\": 1}", "3:{"}},
		{"text", "hello\n", Detect, []string{"1:hello"}},
		{"more on a line", `{"a":1} x`, Detect, []string{`1:{"a":1} x`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := split(tc.text, tc.format, 100); !slices.Equal(got, tc.want) {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestSplitSkipsWhatIsTooLong(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 50) + `"}`
	tooLong := `!an event of more than 20 bytes at "" (byte 0)`
	for text, want := range map[string][]string{
		"[1," + long + ",2]":                 {"1", tooLong, "2"},
		"{\n}" + long + "\n{}":               {"1:{\n}", "2:" + tooLong, "3:{}"},
		"{\"a\":1}\n" + long + "\n{\"b\":2}": {`1:{"a":1}`, `2:!line 2 is longer than 20 bytes at "" (byte 8)`, `3:{"b":2}`},
	} {
		if got := split(text, Detect, 20); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSplitPassesErrorsOn(t *testing.T) {
	broken := errors.New("the line is dead")
	for _, text := range []string{"", "[1,", "{}\n", "{\n"} {
		for _, f := range []Format{Detect, Array, Lines} {
			var last error
			for _, err := range Split(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), f, 100) {
				last = err
			}
			if f != Array || strings.HasPrefix(text, "[") || text == "" {
				if !errors.Is(last, broken) {
					t.Errorf("%q, format %d: %v", text, f, last)
				}
			}
		}
	}
}

// FuzzSplitArray holds the splitting of a stream to that of a whole text.
func FuzzSplitArray(f *testing.F) {
	for _, seed := range []string{`[1,2]`, `[{"a":[1,"]"]},[]]`, `[,]`, `["\\"]`, `[[}],1]`, `[1] x`, "\ufeff [ ]", `[}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		type pair struct {
			data string
			bad  bool
		}
		var want, got []pair
		for raw, err := range jsontree.Elements(text) {
			want = append(want, pair{string(raw.Data), err != nil})
		}
		for b, err := range Split(bytes.NewReader(text), Array, len(text)) {
			got = append(got, pair{string(b.Data), err != nil})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q\nstreamed %v\nwhole    %v", text, got, want)
		}
	})
}
