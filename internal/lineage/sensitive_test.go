package lineage_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/openlineage"
)

// TestSnapshotOmitsNothing takes one thing out of a graph at a time: an oracle
// that does not see it is blind to every mistake in it.
func TestSnapshotOmitsNothing(t *testing.T) {
	unlisted := map[string]string{
		"Links":   "each is there twice, once from each end",
		"Renames": "they stand in what the run says that made them",
	}
	tried, missed := map[string]bool{}, map[string]bool{}
	fields := reflect.TypeFor[lineage.Graph]()
	for seed := range streams(150) {
		rng := rand.New(rand.NewPCG(seed, 2))
		g := lineage.Fold(decoder(t).Version(), decode(t, lineagetest.Stream(rng, streamLength)...))
		want := snapshot(t, g)
		for i := range fields.NumField() {
			field, name := reflect.ValueOf(g).Elem().Field(i), fields.Field(i).Name
			if field.Len() == 0 || unlisted[name] != "" {
				continue
			}
			keys := field.MapKeys()
			key := keys[rng.IntN(len(keys))]
			if name == "Selected" && !currentHas(g, key) {
				continue // selected for what only says that nothing is fed
			}
			tried[name] = true
			value := field.MapIndex(key)
			field.SetMapIndex(key, reflect.Value{})
			if snapshot(t, g) == want && !missed[name] {
				missed[name] = true
				t.Errorf("seed %d: an entry of %s is in no line", seed, name)
			}
			field.SetMapIndex(key, value)
		}
	}
	for i := range fields.NumField() {
		if name := fields.Field(i).Name; !tried[name] && unlisted[name] == "" {
			t.Errorf("no stream has any %s", name)
		}
	}
}

func currentHas(g *lineage.Graph, key reflect.Value) bool {
	return reflect.ValueOf(g.Current).MapIndex(key).IsValid()
}

// mutation changes one body; it is applied to events for which the change
// matters.
type mutation struct {
	name string
	// derived says that more than events and observations must change.
	derived bool
	apply   func(body map[string]any, e *fact.Event, alone bool) bool
}

var mutations = []mutation{
	{"another outcome", true, func(body map[string]any, e *fact.Event, alone bool) bool {
		if !alone || e.Type != openlineage.Complete {
			return false
		}
		body["eventType"] = "FAIL"
		return true
	}},
	{"another time", true, func(body map[string]any, e *fact.Event, alone bool) bool {
		body["eventTime"] = e.Time.Time().Add(time.Second).Format(time.RFC3339Nano)
		return alone
	}},
	{"another input", true, func(body map[string]any, e *fact.Event, alone bool) bool {
		if inputs, ok := body["inputs"].([]any); ok {
			inputs[0].(map[string]any)["name"] = "another"
			return alone
		}
		return false
	}},
	{"another parent", true, func(body map[string]any, e *fact.Event, alone bool) bool {
		if e.Parent.IsZero() {
			return false
		}
		at(body, "run", "facets", "parent", "run")["runId"] = lineagetest.RunID("another")
		return alone
	}},
	{"another slot", true, func(body map[string]any, e *fact.Event, alone bool) bool {
		if e.Slot.Rule != fact.RuleNominal {
			return false
		}
		at(body, "run", "facets", "nominalTime")["nominalStartTime"] = "2020-01-01T00:00:00Z"
		return alone
	}},
	{"another column", true, func(body map[string]any, e *fact.Event, alone bool) bool {
		for _, o := range e.Statement.Outputs {
			if o.Columns == nil || len(o.Columns.Entries) == 0 || e.Statement.Lineage != nil || o.Lineage != nil || o.Lifecycle != nil || len(e.Statement.Outputs) > 1 {
				continue
			}
			output := body["outputs"].([]any)[0].(map[string]any)
			for _, field := range at(output, "facets", "columnLineage", "fields") {
				sources := field.(map[string]any)["inputFields"].([]any)
				sources[0].(map[string]any)["field"] = "another"
				return alone && sources[0].(map[string]any)["name"] != "s.__dbt__cte__x"
			}
		}
		return false
	}},
	{"another description", true, func(body map[string]any, e *fact.Event, alone bool) bool {
		if e.Kind == openlineage.DatasetEvent {
			return false
		}
		at(body, "job", "facets")["documentation"] = map[string]any{
			"_producer": "https://example.com", "_schemaURL": "https://example.com/x.json", "description": "another"}
		return true
	}},
	{"another parameter", false, func(body map[string]any, e *fact.Event, alone bool) bool {
		if e.Kind != openlineage.RunEvent {
			return false
		}
		at(body, "run", "facets")["executionParameters"] = map[string]any{
			"_producer": "https://example.com", "_schemaURL": "https://example.com/x.json",
			"parameters": []any{map[string]any{"key": "p", "value": "another"}}}
		return true
	}},
}

func at(body map[string]any, path ...string) map[string]any {
	for _, key := range path {
		if body[key] == nil {
			body[key] = map[string]any{}
		}
		body = body[key].(map[string]any)
	}
	return body
}

func TestWhatMattersChangesTheSnapshot(t *testing.T) {
	d := decoder(t)
	applied := map[string]int{}
	for seed := range streams(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		bodies := lineagetest.Stream(rng, streamLength)
		events := decode(t, bodies...)
		want := snapshot(t, lineage.Fold(d.Version(), events))
		for _, m := range mutations {
			i := rng.IntN(len(events))
			var body map[string]any
			if err := json.Unmarshal(bodies[i], &body); err != nil {
				t.Fatal(err)
			}
			if !m.apply(body, events[i], isAlone(events, i)) {
				continue
			}
			mutated, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			changed := append([]*fact.Event{}, events...)
			changed[i] = decode(t, mutated)[0]
			got := snapshot(t, lineage.Fold(d.Version(), changed))
			applied[m.name]++
			if m.derived && derivedLines(got) == derivedLines(want) || got == want {
				t.Errorf("seed %d: %s of event %d changes nothing:\n%s\n%s", seed, m.name, i, bodies[i], mutated)
			}
		}
	}
	for _, m := range mutations {
		if applied[m.name] == 0 {
			t.Errorf("%s was never tried", m.name)
		}
	}
}

// isAlone reports whether an event is the only one of its run, so that nothing
// else says or hides what it says.
func isAlone(events []*fact.Event, at int) bool {
	e := events[at]
	if e.Kind != openlineage.RunEvent {
		return false
	}
	for i, other := range events {
		if i != at && other.Attempt.Ref() == e.Attempt.Ref() {
			return false
		}
	}
	return true
}

// derivedLines are the lines of a snapshot that say what was concluded.
func derivedLines(snapshot string) string {
	var b strings.Builder
	for _, line := range strings.Split(snapshot, "\n") {
		if !strings.HasSuffix(line, `"type":"event"}`) && !strings.HasSuffix(line, `"type":"observation"}`) {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
