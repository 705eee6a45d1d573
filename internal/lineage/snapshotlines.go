package lineage

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/graphd/graphd/internal/fact"
)

// The lines of a snapshot, type by type.

func (s *snapshot) events() {
	for id, c := range s.view.events() {
		s.add(list(object{}.id("id", id).str("kind", string(c.Kind)), "contents", c.Digests, quoted[fact.ID]))
	}
}

func (s *snapshot) observations() {
	for subject, p := range s.view.observations() {
		o := object{}.id("subject", subject).id("event", p.Event).id("content", p.Content).str("eventType", string(p.Type)).
			time("first", p.First)
		if p.Last != p.First {
			o = o.time("last", p.Last)
		}
		o = refLine(o, "parent", p.Parent)
		if p.Kind == fact.AttemptSubject {
			o = o.str("rule", p.Slot.Rule.String()).raw("slot", p.Slot.Value)
		}
		s.add(o.flag("backfill", p.Backfill).raw("detail", p.Detail))
	}
}

func refLine(o object, k string, r fact.RunRef) object {
	if r.IsZero() {
		return o
	}
	return o.raw(k, object{}.name("job", r.Job).str("runId", r.RunID).end())
}

func (s *snapshot) attempts() {
	for a := range s.view.attempts() {
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
		s.add(list(o, "warnings", a.Warnings, quotedText))
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

func (s *snapshot) runs() {
	for r := range s.view.runs() {
		o := object{}.run("id", r.ID).name("job", r.Job).str("rule", r.Slot.Rule.String()).raw("slot", r.Slot.Value).run("under", r.Under).
			raw("attempts", strconv.Itoa(r.Attempts)).str("state", string(r.State)).id("newest", r.Newest).
			run("parent", r.Parent).run("root", r.Root).run("top", r.Top).flag("backfill", r.Backfill).flag("ended", r.Terminal).
			time("first", r.First).time("last", r.Last)
		s.add(list(o, "asserts", r.Word, func(a Assertion) string {
			return object{}.id("attempt", a.Attempt).time("time", a.Time).flag("finished", a.Finished).raw("said", saidJSON(a.Said)).end()
		}))
	}
}

func (s *snapshot) generations() {
	for r := range s.view.generations() {
		s.add(object{}.id("id", r.ID).name("job", r.Job).run("root", r.Root).raw("runs", strconv.Itoa(r.Runs)).
			raw("finished", strconv.Itoa(r.Finished)).flag("open", r.Open).flag("backfill", r.Backfill()).
			time("first", r.First).time("last", r.Last))
	}
}

func (s *snapshot) derivations() {
	for d := range s.view.derivations() {
		o := object{}.id("id", d.ID).name("job", d.Job)
		o = list(o, "inputs", d.Inputs, func(s Source) string {
			return object{}.name("dataset", s.Name).str("basis", string(s.Basis)).end()
		})
		s.add(list(o, "outputs", d.Outputs, refJSON))
	}
}

func (s *snapshot) mappings() {
	for m := range s.view.mappings() {
		s.add(list(object{}.id("id", m.ID).name("job", m.Job).name("output", m.Output.Name), "entries", m.Entries, func(e fact.ColumnEntry) string {
			return object{}.str("field", e.Field).name("source", e.Source).str("sourceField", e.SourceField).
				raw("transformations", e.Transformations).end()
		}))
	}
}

func (s *snapshot) dependencies() {
	for d, current := range s.view.dependencies() {
		s.add(object{}.id("id", d.ID).name("upstream", d.Upstream).name("downstream", d.Downstream).flag("current", current))
	}
}

func (s *snapshot) current() {
	for c := range s.view.current() {
		if len(c.items) == 0 {
			continue
		}
		o := object{}.name("job", c.job).name("output", c.output)
		o = list(o, "generations", c.Generations, quoted[fact.ID])
		o = list(o, "declared", c.Declared, itemJSON)
		s.add(list(o, "items", c.items, itemJSON))
	}
}

func itemJSON(it item) string {
	names := map[itemKind]string{derivationItem: "derivation", mappingItem: "mapping", dependencyItem: "dependency", renameItem: "rename"}
	return object{}.id(names[it.kind], it.id).end()
}

func (s *snapshot) fields() {
	for r := range s.view.fields() {
		s.add(object{}.name("job", r.Job).name("from", r.From.Name).str("fromField", r.FromField).
			name("to", r.To.Name).str("toField", r.ToField).raw("transformations", r.Transformations))
	}
}

func (s *snapshot) declared() {
	for d := range s.view.declared() {
		s.add(object{}.name("job", d.Job).name("dataset", d.Dataset).id("event", d.Event).time("time", d.Time).raw("said", saidJSON(d.Said)))
	}
}

func (s *snapshot) datasets() {
	for r, dropped := range s.view.datasets() {
		s.add(object{}.id("id", r.ID).name("dataset", r.Name).time("dropped", dropped))
	}
}

func (s *snapshot) jobs() {
	for id, n := range s.view.jobs() {
		s.add(object{}.id("id", id).name("job", n))
	}
}

func (s *snapshot) facets() {
	for r, current := range s.view.facets() {
		o := object{}.str("of", string(r.Kind)).id("entity", r.Entity).str("key", r.Key).raw("value", r.Value).flag("deleted", r.Value == "").flag("invalid", r.Invalid)
		s.add(o.time("first", r.First).time("last", r.Last).flag("current", current))
	}
}

// versions lists what runs wrote: a dataset's version is its version facet, else
// the attempt. Each run's part is a line of its own first; sorted, those of one
// version stand together.
func (s *snapshot) versions() {
	for r := range s.view.runs() {
		seen := map[string]bool{}
		for _, a := range r.Word {
			for i := range a.Said.Outputs {
				out := &a.Said.Outputs[i]
				o := object{}.name("dataset", out.Name).str("version", out.Version)
				if out.Version == "" {
					o = o.id("attempt", a.Attempt)
				}
				part := append(append(o.buf, 0), r.ID.String()...)
				if s.err == nil && !seen[string(part)] {
					seen[string(part)] = true
					s.err = s.sorter.Add(part)
				}
			}
		}
	}
	var version []byte
	var runs []string
	end := func() {
		if version != nil {
			s.add(list(object{version}, "runs", runs, quotedText))
		}
	}
	for part, err := range s.sorter.Sorted() {
		if err != nil && s.err == nil {
			s.err = err
		}
		if s.err != nil {
			return
		}
		at := bytes.LastIndexByte(part, 0)
		if !bytes.Equal(version, part[:at]) {
			end()
			version, runs = bytes.Clone(part[:at]), nil
		}
		runs = append(runs, string(part[at+1:]))
	}
	end()
}

// groups lists the datasets that are walked as one.
func (s *snapshot) groups() {
	for id := range s.view.linked() {
		if group := s.group(id); group != nil {
			slices.SortFunc(group, func(a, b DatasetRef) int { return a.Name.Compare(b.Name) })
			s.add(list(object{}, "datasets", group, func(r DatasetRef) string { return object{}.name("dataset", r.Name).end() }))
		}
	}
}

// group returns the datasets that are one with the dataset id, nil if it is not the
// first of them.
func (s *snapshot) group(id fact.ID) (group []DatasetRef) {
	seen := map[fact.ID]bool{id: true}
	next := []fact.ID{id}
	for len(next) > 0 {
		at := next[0]
		next = next[1:]
		group = append(group, DatasetRef{at, s.view.dataset(at)})
		for other := range s.view.links(at) {
			if fact.CompareIDs(other, id) < 0 {
				return nil
			}
			if !seen[other] {
				seen[other] = true
				next = append(next, other)
			}
		}
	}
	return group
}
