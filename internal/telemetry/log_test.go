package telemetry

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// loud is an error that tells more when it is asked for all.
type loud struct{}

func (loud) Error() string { return "short" }

func (loud) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "short\n(1) attached stack trace") }

func TestErrorsAreLoggedAsTheirText(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var b strings.Builder
		log, err := NewLogger(&b, LogOptions{Level: "info", Format: format})
		if err != nil {
			t.Fatal(err)
		}
		log.Error("it failed", "error", loud{}, "also", errors.New("plain"))
		if got := b.String(); strings.Contains(got, "stack") || !strings.Contains(got, "short") || !strings.Contains(got, "plain") || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %s", format, got)
		}
	}
}
