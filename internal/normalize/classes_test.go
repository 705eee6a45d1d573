package normalize_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/openlineage"
)

// Each row of the class table, by its effect: two events that differ in that
// field only are what the row's class says.
func TestEveryRowOfTheClassTableHolds(t *testing.T) {
	consequence := map[normalize.Class]fact.Outcome{
		normalize.Identity:  fact.New,
		normalize.Drifting:  fact.Redescribed,
		normalize.Fixed:     fact.Collision,
		normalize.Transport: fact.Equivalent,
	}
	for _, r := range normalize.ClassTable() {
		t.Run(fmt.Sprintf("%s %s %s", r.Container, r.Facet, r.Path), func(t *testing.T) {
			expect(t, consequence[r.Class], rowEvent(t, runEvent, r, 0), rowEvent(t, runEvent, r, 1))
		})
	}
}

// In job and dataset events the description is the statement.
func TestDescriptionsAreIdentityInJobAndDatasetEvents(t *testing.T) {
	base := map[openlineage.Container]string{openlineage.JobFacets: jobEvent, openlineage.DatasetFacets: datasetEvent}
	for _, r := range normalize.ClassTable() {
		event, ok := base[r.Container]
		if !ok {
			continue
		}
		want := fact.New
		if r.Class == normalize.Transport {
			want = fact.Equivalent
		}
		t.Run(fmt.Sprintf("%s %s %s", r.Container, r.Facet, r.Path), func(t *testing.T) {
			expect(t, want, rowEvent(t, event, r, 0), rowEvent(t, event, r, 1))
		})
	}
}

// No rule about one field of a facet takes the facet's base members out of
// transport.
func TestBaseMembersAreTransportInEveryFacet(t *testing.T) {
	for _, r := range normalize.ClassTable() {
		if r.Container == normalize.EventRoot || r.Facet == "*" {
			continue
		}
		for _, member := range []string{"_producer", "_schemaURL"} {
			r.Path = member
			t.Run(fmt.Sprintf("%s %s %s", r.Container, r.Facet, member), func(t *testing.T) {
				expect(t, fact.Equivalent, rowEvent(t, runEvent, r, 0), rowEvent(t, runEvent, r, 1))
			})
		}
	}
}

// rowEvent returns an event with one of two values at the place of a class rule.
func rowEvent(t *testing.T, event string, r normalize.ClassRule, variant int) string {
	path := placeIn(event, r)
	value := [2]string{`"one"`, `"other"`}[variant]
	switch _, selected, _ := strings.Cut(r.Path, "["); {
	case r.Path == "eventTime":
		value = [2]string{`"2026-03-01T05:00:01Z"`, `"2026-03-01T05:00:02Z"`}[variant]
	case strings.Contains(selected, "="):
		member, only, _ := strings.Cut(strings.TrimSuffix(selected, "]"), "=")
		value = fmt.Sprintf(`{%q: %q, "value": %s}`, member, only, value)
	case r.Container != normalize.EventRoot && r.Path == "":
		path += ".member"
	}
	return with(t, event, path, value)
}

// placeIn returns a path, as with reads it, to a place that a rule covers.
func placeIn(event string, r normalize.ClassRule) string {
	// A dot in a key is no step of a path.
	facet := strings.ReplaceAll(strings.ReplaceAll(r.Facet, "*", "any"), ".", keyDot)
	path := r.Path
	if i := strings.Index(path, "[key="); i >= 0 {
		path = path[:i] + "[]"
	}
	path = strings.ReplaceAll(strings.ReplaceAll(path, "[]", ".[]"), "*", "any")
	switch r.Container {
	case openlineage.RunFacets:
		path = "run.facets." + facet + "." + path
	case openlineage.JobFacets:
		path = "job.facets." + facet + "." + path
	case openlineage.DatasetFacets:
		if strings.Contains(event, `"dataset"`) {
			path = "dataset.facets." + facet + "." + path
		} else {
			path = "inputs.[].facets." + facet + "." + path
		}
	case openlineage.InputFacets:
		path = "inputs.[].inputFacets." + facet + "." + path
	case openlineage.OutputFacets:
		path = "outputs.[].outputFacets." + facet + "." + path
	}
	return strings.TrimSuffix(path, ".")
}
