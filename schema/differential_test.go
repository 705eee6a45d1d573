package schema

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/graphd/graphd/internal/jsontree"
)

// TestSameVerdictAsTheStandard compares the Validator with the standard's own
// schemas, and with this package's schemas as the library alone reads them: on
// documents as they are, and on mutations of them.
func TestSameVerdictAsTheStandard(t *testing.T) {
	standard, library := newOracle(t), newLibrary(t, embedded)
	v := newValidator(t)
	docs := samples(t)

	compare := func(name string, text []byte, root *jsontree.Value) verdict {
		doc := root.Any()
		got, want, alone := own(t, v, root), standard.verdict(doc), library.verdict(doc)
		if !got.equal(want) || !alone.equal(want) {
			t.Errorf("%s: %s\nthe standard's schemas: %s\nours in the library: %s\n%s", name, got, want, alone, text)
		}
		return want
	}
	for _, d := range docs {
		compare(d.name, nil, d.root)
		if t.Failed() {
			return
		}
	}

	mutations := 12_000
	if testing.Short() {
		mutations = 1_500
	}
	if raceEnabled {
		mutations /= 8
	}
	rejected, invalid, warned := 0, 0, 0
	random := rand.New(rand.NewPCG(2031, 5))
	for i := range mutations {
		// Half of them on the standard's examples, which come first: they
		// are dense with typed members.
		d := docs[random.IntN(len(docs))]
		if i%2 == 0 {
			d = docs[random.IntN(min(len(docs), 60))]
		}
		m := mutator{Rand: random}
		doc := d.root.Any()
		for range 1 + random.IntN(3) {
			doc = m.mutateEvent(doc)
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		root, _, err := jsontree.Parse(text, jsontree.Limits{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got := compare(d.name+", mutated", text, root)
		if !got.accepted {
			rejected++
		}
		if len(got.invalid) > 0 {
			invalid++
		}
		if got.warned {
			warned++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d documents, %d mutations: %d rejected, %d accepted with an invalid facet, %d with a broken format",
		len(docs), mutations, rejected, invalid, warned)
	if min(rejected, invalid, warned) < mutations/20 {
		t.Error("too few mutations reach the rules for the test to mean much")
	}
}

// mutator breaks documents, reproducibly.
type mutator struct{ *rand.Rand }

// mutateEvent changes one place of an event: mostly inside a typed facet, else
// the event would be rejected for something else nearly every time.
func (m mutator) mutateEvent(doc any) any {
	event, ok := doc.(map[string]any)
	switch n := m.IntN(8); {
	case ok && n == 0:
		m.reshape(event)
		return doc
	case ok && n < 7:
		if facets := typedIn(event, nil); len(facets) > 0 {
			facet := facets[m.IntN(len(facets))]
			var keys []string
			for k := range facet {
				if k[0] != '_' {
					keys = append(keys, k)
				}
			}
			slices.Sort(keys)
			switch {
			case len(keys) == 0 || m.IntN(12) == 0:
				facet[m.pick(names)] = m.junk()
			case m.IntN(8) == 0:
				delete(facet, m.pick(keys))
			default:
				k := m.pick(keys)
				facet[k] = m.mutate(facet[k])
			}
			return doc
		}
	}
	return m.mutate(doc)
}

// typedIn lists what stands under the key of a typed facet, in a fixed order.
func typedIn(v any, list []map[string]any) []map[string]any {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			list = typedIn(x, list)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if facet, ok := v[k].(map[string]any); ok && facet["_producer"] != nil && slices.Contains(facetKeys, k) {
				list = append(list, facet)
				continue
			}
			list = typedIn(v[k], list)
		}
	}
	return list
}

// mutate changes one random place of doc, a tree of the kinds that
// encoding/json decodes to; it may change doc itself.
func (m mutator) mutate(doc any) any {
	// Walk down, stopping with a chance that leaves all depths likely.
	switch v := doc.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) > 0 && m.IntN(8) > 0 {
			k := keys[m.IntN(len(keys))]
			if m.IntN(6) == 0 {
				delete(v, k)
			} else {
				v[k] = m.mutate(v[k])
			}
			return v
		}
		switch m.IntN(3) {
		case 0:
			v[m.pick(names)] = m.junk()
			return v
		case 1:
			if len(keys) > 0 {
				v[m.pick(names)] = v[keys[m.IntN(len(keys))]]
				return v
			}
		}
	case []any:
		if len(v) > 0 && m.IntN(8) > 0 {
			i := m.IntN(len(v))
			v[i] = m.mutate(v[i])
			return v
		}
		switch m.IntN(3) {
		case 0:
			return []any{}
		case 1:
			return append(v, m.junk())
		}
	case string:
		if m.IntN(3) == 0 {
			return v + "?" // no enum or const survives
		}
	}
	return m.junk()
}

// reshape changes which kind of event it looks like.
func (m mutator) reshape(event map[string]any) {
	switch m.IntN(5) {
	case 0:
		delete(event, m.pick([]string{"run", "job", "eventTime", "producer", "schemaURL"}))
	case 1:
		event["dataset"] = map[string]any{"namespace": "n", "name": "d"}
	case 2:
		event["dataset"] = m.junk()
	case 3: // an output becomes the dataset of a dataset event
		if list, _ := event["outputs"].([]any); len(list) > 0 {
			event["dataset"] = list[0]
			delete(event, m.pick([]string{"run", "job"}))
			delete(event, m.pick([]string{"run", "job", "x"}))
		}
	case 4:
		if job, _ := event["job"].(map[string]any); job != nil {
			delete(event, "run")
			event["dataset"] = map[string]any{"namespace": "n", "name": m.junk(), "facets": job["facets"]}
		}
	}
}

func (m mutator) pick(list []string) string { return list[m.IntN(len(list))] }

// junk is a value that is wrong nearly everywhere; new each time, since
// mutations change values in place.
func (m mutator) junk() any {
	switch m.IntN(11) {
	case 0:
		return nil
	case 1:
		return true
	case 2:
		return 3.0
	case 3:
		return 0.25
	case 4:
		return "junk"
	case 5:
		return []any{}
	case 6:
		return map[string]any{}
	case 7:
		return []any{nil}
	case 8:
		return map[string]any{"type": m.pick([]string{"JOB", "DATASET", "binary", "field", "literal"}), "name": "n"}
	case 9:
		return map[string]any{"_producer": "p", "_schemaURL": "s", "_deleted": m.junk()}
	}
	return m.pick([]string{"JOB", "DATASET", "START", "DROP", "binary", "compare", "location", "literal"})
}

// names are members that mean something somewhere.
var names = func() []string {
	list := []string{
		"_deleted", "_deleted", "_producer", "_schemaURL", "dataset", "run", "job", "facets", "inputs", "outputs", "eventType",
		"inputFacets", "outputFacets", "namespace", "name", "type", "runId", "field", "fields", "transformations", "masking",
		"value", "key", "partitions", "locations", "left", "right", "comparison", "operator", "root", "other",
		"inputCondition", "outputCondition", "entries",
	}
	return append(list, facetKeys...)
}()

var facetKeys = func() (list []string) {
	for _, f := range TypedFacets() {
		list = append(list, f.Key)
	}
	return list
}()
