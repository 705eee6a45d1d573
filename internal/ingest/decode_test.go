package ingest

import (
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/normalize"
)

// TestWarningsHoldNoCredentials: a connection URI that is no URI is quoted
// nowhere, and neither is what else a dataSource facet holds.
func TestWarningsHoldNoCredentials(t *testing.T) {
	decoder, err := NewDecoder(Options{Names: normalize.DefaultNameRules()})
	if err != nil {
		t.Fatal(err)
	}
	for _, facet := range []string{`"name":"x","uri":"//u:s3cr3tp@h/x/"`, `"name":"x","uri":["s3cr3tp"]`, `"name":{"s3cr3tp":1},"uri":"u:s3cr3tp@h"`} {
		e, err := decoder.Decode([]byte(`{"eventType":"START","eventTime":"2026-11-30T00:00:00Z","producer":"https://example.com/p",` +
			`"schemaURL":"https://example.com/s","run":{"runId":"0197f1c2-9d00-7aaa-8a3e-2f6d1b5e9a10"},"job":{"namespace":"n","name":"j"},` +
			`"inputs":[{"namespace":"n","name":"d","facets":{"dataSource":{"_producer":"https://example.com/p","_schemaURL":"https://example.com/s",` + facet + `}}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Warnings) == 0 {
			t.Errorf("%s: no warning", facet)
		}
		for _, w := range e.Warnings {
			if strings.Contains(w.Detail, "s3cr3t") {
				t.Errorf("%s: warning %+v", facet, w)
			}
		}
	}
}
