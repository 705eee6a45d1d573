package normalize_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/graphd/graphd/internal/normalize"
)

// A random event is a tree that knows which of its parts are the same however
// they are spelled (spell_test.go writes it) and of which class each leaf is.
type (
	object []member
	member struct {
		key   text
		value any
	}
	list []any // an array that keeps its order
	set  []any // an array that is a set
	// datasets is a set whose elements must have names.
	datasets []any

	text    []rune // may hold lone surrogates, never the two halves of a pair
	instant int64  // seconds since 2026-01-01T00:00:00Z
	uuid    string
	number  struct {
		negative bool
		digits   string // no zero at either end; "" is zero
		exponent int
	}
	// leaf is a value that a test can change.
	leaf struct {
		value any
		class normalize.Class
	}
)

// generator makes random events.
type generator struct {
	*rand.Rand
	leaves []*leaf
	class  normalize.Class // of the leaves made now
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 1)), class: normalize.Identity}
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) leaf(value any) *leaf {
	l := &leaf{value, g.class}
	g.leaves = append(g.leaves, l)
	return l
}

// as makes leaves of another class.
func (g *generator) as(class normalize.Class, make func() any) any {
	before := g.class
	g.class = class
	defer func() { g.class = before }()
	return make()
}

func (g *generator) transport(value any) any {
	return g.as(normalize.Transport, func() any { return g.leaf(value) })
}

func named(pairs ...any) (o object) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != nil {
			o = append(o, member{text(pairs[i].(string)), pairs[i+1]})
		}
	}
	return o
}

// maybe returns nil instead of a value, so that named leaves its member out.
func (g *generator) maybe(percent int, make func() any) any {
	if !g.chance(percent) {
		return nil
	}
	return make()
}

