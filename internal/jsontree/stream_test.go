package jsontree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestElements(t *testing.T) {
	cases := []struct {
		in   string
		want string // elements joined by "|", then the error if any
		err  string
	}{
		{`[]`, "", ""},
		{" [\n] \n", "", ""},
		{`[1]`, "1", ""},
		{` [ 1 , "a" ,null ] `, `1|"a"|null`, ""},
		{bom + `[1]`, "1", ""},
		{`[{"a":[1,2],"b":"],["},[3,[4]]]`, `{"a":[1,2],"b":"],["}|[3,[4]]`, ""},
		{`["a\"]","\\",2]`, `"a\"]"|"\\"|2`, ""},
		{`["\\\\\"",1]`, `"\\\\\""|1`, ""},
		// Broken elements are whole elements.
		{`[1,x y,{"a":tru},3]`, `1|x y|{"a":tru}|3`, ""},
		{`[{"a":1],2]`, `{"a":1]|2`, ""},
		{`[},1}},2]`, `}|1}}|2`, ""},
		{"[\"a\nb\",\"\xff\",2]", "\"a\nb\"|\"\xff\"|2", ""},
		{`[1,,2]`, "1||2", ""},
		{`[1,]`, "1|", ""},
		{`[,]`, "|", ""},
		{"[" + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + ",1]",
			strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "|1", ""},
		// Broken arrays.
		{"", "", `empty input at "" (byte 0)`},
		{" \n", "", `empty input at "" (byte 2)`},
		{`{}`, "", `not an array at "" (byte 0)`},
		{` 1`, "", `not an array at "" (byte 1)`},
		{`[`, "", `unexpected end of input in an array at "/0" (byte 1)`},
		{`[1`, "", `unexpected end of input in an array at "/0" (byte 2)`},
		{`[1,2,{"a":[`, "1|2", `unexpected end of input in an array at "/2" (byte 11)`},
		{`[1,"abc]`, "1", `unexpected end of input in an array at "/1" (byte 8)`},
		{`[1,"abc\`, "1", `unexpected end of input in an array at "/1" (byte 8)`},
		{`[1,`, "1", `unexpected end of input in an array at "/1" (byte 3)`},
		{`[1,2]]`, "1|2", `unexpected data after the array at "" (byte 5)`},
		{`[] []`, "", `unexpected data after the array at "" (byte 3)`},
	}
	for _, c := range cases {
		var got []string
		var last error
		for raw, err := range Elements([]byte(c.in)) {
			if last != nil {
				t.Errorf("%.40q: a pair after the error", c.in)
			}
			if err != nil {
				last = err
				var e *SyntaxError
				if !errors.As(err, &e) || raw.Data != nil {
					t.Errorf("%.40q: %T with %q", c.in, err, raw.Data)
				}
				continue
			}
			if !bytes.HasPrefix([]byte(c.in)[raw.Offset:], raw.Data) || raw.Line != 0 || cap(raw.Data) != len(raw.Data) {
				t.Errorf("%.40q: %+v", c.in, raw)
			}
			got = append(got, string(raw.Data))
		}
		if strings.Join(got, "|") != c.want || (last == nil) != (c.err == "") || last != nil && last.Error() != c.err {
			t.Errorf("%.40q:\ngot  %.80q, %v\nwant %.80q, %s", c.in, strings.Join(got, "|"), last, c.want, c.err)
		}
	}
	for range Elements([]byte(`[1,2,3`)) {
		break // must not be called again
	}
}

func TestElementsParse(t *testing.T) {
	const in = ` [ {"a":1}, {"a":}, 3 ]`
	var got []string
	for raw, err := range Elements([]byte(in)) {
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := Parse(raw.Data, Limits{})
		var e *SyntaxError
		if errors.As(err, &e) {
			got = append(got, fmt.Sprint(e.Pointer, " ", raw.Offset+e.Offset))
			continue
		}
		got = append(got, canonical(v))
	}
	if want := []string{`{"a":1}`, "/a 17", "3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// collectLines gives "line@offset:data" or the error for each pair.
func collectLines(r io.Reader, maxLine int) (got []string) {
	for raw, err := range Lines(r, maxLine) {
		if err != nil {
			got = append(got, fmt.Sprintf("%d@%d!%v", raw.Line, raw.Offset, err))
			continue
		}
		got = append(got, fmt.Sprintf("%d@%d:%s", raw.Line, raw.Offset, raw.Data))
	}
	return got
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	tooLong := func(line, offset, max int) string {
		return fmt.Sprintf("%d@%d!line %d is longer than %d bytes at \"\" (byte %d)", line, offset, line, max, offset)
	}
	cases := []struct {
		in   string
		max  int
		want []string
	}{
		{"", 0, nil},
		{"\n\n \t\r\n", 0, nil},
		{"1", 0, []string{"1@0:1"}},
		{"1\n", 0, []string{"1@0:1"}},
		{"1\r\n\r\n 2 \n3", 0, []string{"1@0:1", "3@6:2", "4@9:3"}},
		{bom + "1\n2\n", 0, []string{"1@3:1", "2@5:2"}},
		{bom + "\n2\n", 0, []string{"2@4:2"}},
		{"1\n" + bom + "2\n", 0, []string{"1@0:1", "2@2:" + bom + "2"}},
		{"a\rb\n", 0, []string{"1@0:a\rb"}},
		// The limit is on the text of the line.
		{"12345\n1234\n12345\r\n123456\n", 5, []string{"1@0:12345", "2@6:1234", "3@11:12345", tooLong(4, 18, 5)}},
		{"123456\r\n12345", 5, []string{tooLong(1, 0, 5), "2@8:12345"}},
		{"123456", 5, []string{tooLong(1, 0, 5)}},
		{"1234567\n2", 5, []string{tooLong(1, 0, 5), "2@8:2"}},
		{"1\n" + long + "\n2\n" + long, 100, []string{"1@0:1", tooLong(2, 2, 100), "3@200003:2", tooLong(4, 200005, 100)}},
		{long + "\n2", 200_000, []string{"1@0:" + long, "2@200001:2"}},
		{long + "y\n2", 200_000, []string{tooLong(1, 0, 200_000), "2@200002:2"}},
		{long + "\n2", 0, []string{"1@0:" + long, "2@200001:2"}},
	}
	for _, c := range cases {
		for name, r := range map[string]io.Reader{
			"whole":   strings.NewReader(c.in),
			"bytes":   iotest.OneByteReader(strings.NewReader(c.in)),
			"dataErr": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			if got := collectLines(r, c.max); !slices.Equal(got, c.want) {
				t.Errorf("%s, %.30q, max %d:\ngot  %.200q\nwant %.200q", name, c.in, c.max, got, c.want)
			}
		}
	}
	for range Lines(strings.NewReader("1\n2\n"), 0) {
		break
	}
	for range Lines(strings.NewReader("123\n2\n"), 1) {
		break
	}
}

func TestLinesReadError(t *testing.T) {
	fault := errors.New("connection lost")
	r := io.MultiReader(strings.NewReader("1\n{\"a\""), iotest.ErrReader(fault))
	want := []string{"1@0:1", "2@6!connection lost"}
	if got := collectLines(r, 0); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLinesKeep checks that each Data stays valid while reading goes on.
func TestLinesKeep(t *testing.T) {
	var all []Raw
	for raw, err := range Lines(strings.NewReader("111\n222\n333\n"), 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw)
	}
	if len(all) != 3 || string(all[0].Data) != "111" || string(all[1].Data) != "222" {
		t.Errorf("got %+v", all)
	}
}
