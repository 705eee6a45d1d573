package ingest

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/graphd/graphd/internal/normalize"
)

// fixture is an event of about 3 KB: a SQL task with column lineage.
func fixture(b *testing.B) []byte {
	b.Helper()
	body, err := os.ReadFile("testdata/event.json")
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// BenchmarkEvent sets what graphd does to an event before it stores it against
// decoding it to any with encoding/json, in one run: docs/performance.md.
func BenchmarkEvent(b *testing.B) {
	body := fixture(b)
	decoder, err := NewDecoder(Options{Names: normalize.DefaultNameRules()})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encoding-json-any", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			var v any
			if err := json.Unmarshal(body, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode-validate-normalise-hash", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := decoder.Decode(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
