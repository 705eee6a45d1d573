package lineage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// Fold returns the graph of a set of events: the whole function at once, each
// level from the one before, with nothing kept in between. It is the oracle that
// Settle and every store are tested against. The order of events and their
// repetitions do not show.
func Fold(version string, events []*fact.Event) *Graph {
	f := &fold{
		Graph: newGraph(), version: version, subjects: map[fact.ID]map[fact.ObservationKey]fact.Observation{},
		observed: map[fact.Attempt]map[fact.ObservationKey]fact.Observation{},
		groups:   map[fact.RunRef][]fact.Attempt{},
		declared: map[jobOutput]map[declarationKind]*fact.Observation{},
		members:  map[RunID][]*AttemptRow{}, words: map[fact.ID]map[fact.ID]*outputWords{},
	}
	for _, e := range events {
		f.gather(e)
	}
	f.sort()
	f.attempts()
	f.runs()
	f.generations()
	f.current()
	return f.Graph
}

type fold struct {
	*Graph
	version  string
	observed map[fact.Attempt]map[fact.ObservationKey]fact.Observation
	subjects map[fact.ID]map[fact.ObservationKey]fact.Observation
	groups   map[fact.RunRef][]fact.Attempt
	declared map[jobOutput]map[declarationKind]*fact.Observation
	members  map[RunID][]*AttemptRow
	words    map[fact.ID]map[fact.ID]*outputWords // by generation and output
}

// outputWords is what one generation asserts for one output.
type outputWords struct {
	time  openlineage.Instant
	items map[item]bool
}

// gather adds an event to the facts.
func (f *fold) gather(e *fact.Event) {
	c := f.Events[e.ID]
	c.Kind = e.Kind
	if !slices.Contains(c.Digests, e.Content) {
		c.Digests = append(slices.Clone(c.Digests), e.Content)
		slices.SortFunc(c.Digests, fact.CompareIDs)
	}
	f.Events[e.ID] = c

	jobs, datasets := namedBy(e)
	for _, n := range jobs {
		f.Jobs[fact.JobKey(n)] = n
	}
	for _, n := range datasets {
		f.Datasets[fact.DatasetKey(n)] = n
	}
	for i := range e.Facets {
		row := newFacetRow(e.Facets[i], e.Time)
		key := keyBuilder(facetPlace(&row)).id(row.Digest).String()
		if old, ok := f.Facets[key]; ok {
			row = old.merge(row)
		}
		f.Facets[key] = row
	}

	kind, subject := e.Subject()
	if f.subjects[subject] == nil {
		f.subjects[subject] = map[fact.ObservationKey]fact.Observation{}
	}
	obs := fact.ObservationOf(e)
	key := obs.Key()
	if old, ok := f.subjects[subject][key]; ok {
		obs = old.Merge(obs)
	}
	f.subjects[subject][key] = obs
	if kind == fact.AttemptSubject {
		f.observed[e.Attempt] = f.subjects[subject]
		return
	}
	for _, d := range declares(kind, e.Statement) {
		jo := jobOutput{job: subject}
		if kind == fact.DatasetSubject {
			jo = jobOutput{output: subject}
		}
		if f.declared[jo] == nil {
			f.declared[jo] = map[declarationKind]*fact.Observation{}
		}
		if old := f.declared[jo][d]; old == nil || cmp.Or(
			obs.Last.Compare(old.Last), fact.CompareIDs(obs.Event, old.Event), fact.CompareIDs(obs.Content, old.Content)) > 0 {
			f.declared[jo][d] = &obs
		}
	}
}

func compareObservations(a, b fact.Observation) int { return a.Key().Compare(b.Key()) }

// sort orders what was gathered: observations by key, the attempts of one run
// reference by map index.
func (f *fold) sort() {
	for subject, observations := range f.subjects {
		f.Observations[subject] = slices.SortedFunc(maps.Values(observations), compareObservations)
	}
	for a := range f.observed {
		f.groups[a.Ref()] = append(f.groups[a.Ref()], a)
	}
	for _, group := range f.groups {
		slices.SortFunc(group, func(a, b fact.Attempt) int { return cmp.Compare(a.Map, b.Map) })
	}
}

func (f *fold) resolve(ref fact.RunRef) fact.Attempt {
	if sole, ok := adopt(f.groups[ref]); ok {
		return sole
	}
	return fact.Attempt{Job: ref.Job, RunID: ref.RunID, Map: fact.NoMap}
}

