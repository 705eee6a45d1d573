package normalize_test

import (
	"errors"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/openlineage"
)

// FuzzEvent feeds any JSON, valid event or not: nothing panics, every error is a
// rejection, and what is accepted is the same event and says the same when its
// canonical form is sent.
func FuzzEvent(f *testing.F) {
	for _, event := range []string{
		runEvent, jobEvent, datasetEvent, bare, `{}`, `[]`, `"x"`, `{"run": [], "job": [{}], "inputs": {"a": {"facets": []}}, "eventTime": "2026-03-01T05:00:00"}`,
		`{"eventTime": "2026-03-01T05:00:00Z", "run": {"runId": "r", "facets": {"parent": {"run": {"runId": "p"}, "job": {"name": "j"}}, "airflow": {"taskInstance": {"map_index": 1e300}}}}}`,
		`{"eventTime": "2026-03-01T05:00:00Z", "job": {"facets": {"lineage": {"entries": [{"type": "JOB"}, null, {"fields": [1]}]}}}}`,
	} {
		f.Add([]byte(event), uint8(0))
	}
	for seed := range uint64(8) {
		f.Add([]byte(spell(newGenerator(seed).runEvent(), seed)), uint8(seed))
	}
	n := normalizer(f,
		normalize.ClassRule{Container: "run", Facet: "*", Path: "a[x=y].b", Class: normalize.Transport},
		normalize.ClassRule{Producer: "*p*", Container: "dataset", Facet: "a*", Path: "*[].c", Class: normalize.Drifting})
	f.Fuzz(func(t *testing.T, data []byte, rejected uint8) {
		root, _, err := jsontree.Parse(data, jsontree.Limits{})
		if err != nil {
			t.Skip()
		}
		again, _, err := jsontree.Parse(jsontree.AppendCanonical(nil, root), jsontree.Limits{Canonical: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []openlineage.Kind{openlineage.RunEvent, openlineage.JobEvent, openlineage.DatasetEvent} {
			// Some facets are invalid, the same ones in both spellings.
			invalid := func(v *jsontree.Value) bool { return v.Len()%4 == int(rejected%8) }
			one, err := n.Event(normalize.Input{Root: root, Kind: kind, Invalid: invalid})
			other, errOther := n.Event(normalize.Input{Root: again, Kind: kind, Invalid: invalid})
			if err != nil || errOther != nil {
				var no *normalize.Rejection
				if !errors.As(err, &no) || !errors.As(errOther, &no) {
					t.Fatalf("%v; its canonical form: %v", err, errOther)
				}
				continue
			}
			if o := outcomeOf(one, other); o != fact.Retry {
				t.Errorf("its canonical form is %s", o)
			}
			if a, b := distinct(t, one.Statement), distinct(t, other.Statement); a != b || one.Detail != other.Detail || one.Slot != other.Slot {
				t.Errorf("its canonical form says\n%s\n%s", a, b)
			}
			x, err := n.Explain(normalize.Input{Root: root, Kind: kind, Invalid: invalid})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := jsontree.Parse(x.Document, jsontree.Limits{Canonical: true}); err != nil {
				t.Errorf("the identity document is no JSON: %v\n%s", err, x.Document)
			}
		}
	})
}
