package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/graphd/graphd/internal/httpapi"
	"github.com/graphd/graphd/internal/ingest"
)

// maxEvent bounds one event of a file.
const maxEvent = 256 << 20

// writeJSON writes one line of JSON.
func (a *app) writeJSON(v any) error {
	text, err := httpapi.Encode(v)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(text)
	return err
}

// each calls f with every document of paths. What cannot be read, or f rejects,
// is told on standard error, and is the error at the end.
func (a *app) each(paths []string, f func(ingest.Body) error) error {
	bad := 0
	for body, err := range (ingest.Source{Stdin: a.stdin, MaxBody: maxEvent}).Read(paths...) {
		if err == nil {
			err = f(body)
		}
		var failed *writeError
		switch {
		case errors.As(err, &failed):
			return failed
		case err != nil && body.Number > 0:
			fmt.Fprintf(a.stderr, "graphd: %s: %s\n", body.Place(), printable(err.Error()))
			bad++
		case err != nil:
			fmt.Fprintf(a.stderr, "graphd: %s\n", printable(err.Error()))
			bad++
		}
	}
	if bad > 0 {
		return &statusError{code: exitFailed}
	}
	return nil
}

// writeError is an error of the output: nothing more is worth doing.
type writeError struct{ error }

// printable shows text from outside on a terminal: with nothing in it that a
// terminal would act on, and nothing that is no character.
func printable(s string) string {
	bad := func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
	if strings.IndexFunc(s, bad) < 0 {
		return s
	}
	return strconv.QuoteToGraphic(s)
}