func (f *fold) linkOf(a fact.Attempt) link {
	if row, ok := f.Attempts[a.Key()]; ok {
		return row.link()
	}
	return link{attempt: a, key: a.Key(), slot: unheard(a)}
}

// attempts reads every attempt, then places them.
func (f *fold) attempts() {
	for ref, group := range f.groups {
		sole, adopted := adopt(group)
		unmapped := f.observed[fact.Attempt{Job: ref.Job, RunID: ref.RunID, Map: fact.NoMap}]
		for _, a := range group {
			observations := slices.Collect(maps.Values(f.observed[a]))
			if adopted && a.Map == fact.NoMap {
				continue
			}
			if adopted && a == sole {
				observations = slices.AppendSeq(observations, maps.Values(unmapped))
			}
			f.Attempts[a.Key()] = &AttemptRow{Key: a.Key(), Own: readAttempt(a, group, observations, nil)}
		}
	}
	for _, row := range f.Attempts {
		row.place(f, f.version)
		if parent, ok := f.Attempts[row.Placement.Parent]; ok {
			row.ParentCompleted = parent.Completed
		}
		f.members[row.Run] = append(f.members[row.Run], row)
	}
}

func (f *fold) runs() {
	for _, members := range f.members {
		var t tally
		firstAt, lastAt := members[0].First, members[0].Last
		for _, m := range members {
			t = t.add(m, 1)
			if m.First.Before(firstAt) {
				firstAt = m.First
			}
			if m.Last.After(lastAt) {
				lastAt = m.Last
			}
		}
		slices.SortFunc(members, func(a, b *AttemptRow) int { return cmp.Compare(b.order().String(), a.order().String()) })
		row := readRun(t, firstAt, lastAt, slices.Values(members))
		f.Runs[row.ID] = &row
	}
}

// generations gathers the logical runs of each job under each root.
func (f *fold) generations() {
	lastBeginning := map[openlineage.Name]openlineage.Instant{}
	held := map[fact.ID]bool{}
	for _, r := range f.Runs {
		id := generationKey(r.Job, r.Root)
		g, ok := f.Generations[id]
		if !ok {
			g = GenerationRow{ID: id, Job: r.Job, Root: r.Root, First: r.First, Last: r.Last}
		}
		g.Runs++
		if r.finished() {
			g.Finished++
		}
		if r.Backfill {
			g.Backfills++
		}
		if r.First.Before(g.First) {
			g.First = r.First
		}
		if r.Last.After(g.Last) {
			g.Last = r.Last
		}
		f.Generations[id] = g
		if top := f.Runs[r.Top]; top == nil || !top.Terminal {
			held[id] = true
		}
		f.addWord(id, r)
	}
	for _, g := range f.Generations {
		if lastBeginning[g.Job].Before(g.First) {
			lastBeginning[g.Job] = g.First
		}
	}
	for id, g := range f.Generations {
		g.Open = (g.Finished == 0 || held[id]) && !lastBeginning[g.Job].After(g.Last)
		f.Generations[id] = g
	}
}

func (f *fold) addWord(gen fact.ID, r *RunRow) {
	if f.words[gen] == nil {
		f.words[gen] = map[fact.ID]*outputWords{}
	}
	for _, a := range r.Word {
		f.contents(a.Said)
		for output, items := range itemsOf(a.Said) {
			w := f.words[gen][output]
			if w == nil {
				w = &outputWords{items: map[item]bool{}}
				f.words[gen][output] = w
			}
			if w.time.Before(a.Time) {
				w.time = a.Time
			}
			for _, it := range items {
				w.items[it] = true
			}
		}
	}
}

// contents keeps what is asserted or declared.
func (f *fold) contents(said *Said) {
	for _, d := range said.Reads {
		f.Derivations[d.ID] = d
	}
	for _, d := range said.Depends {
		f.Dependencies[d.ID] = d
	}
	for i := range said.Outputs {
		o := &said.Outputs[i]
		for _, d := range o.Derivations {
			f.Derivations[d.ID] = d
		}
		if o.Mapping != nil {
			f.Mappings[o.Mapping.ID] = o.Mapping
		}
		if o.Rename != nil {
			f.Renames[o.Rename.ID] = o.Rename
		}
	}
}

