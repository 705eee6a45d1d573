package jsontree

import (
	"errors"
	"strconv"
	"testing"
)

func itoa(i int) string { return strconv.Itoa(i) }

func mustParse(t testing.TB, text string) *Value {
	t.Helper()
	v, _, err := Parse([]byte(text), Limits{})
	if err != nil {
		t.Fatalf("Parse(%.200q): %v", text, err)
	}
	return v
}

func canonical(v *Value) string { return string(AppendCanonical(nil, v)) }

// wantSyntaxError checks that err is a *SyntaxError with the given place.
func wantSyntaxError(t *testing.T, err error, offset int, pointer, reason string) {
	t.Helper()
	var e *SyntaxError
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want a *SyntaxError", err, err)
	}
	if e.Offset != offset || e.Pointer != pointer || e.Reason != reason {
		t.Errorf("got  %+v\nwant {Offset:%d Pointer:%s Reason:%s}", *e, offset, pointer, reason)
	}
}