// pieces of text: composed and decomposed, both orders of marks, compatibility
// characters, astral ones, controls, and halves of pairs.
var pieces = []text{
	text("a"), text("Z9"), text(" "), text("é"), text("e\u0301"), text("\u212b"), text("가"), text("ﬁ"), text("a\u0307\u0323"),
	text("\u0323"), text("😀"), text("\uff5e"), text(`"\`), text("\x00\x1f\x7f"), text("\n\t/"), text("\u2028<&>"),
	{0xd800}, {0xdfff}, {0xdbff, 'x'}, text("\u1100\u1161"),
}

func (g *generator) text() (t text) {
	for range 1 + g.IntN(4) {
		p := pieces[g.IntN(len(pieces))]
		if len(t) > 0 && t[len(t)-1]&^0x3ff == 0xd800 && p[0]&^0x3ff == 0xdc00 {
			continue
		}
		t = append(t, p...)
	}
	if len(t) == 0 {
		return text("x")
	}
	return t
}

func (g *generator) number() number {
	n := number{negative: g.chance(30)}
	for range g.IntN(24) {
		n.digits += string(rune('0' + g.IntN(10)))
	}
	n.digits = strings.Trim(n.digits, "0")
	n.exponent = g.IntN(60) - 30
	return n
}

// tree is any value; its depth is bounded.
func (g *generator) tree(depth int) any {
	kind := g.IntN(8)
	if depth <= 0 {
		kind = g.IntN(5)
	}
	switch kind {
	case 0:
		return g.leaf(g.number())
	case 1:
		return g.leaf(g.chance(50))
	case 2, 3, 4:
		return g.leaf(g.text())
	case 5:
		l := list{}
		for range g.IntN(4) {
			if g.chance(10) {
				l = append(l, nil)
			}
			l = append(l, g.tree(depth-1))
		}
		return l
	}
	o := object{}
	for i := range g.IntN(4) {
		o = append(o, member{append(text(fmt.Sprintf("k%d_", i)), g.text()...), g.tree(depth - 1)})
	}
	if g.chance(20) {
		o = append(o, member{text("nominalStartTime"), g.leaf(instant(g.IntN(1 << 20)))})
	}
	return o
}

func (g *generator) custom() any {
	return named("_producer", g.transport(g.text()), "_schemaURL", g.transport(g.text()), "field", g.tree(3), "list", g.tree(2))
}

func (g *generator) described(class normalize.Class) any {
	return g.as(class, func() any {
		return named("_producer", g.transport(g.text()), "name", g.leaf(g.text()), "more", g.tree(1))
	})
}

func (g *generator) some(most int, make func() any) (elems []any) {
	for range g.IntN(most + 1) {
		elems = append(elems, make())
	}
	return elems
}

func (g *generator) name() object {
	namespaces := []text{text("s3://lake"), text("db"), text("bigquery"), g.text()}
	o := named("namespace", g.leaf(namespaces[g.IntN(len(namespaces))]))
	// The number keeps two names apart that could else become equal.
	return append(o, member{text("name"), g.leaf(append(text(fmt.Sprintf("t%d/", g.IntN(1<<30))), g.text()...))})
}

func (g *generator) transformations() any {
	return set(g.some(2, func() any {
		return named("type", g.leaf(text("DIRECT")), "subtype", g.leaf(g.text()), "masking", g.leaf(g.chance(50)))
	}))
}

func (g *generator) source(extra ...any) object {
	o := append(g.name(), named("field", g.leaf(g.text()), "transformations", g.maybe(50, g.transformations))...)
	return append(o, named(extra...)...)
}

func (g *generator) columnLineage() any {
	field := func() any {
		return named("inputFields", set(g.some(3, func() any { return g.source() })))
	}
	return named("_producer", g.transport(g.text()),
		"fields", named("a", g.maybe(70, field), "b", g.maybe(50, field)),
		"dataset", g.maybe(50, func() any { return set(g.some(2, func() any { return g.source() })) }))
}

func (g *generator) explicitInputs() any {
	return set(g.some(2, func() any {
		return g.source("type", g.leaf(text("DATASET")), "runId", g.maybe(30, func() any { return g.transport(g.text()) }))
	}))
}

func (g *generator) lineage() any {
	entry := func() any {
		return append(g.name(), named("type", g.leaf(text("DATASET")), "inputs", g.maybe(70, g.explicitInputs),
			"fields", g.maybe(50, func() any { return named("f", named("inputs", g.explicitInputs())) }))...)
	}
	return named("_producer", g.transport(g.text()), "entries", set(g.some(3, entry)))
}

func (g *generator) datasets(role string) any {
	return datasets(g.some(3, func() any {
		facets := named(
			"schema", g.maybe(50, func() any {
				return named("fields", list(g.some(3, func() any { return named("name", g.leaf(g.text())) })))
			}),
			"version", g.maybe(30, func() any { return named("datasetVersion", g.leaf(g.text())) }),
			"columnLineage", g.maybe(40, g.columnLineage),
			"storage", g.maybe(40, func() any { return g.described(normalize.Fixed) }),
			"documentation", g.maybe(40, func() any { return g.described(normalize.Drifting) }),
			"acme", g.maybe(30, g.custom))
		statistics := named("inputStatistics", g.maybe(50, func() any { return named("rowCount", g.leaf(g.number())) }))
		return append(g.name(), named("facets", facets, role+"Facets", statistics)...)
	}))
}

// runEvent is a run event of some slot.
func (g *generator) runEvent() object {
	slot := g.IntN(3)
	class := normalize.Transport
	if slot == 0 {
		class = normalize.Identity
	}
	runID := g.as(class, func() any { return g.leaf(uuid("0198a000-0000-7000-8000-00000000abcd")) })
	facets := named(
		"nominalTime", g.maybe(100*min(slot, 1), func() any {
			return named("nominalStartTime", g.leaf(instant(g.IntN(1<<20))), "nominalEndTime", g.transport(g.text()))
		}),
		"airflow", g.maybe(100*max(0, slot-1), func() any {
			return named("dag", named("dag_id", g.leaf(text("d")), "owner", g.as(normalize.Drifting, func() any { return g.leaf(g.text()) })),
				"dagRun", named("run_id", g.leaf(g.text()), "start_date", g.transport(g.text()), "conf", g.tree(2)),
				"task", named("task_id", g.leaf(g.text())), "taskInstance", named("try_number", g.transport(g.number())))
		}),
		"parent", g.maybe(50, func() any {
			return named("job", g.name(), "run", named("runId", g.transport(uuid("0198a000-0000-7000-8000-0000000000ef"))))
		}),
		"tags", g.maybe(50, func() any {
			return named("tags", set(g.some(3, func() any { return named("key", g.leaf(g.text()), "value", g.leaf(g.text())) })))
		}),
		"executionParameters", g.maybe(50, func() any {
			return named("parameters", set(g.some(3, func() any { return named("key", g.leaf(g.text()), "value", g.tree(2)) })))
		}),
		"errorMessage", g.maybe(30, func() any { return g.described(normalize.Transport) }),
		"acme", g.maybe(80, g.custom))
	jobFacets := named(
		"sql", g.maybe(50, func() any { return named("query", g.leaf(g.text())) }),
		"ownership", g.maybe(50, func() any { return g.described(normalize.Drifting) }),
		"jobType", g.maybe(50, func() any {
			return named("processingType", g.leaf(g.text()), "integration", g.as(normalize.Fixed, func() any { return g.leaf(g.text()) }))
		}),
		"lineage", g.maybe(30, g.lineage))
	return named(
		"eventTime", &leaf{instant(g.IntN(1 << 20)), 0}, // a change of it must leave a time
		"eventType", g.leaf(text("COMPLETE")),
		"producer", g.transport(g.text()), "schemaURL", g.transport(g.text()),
		"run", named("runId", runID, "facets", facets),
		"job", append(g.name(), named("facets", jobFacets)...),
		"inputs", g.datasets("input"), "outputs", g.datasets("output"))
}