// current decides for each output of each job, and for the declarations.
func (f *fold) current() {
	candidates := map[jobOutput][]candidate{}
	latest := map[fact.ID]openlineage.Instant{} // deciding time by output, of any job
	for gen, outputs := range f.words {
		g := f.Generations[gen]
		for output, w := range outputs {
			jo := jobOutput{fact.JobKey(g.Job), output}
			candidates[jo] = append(candidates[jo], candidate{gen: gen, time: w.time, open: g.Open, backfill: g.Backfill()})
			if latest[output].Before(w.time) {
				latest[output] = w.time
			}
		}
	}
	f.declarations(candidates, latest)
	for jo, cs := range candidates {
		slices.SortFunc(cs, func(a, b candidate) int { return cmp.Compare(b.key().String(), a.key().String()) })
		sel := f.Selected[jo]
		sel.Generations = choose(slices.Values(cs))
		f.Selected[jo] = sel
	}
	for jo, sel := range f.Selected {
		items := map[item]bool{}
		for _, gen := range sel.Generations {
			maps.Copy(items, f.words[gen][jo.output].items)
		}
		for _, it := range sel.Declared {
			items[it] = true
		}
		if len(items) > 0 {
			f.Current[jo] = slices.SortedFunc(maps.Keys(items), item.compare)
		}
		for it := range items {
			f.exposeOne(it)
		}
	}
	f.drops()
	f.links()
}

func (f *fold) declarations(candidates map[jobOutput][]candidate, latest map[fact.ID]openlineage.Instant) {
	for jo, kinds := range f.declared {
		var d *Declaration
		if jo.job.IsZero() {
			d = datasetDeclaration(f.Datasets[jo.output], kinds[declaresLineage], kinds[declaresColumns])
		} else {
			d = jobDeclaration(f.Jobs[jo.job], kinds[declaresJob])
		}
		if d == nil {
			continue
		}
		f.Declared[jo] = d
		f.contents(d.Said)
		for output, items := range itemsOf(d.Said) {
			place := jobOutput{jo.job, output}
			var decided openlineage.Instant
			if jo.job.IsZero() {
				if output != jo.output {
					continue // a dataset declares for itself
				}
				decided = latest[output]
			}
			for _, c := range candidates[place] {
				if decided.Before(c.time) {
					decided = c.time
				}
			}
			if len(items) > 0 && !decided.After(d.Time) {
				sel := f.Selected[place]
				sel.Declared = items
				f.Selected[place] = sel
			}
		}
	}
}

func (f *fold) exposeOne(it item) {
	switch it.kind {
	case mappingItem:
		m := f.Mappings[it.id]
		if len(m.Entries) > maxMaterialised {
			return
		}
		rows := map[string]FieldRow{}
		for i := range m.Entries {
			row := fieldRow(m, &m.Entries[i])
			rows[row.key()] = row
		}
		maps.Copy(f.Fields, rows)
	case renameItem:
		r := f.Renames[it.id]
		f.Links[[2]fact.ID{r.From.ID, r.To.ID}] = true
		f.Links[[2]fact.ID{r.To.ID, r.From.ID}] = true
	case dependencyItem:
		f.DependsNow[it.id] = true
	}
}

// drops notes which outputs were dropped, and not written since.
func (f *fold) drops() {
	written := map[fact.ID]openlineage.Instant{} // when each output was asserted last
	f.eachOutput(func(o *OutputSaid, at openlineage.Instant) {
		if written[o.ID].Before(at) {
			written[o.ID] = at
		}
	})
	f.eachOutput(func(o *OutputSaid, at openlineage.Instant) {
		if o.Dropped && written[o.ID] == at {
			f.Dropped[o.ID] = at
		}
	})
}

func (f *fold) eachOutput(do func(*OutputSaid, openlineage.Instant)) {
	for _, r := range f.Runs {
		for _, a := range r.Word {
			for i := range a.Said.Outputs {
				do(&a.Said.Outputs[i], a.Time)
			}
		}
	}
}

// links joins the datasets that current symlinks facets name.
func (f *fold) links() {
	for _, row := range f.facetsNow() {
		for _, n := range row.Symlinks {
			if other := fact.DatasetKey(n); other != row.Entity {
				f.Links[[2]fact.ID{row.Entity, other}] = true
				f.Links[[2]fact.ID{other, row.Entity}] = true
			}
		}
	}
}
