package normalize_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/openlineage"
)

// The events that tests start from. The run has a slot, so that its runId is
// transport.
const (
	runEvent = `{
		"eventTime": "2026-03-01T05:00:00Z", "eventType": "COMPLETE",
		"producer": "https://example.com/producer/1", "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
		"run": {"runId": "0198a000-0000-7000-8000-00000000000a", "facets": {"nominalTime": {"nominalStartTime": "2026-03-01T00:00:00Z"}}},
		"job": {"namespace": "n", "name": "daily"}
	}`
	jobEvent = `{
		"eventTime": "2026-03-01T05:00:00Z", "producer": "https://example.com/producer/1",
		"schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobEvent",
		"job": {"namespace": "n", "name": "daily"}
	}`
	datasetEvent = `{
		"eventTime": "2026-03-01T05:00:00Z", "producer": "https://example.com/producer/1",
		"schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
		"dataset": {"namespace": "db", "name": "orders"}
	}`
)

// keyDot stands for a dot inside a key, in the paths that with takes.
const keyDot = "\x00"

// with returns an event in which values, given as JSON text, stand at the places
// that dotted paths name; "[]" appends to an array.
func with(t testing.TB, event string, pathsAndValues ...string) string {
	t.Helper()
	var root any = json.RawMessage(event)
	for i := 0; i < len(pathsAndValues); i += 2 {
		root = put(t, root, strings.Split(pathsAndValues[i], "."), json.RawMessage(pathsAndValues[i+1]))
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(root); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// put keeps what it need not open as it is spelled.
func put(t testing.TB, v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if raw, ok := v.(json.RawMessage); ok {
		v = open(t, raw)
	}
	if path[0] == "[]" {
		list, _ := v.([]any)
		return append(list, put(t, nil, path[1:], value))
	}
	if list, ok := v.([]any); ok {
		if i, err := strconv.Atoi(path[0]); err == nil {
			list[i] = put(t, list[i], path[1:], value)
			return list
		}
	}
	object, ok := v.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	key := strings.ReplaceAll(path[0], keyDot, ".")
	object[key] = put(t, object[key], path[1:], value)
	return object
}

// open decodes an object or an array by one level.
func open(t testing.TB, raw json.RawMessage) any {
	t.Helper()
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		items := make([]any, len(list))
		for i := range list {
			items[i] = list[i]
		}
		return items
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	object := map[string]any{}
	for key, value := range members {
		object[key] = value
	}
	return object
}

// normalizer returns one with an operator's rules.
func normalizer(t testing.TB, rules ...normalize.ClassRule) *normalize.Normalizer {
	t.Helper()
	n, err := normalize.New(normalize.Options{Rules: rules, SchemaDigest: "schemas", Names: normalize.DefaultNameRules()})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// input reads an event of whatever kind its shape says. No facet is invalid.
func input(t testing.TB, event string) normalize.Input {
	t.Helper()
	root, stats, err := jsontree.Parse([]byte(event), jsontree.Limits{})
	if err != nil {
		t.Fatalf("%v: %s", err, event)
	}
	return normalize.Input{Root: root, Kind: kindOf(root), Invalid: func(*jsontree.Value) bool { return false }, Stats: stats}
}

func kindOf(root *jsontree.Value) openlineage.Kind {
	switch {
	case root.Get("run") != nil:
		return openlineage.RunEvent
	case root.Get("job") != nil:
		return openlineage.JobEvent
	}
	return openlineage.DatasetEvent
}

// factOf returns what an event states.
func factOf(t testing.TB, n *normalize.Normalizer, event string) *fact.Event {
	t.Helper()
	e, err := n.Event(input(t, event))
	if err != nil {
		t.Fatalf("%v: %s", err, event)
	}
	return e
}

// document returns an event's identity document.
func document(t testing.TB, n *normalize.Normalizer, event string) string {
	t.Helper()
	x, err := n.Explain(input(t, event))
	if err != nil {
		t.Fatalf("%v: %s", err, event)
	}
	return string(x.Document)
}

// outcomeOf returns what the second of two deliveries is.
func outcomeOf(first, second *fact.Event) fact.Outcome {
	switch {
	case first.ID != second.ID:
		return fact.New
	case first.Content != second.Content:
		return fact.Collision
	case first.Drift != second.Drift:
		return fact.Redescribed
	case first.Body != second.Body:
		return fact.Equivalent
	}
	return fact.Retry
}

// expect checks what second is after first.
func expect(t *testing.T, want fact.Outcome, first, second string) {
	t.Helper()
	n := normalizer(t)
	if got := outcomeOf(factOf(t, n, first), factOf(t, n, second)); got != want {
		t.Errorf("is %s, want %s\n%s\n%s", got, want, document(t, n, first), document(t, n, second))
	}
}
