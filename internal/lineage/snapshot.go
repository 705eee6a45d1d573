package lineage

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

// WriteSnapshot writes the canonical snapshot: one JSON object a line, sorted by
// its own bytes within each type, types in a fixed order. Two graphs are equal
// if and only if their snapshots are the same bytes. Receipt times, delivery
// counts and which of two bodies came first are not in it.
func (g *Graph) WriteSnapshot(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, lines := range g.snapshot() {
		slices.Sort(lines)
		for _, line := range lines {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	return nil
}

// snapshot returns the lines of each type.
func (g *Graph) snapshot() [][]string {
	types := []struct {
		name  string
		lines func(add func(object))
	}{
		{"event", g.eventLines}, {"observation", g.observationLines}, {"attempt", g.attemptLines}, {"run", g.runLines},
		{"generation", g.generationLines}, {"derivation", g.derivationLines}, {"mapping", g.mappingLines},
		{"dependency", g.dependencyLines}, {"current", g.currentLines}, {"field", g.fieldLines}, {"declared", g.declaredLines},
		{"dataset", g.datasetLines}, {"job", g.jobLines}, {"facet", g.facetLines}, {"version", g.versionLines}, {"group", g.groupLines},
	}
	out := make([][]string, 0, len(types))
	for _, t := range types {
		var lines []string
		t.lines(func(o object) {
			lines = append(lines, string(append(o.str("type", t.name).buf, '}')))
		})
		out = append(out, lines)
	}
	return out
}

// object builds a JSON object member by member.
type object struct{ buf []byte }

func (o object) key(k string) object {
	if len(o.buf) == 0 {
		o.buf = append(o.buf, '{')
	} else {
		o.buf = append(o.buf, ',')
	}
	o.buf = jsontree.AppendString(o.buf, k)
	o.buf = append(o.buf, ':')
	return o
}

// str adds a string, unless it is empty.
func (o object) str(k, v string) object {
	if v == "" {
		return o
	}
	o = o.key(k)
	o.buf = jsontree.AppendString(o.buf, v)
	return o
}

func (o object) raw(k, json string) object {
	if json == "" {
		return o
	}
	o = o.key(k)
	o.buf = append(o.buf, json...)
	return o
}

func (o object) id(k string, v fact.ID) object {
	if v.IsZero() {
		return o
	}
	return o.str(k, v.String())
}

func (o object) run(k string, v RunID) object {
	if v.IsZero() {
		return o
	}
	return o.str(k, v.String())
}

func (o object) time(k string, v openlineage.Instant) object { return o.str(k, v.String()) }

func (o object) flag(k string, v bool) object {
	if !v {
		return o
	}
	return o.raw(k, "true")
}

func (o object) name(k string, v openlineage.Name) object {
	if v == (openlineage.Name{}) {
		return o
	}
	return o.raw(k, object{}.key("namespace").text(v.Namespace).key("name").text(v.Name).end())
}

func (o object) text(v string) object {
	o.buf = jsontree.AppendString(o.buf, v)
	return o
}

func (o object) end() string {
	if len(o.buf) == 0 {
		return "{}"
	}
	return string(append(o.buf, '}'))
}

// list adds an array, unless it is empty.
func list[T any](o object, k string, elems []T, json func(T) string) object {
	if len(elems) == 0 {
		return o
	}
	o = o.key(k)
	for i, e := range elems {
		o.buf = append(o.buf, "[,"[min(i, 1)])
		o.buf = append(o.buf, json(e)...)
	}
	o.buf = append(o.buf, ']')
	return o
}

func quoted[T fmt.Stringer](v T) string  { return strconv.Quote(v.String()) }
func quotedText(s string) string         { return string(jsontree.AppendString(nil, s)) }
func refJSON(r DatasetRef) string        { return object{}.name("dataset", r.Name).end() }
func derivationRef(d *Derivation) string { return quoted(d.ID) }

func (g *Graph) eventLines(add func(object)) {
	for id, c := range g.Events {
		add(list(object{}.id("id", id).str("kind", string(c.Kind)), "contents", c.Digests, quoted[fact.ID]))
	}
}

func (g *Graph) observationLines(add func(object)) {
	for subject, observations := range g.Observations {
		for i := range observations {
			p := &observations[i]
			o := object{}.id("subject", subject).id("event", p.Event).id("content", p.Content).str("eventType", string(p.Type)).
				time("first", p.First)
			if p.Last != p.First {
				o = o.time("last", p.Last)
			}
			o = refLine(o, "parent", p.Parent)
			if p.Kind == fact.AttemptSubject {
				o = o.str("rule", p.Slot.Rule.String()).raw("slot", p.Slot.Value)
			}
			add(o.flag("backfill", p.Backfill).raw("detail", p.Detail))
		}
	}
}

func refLine(o object, k string, r fact.RunRef) object {
	if r.IsZero() {
		return o
	}
	return o.raw(k, object{}.name("job", r.Job).str("runId", r.RunID).end())
}

func (g *Graph) attemptLines(add func(object)) {
	for _, a := range g.Attempts {
		o := object{}.id("id", a.Key).name("job", a.Attempt.Job).str("runId", a.Attempt.RunID)
		if a.Attempt.Map != fact.NoMap {
			o = o.raw("map", strconv.Itoa(a.Attempt.Map))
		}
		o = o.run("run", a.Run).str("state", string(a.State())).str("rule", a.Own.Slot.Rule.String()).raw("slot", a.Own.Slot.Value)
		o = refLine(o, "parent", a.Own.Parent).run("root", a.Root).run("top", a.Top).flag("backfill", a.Placement.Backfill).flag("cycle", a.Cycle)
		o = list(o, "episodes", a.Episodes, func(e Episode) string {
			return object{}.str("state", string(e.State)).time("first", e.First).time("last", e.Last).time("ended", e.Ended).
				flag("continuous", e.Continuous).flag("asserts", e.Asserts(a.ParentCompleted)).raw("said", saidJSON(e.Said)).end()
		})
		add(list(o, "warnings", a.Warnings, quotedText))
	}
}

// saidJSON writes what an episode or a declaration says.
func saidJSON(s *Said) string {
	if s == nil {
		return ""
	}
	o := list(object{}, "inputs", s.Inputs, func(in InputSaid) string {
		return list(object{}.name("dataset", in.Name).str("version", in.Version), "subsets", in.Subsets, quotedText).end()
	})
	o = list(o, "outputs", s.Outputs, func(out OutputSaid) string {
		p := object{}.name("dataset", out.Name).str("version", out.Version).flag("dropped", out.Dropped)
		p = list(p, "subsets", out.Subsets, quotedText)
		p = list(p, "derivations", out.Derivations, derivationRef)
		if out.Mapping != nil {
			p = p.id("mapping", out.Mapping.ID)
		}
		if out.Rename != nil {
			p = p.name("renamedFrom", out.Rename.From.Name)
		}
		return p.end()
	})
	o = list(o, "reads", s.Reads, derivationRef)
	return list(o, "depends", s.Depends, func(d Dependency) string { return quoted(d.ID) }).end()
}

func (g *Graph) runLines(add func(object)) {
	for _, r := range g.Runs {
		o := object{}.run("id", r.ID).name("job", r.Job).str("rule", r.Slot.Rule.String()).raw("slot", r.Slot.Value).run("under", r.Under).
			raw("attempts", strconv.Itoa(r.Attempts)).str("state", string(r.State)).id("newest", r.Newest).
			run("parent", r.Parent).run("root", r.Root).run("top", r.Top).flag("backfill", r.Backfill).flag("ended", r.Terminal).
			time("first", r.First).time("last", r.Last)
		add(list(o, "asserts", r.Word, func(a Assertion) string {
			return object{}.id("attempt", a.Attempt).time("time", a.Time).flag("finished", a.Finished).raw("said", saidJSON(a.Said)).end()
		}))
	}
}

func (g *Graph) generationLines(add func(object)) {
	for _, r := range g.Generations {
		add(object{}.id("id", r.ID).name("job", r.Job).run("root", r.Root).raw("runs", strconv.Itoa(r.Runs)).
			raw("finished", strconv.Itoa(r.Finished)).flag("open", r.Open).flag("backfill", r.Backfill()).
			time("first", r.First).time("last", r.Last))
	}
}

func (g *Graph) derivationLines(add func(object)) {
	for _, d := range g.Derivations {
		o := object{}.id("id", d.ID).name("job", d.Job)
		o = list(o, "inputs", d.Inputs, func(s Source) string {
			return object{}.name("dataset", s.Name).str("basis", string(s.Basis)).end()
		})
		add(list(o, "outputs", d.Outputs, refJSON))
	}
}

func (g *Graph) mappingLines(add func(object)) {
	for _, m := range g.Mappings {
		add(list(object{}.id("id", m.ID).name("job", m.Job).name("output", m.Output.Name), "entries", m.Entries, func(e fact.ColumnEntry) string {
			return object{}.str("field", e.Field).name("source", e.Source).str("sourceField", e.SourceField).
				raw("transformations", e.Transformations).end()
		}))
	}
}

func (g *Graph) dependencyLines(add func(object)) {
	for id, d := range g.Dependencies {
		add(object{}.id("id", id).name("upstream", d.Upstream).name("downstream", d.Downstream).flag("current", g.DependsNow[id]))
	}
}

func (g *Graph) currentLines(add func(object)) {
	for jo, sel := range g.Selected {
		if len(g.Current[jo]) == 0 {
			continue
		}
		o := object{}.name("job", g.Jobs[jo.job]).name("output", g.Datasets[jo.output])
		o = list(o, "generations", sel.Generations, quoted[fact.ID])
		o = list(o, "declared", sel.Declared, itemJSON)
		add(list(o, "items", g.Current[jo], itemJSON))
	}
}

func itemJSON(it item) string {
	names := map[itemKind]string{derivationItem: "derivation", mappingItem: "mapping", dependencyItem: "dependency", renameItem: "rename"}
	return object{}.id(names[it.kind], it.id).end()
}

func (g *Graph) fieldLines(add func(object)) {
	for _, r := range g.Fields {
		add(object{}.name("job", r.Job).name("from", r.From.Name).str("fromField", r.FromField).
			name("to", r.To.Name).str("toField", r.ToField).raw("transformations", r.Transformations))
	}
}

func (g *Graph) declaredLines(add func(object)) {
	for _, d := range g.Declared {
		add(object{}.name("job", d.Job).name("dataset", d.Dataset).id("event", d.Event).time("time", d.Time).raw("said", saidJSON(d.Said)))
	}
}

func (g *Graph) datasetLines(add func(object)) {
	for id, n := range g.Datasets {
		add(object{}.id("id", id).name("dataset", n).time("dropped", g.Dropped[id]))
	}
}

func (g *Graph) jobLines(add func(object)) {
	for id, n := range g.Jobs {
		add(object{}.id("id", id).name("job", n))
	}
}

func (g *Graph) facetLines(add func(object)) {
	now := g.facetsNow()
	for _, r := range g.Facets {
		o := object{}.str("of", string(r.Kind)).id("entity", r.Entity).str("key", r.Key).raw("value", r.Value).flag("deleted", r.Value == "").flag("invalid", r.Invalid)
		add(o.time("first", r.First).time("last", r.Last).flag("current", now[facetPlace(&r)].Digest == r.Digest))
	}
}

// versionLines lists what runs wrote: a dataset's version is its version facet,
// else the attempt.
func (g *Graph) versionLines(add func(object)) {
	type version struct {
		dataset openlineage.Name
		version string
		attempt fact.ID
	}
	runs := map[version]map[RunID]bool{}
	for _, r := range g.Runs {
		for _, a := range r.Word {
			for i := range a.Said.Outputs {
				out := &a.Said.Outputs[i]
				v := version{dataset: out.Name, version: out.Version}
				if v.version == "" {
					v.attempt = a.Attempt
				}
				if runs[v] == nil {
					runs[v] = map[RunID]bool{}
				}
				runs[v][r.ID] = true
			}
		}
	}
	for v, ids := range runs {
		writers := slices.SortedFunc(maps.Keys(ids), func(a, b RunID) int { return slices.Compare(a[:], b[:]) })
		add(list(object{}.name("dataset", v.dataset).str("version", v.version).id("attempt", v.attempt), "runs", writers, quoted[RunID]))
	}
}

// groupLines lists the datasets that are walked as one.
func (g *Graph) groupLines(add func(object)) {
	neighbours := map[fact.ID][]fact.ID{}
	for l := range g.Links {
		neighbours[l[0]] = append(neighbours[l[0]], l[1])
	}
	seen := map[fact.ID]bool{}
	for id := range neighbours {
		if seen[id] {
			continue
		}
		seen[id] = true
		group := []fact.ID{id}
		for i := 0; i < len(group); i++ {
			for _, n := range neighbours[group[i]] {
				if !seen[n] {
					seen[n] = true
					group = append(group, n)
				}
			}
		}
		names := make([]openlineage.Name, 0, len(group))
		for _, member := range group {
			names = append(names, g.Datasets[member])
		}
		slices.SortFunc(names, openlineage.Name.Compare)
		add(list(object{}, "datasets", names, func(n openlineage.Name) string { return object{}.name("dataset", n).end() }))
	}
}
