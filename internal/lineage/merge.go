package lineage

import (
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// Merged says what an event was to the facts.
type Merged struct {
	// NewEvent says that its ID was unknown, NewContent that its content digest
	// was unknown under that ID.
	NewEvent, NewContent bool
}

// Merge adds one event to the facts and leaves Todos for what may follow from
// it. It concludes nothing. Merging is commutative and idempotent.
func (st *State) Merge(e *fact.Event) Merged {
	m := st.mergeEvent(e)
	st.mergeNames(e)
	st.mergeFacets(e)
	obs := fact.ObservationOf(e)
	kind, subject := e.Subject()
	key := keyOf(subject).id(hashObservation(obs.Key())).String()
	old, known := st.Observations.Get(key)
	if known {
		obs = old.Merge(obs)
		if detail, _ := st.Details.Get(key); e.Detail < detail {
			st.Details.Put(key, e.Detail)
		}
		if obs.First == old.First && obs.Last == old.Last {
			return m // another body, nothing to conclude from it
		}
	} else {
		st.Details.Put(key, e.Detail)
	}
	obs.Detail = ""
	st.Observations.Put(key, obs)
	switch kind {
	case fact.AttemptSubject:
		st.joinGroup(e.Attempt)
		st.todo(Todo{Kind: TodoAttempt, Attempt: e.Attempt})
	default:
		st.mergeDeclaration(e, subject, obs, old, known)
	}
	return m
}

// joinGroup adds an attempt to those of its run. Where there were two, one may
// have had the events without a map index of the other, and has no longer: both
// are read anew. Among more, no one had.
func (st *State) joinGroup(a fact.Attempt) {
	key := groupKey(a)
	if has(st.Groups, key) {
		return
	}
	if before := st.group(a.Ref()); len(before) <= 2 {
		for _, b := range before {
			st.todo(Todo{Kind: TodoAttempt, Attempt: b})
		}
	}
	st.Groups.Put(key, a)
}

func groupKey(a fact.Attempt) string { return keyOf(a.Ref().Key()).number(a.Map).String() }

func (st *State) mergeEvent(e *fact.Event) Merged {
	key := keyOf(e.ID).String()
	c, known := st.Events.Get(key)
	i, found := slices.BinarySearchFunc(c.Digests, e.Content, fact.CompareIDs)
	if !found {
		c.Kind, c.Digests = e.Kind, slices.Insert(slices.Clone(c.Digests), i, e.Content)
		st.Events.Put(key, c)
	}
	return Merged{NewEvent: !known, NewContent: known && !found}
}

// mergeNames notes the entities that an event names anywhere.
func (st *State) mergeNames(e *fact.Event) {
	jobs, datasets := namedBy(e)
	for _, n := range jobs {
		st.mergeName(fact.JobEntity, fact.JobKey(n), n, st.Jobs, st.JobNames)
	}
	for _, n := range datasets {
		st.mergeName(fact.DatasetEntity, fact.DatasetKey(n), n, st.Datasets, st.DatasetNames)
	}
}

func (st *State) mergeName(kind fact.EntityKind, id fact.ID, n openlineage.Name, rows Table[openlineage.Name], names Table[fact.ID]) {
	key := keyOf(id).String()
	if has(rows, key) {
		return
	}
	rows.Put(key, n)
	names.Put(nameKey(n), id)
	if st.NewName != nil {
		st.NewName(kind, id, n)
	}
}

func has[V any](t Table[V], key string) bool {
	_, ok := t.Get(key)
	return ok
}

// namedBy returns the jobs and datasets that an event names, each once.
func namedBy(e *fact.Event) (jobs, datasets []openlineage.Name) {
	seenJobs, seenDatasets := map[openlineage.Name]bool{}, map[openlineage.Name]bool{}
	job := func(n openlineage.Name) {
		if n.Name != "" && !seenJobs[n] {
			seenJobs[n] = true
			jobs = append(jobs, n)
		}
	}
	dataset := func(n openlineage.Name) {
		if n.Name != "" && !seenDatasets[n] {
			seenDatasets[n] = true
			datasets = append(datasets, n)
		}
	}
	end := func(x fact.End) {
		if x.Job {
			job(x.Name)
		} else {
			dataset(x.Name)
		}
	}
	explicit := func(x *fact.Explicit) {
		if x == nil {
			return
		}
		for i := range x.Entries {
			end(x.Entries[i].Target)
			for _, s := range x.Entries[i].Sources {
				end(s)
			}
		}
	}
	use := func(u *fact.DatasetUse) {
		dataset(u.Dataset)
		if u.Lifecycle != nil {
			dataset(u.Lifecycle.Previous)
		}
		if u.Columns != nil {
			for i := range u.Columns.Entries {
				dataset(u.Columns.Entries[i].Source)
			}
		}
		explicit(u.Lineage)
	}
	job(e.Job)
	job(e.Parent.Job)
	if !e.Pseudo {
		dataset(e.Dataset)
	}
	for i := range e.Statement.Inputs {
		use(&e.Statement.Inputs[i])
	}
	for i := range e.Statement.Outputs {
		use(&e.Statement.Outputs[i])
	}
	if e.Statement.Declares != nil {
		use(e.Statement.Declares)
	}
	explicit(e.Statement.Lineage)
	for i := range e.Facets {
		for _, n := range e.Facets[i].Symlinks {
			dataset(n)
		}
	}
	return jobs, datasets
}

// mergeFacets adds the event's values of entities' facets.
func (st *State) mergeFacets(e *fact.Event) {
	for i := range e.Facets {
		row := newFacetRow(e.Facets[i], e.Time)
		place := facetPlace(&row)
		key := keyBuilder(place).id(row.Digest).String()
		old, ok := st.Facets.Get(key)
		if ok {
			merged := old.merge(row)
			if merged.First == old.First && merged.Last == old.Last {
				continue
			}
			row = merged
		}
		if ok {
			st.Facets.PutLater(key, row)
		} else {
			st.Facets.Put(key, row)
		}
		if row.Invalid {
			continue
		}
		now, any := st.facetNow(place)
		if any && (row.Digest == now.Digest || !row.newer(&now)) {
			continue
		}
		st.FacetsNow.Put(place, row.Digest)
		if any {
			st.link(&now, -1)
		}
		st.link(&row, 1)
	}
}

// facetNow returns the current value of a facet.
func (st *State) facetNow(place string) (row FacetRow, ok bool) {
	digest, ok := st.FacetsNow.Get(place)
	if ok {
		row, ok = st.Facets.Get(keyBuilder(place).id(digest).String())
	}
	return row, ok
}

// newFacetRow digests the value with whether it is valid: that can hang on a
// field that is not part of the value.
func newFacetRow(f fact.EntityFacet, at openlineage.Instant) FacetRow {
	document := append(make([]byte, 0, len(f.Value)+1), flag(f.Invalid))
	return FacetRow{EntityFacet: f, Digest: fact.HashBytes("facet", append(document, f.Value...)), First: at, Last: at}
}

func facetPlace(r *FacetRow) string {
	document := append(make([]byte, 0, 64), r.Kind[0])
	return keyOf(r.Entity).id(fact.HashBytes("facet key", append(document, r.Key...))).String()
}

func (r FacetRow) merge(q FacetRow) FacetRow {
	if q.First.Before(r.First) {
		r.First = q.First
	}
	if q.Last.After(r.Last) {
		r.Last = q.Last
	}
	return r
}

// link adds n to the links that a symlinks facet makes.
func (st *State) link(r *FacetRow, n int) {
	for _, name := range r.Symlinks {
		st.join(r.Entity, fact.DatasetKey(name), n)
	}
}

// join adds n to the reasons for which two datasets are walked as one.
func (st *State) join(a, b fact.ID, n int) {
	if a == b {
		return
	}
	count(st.Links, keyOf(a, b).String(), n)
	count(st.Links, keyOf(b, a).String(), n)
}

// hashObservation hashes an observation's key.
func hashObservation(k fact.ObservationKey) fact.ID {
	return fact.Hash("observation", k.Event.String(), k.Content.String(), string(k.Type), k.At.String(),
		k.Parent.Job.Namespace, k.Parent.Job.Name, k.Parent.RunID)
}

// declarationKind tells what kind of declaration a job or dataset event makes.
type declarationKind byte

const (
	declaresNothing declarationKind = iota
	declaresJob                     // inputs, outputs or a lineage facet of a job
	declaresColumns                 // a dataset's columnLineage facet
	declaresLineage                 // a dataset's lineage facet
)

func declares(kind fact.SubjectKind, s *fact.Statement) []declarationKind {
	switch {
	case kind == fact.JobSubject && (len(s.Inputs) > 0 || len(s.Outputs) > 0 || s.Lineage != nil):
		return []declarationKind{declaresJob}
	case kind == fact.DatasetSubject && s.Declares != nil:
		var kinds []declarationKind
		if s.Declares.Columns != nil {
			kinds = append(kinds, declaresColumns)
		}
		if s.Declares.Lineage != nil {
			kinds = append(kinds, declaresLineage)
		}
		return kinds
	}
	return nil
}

func (st *State) mergeDeclaration(e *fact.Event, subject fact.ID, obs, old fact.Observation, known bool) {
	kind, _ := e.Subject()
	for _, d := range declares(kind, e.Statement) {
		if known {
			st.Declarations.Delete(declarationKey(subject, d, &old))
		}
		st.Declarations.Put(declarationKey(subject, d, &obs), obs)
		todo := Todo{Kind: TodoJob, Attempt: fact.Attempt{Job: e.Job}}
		if kind == fact.DatasetSubject {
			todo = Todo{Kind: TodoDataset, Attempt: fact.Attempt{Job: e.Dataset}}
		}
		st.todo(todo)
	}
}

func declarationKey(subject fact.ID, d declarationKind, o *fact.Observation) string {
	return keyOf(subject).byte(byte(d)).time(o.Last).id(o.Event).id(o.Content).String()
}

// todo leaves work behind; the same work twice is one, which begins where the
// earlier of the two does.
func (st *State) todo(t Todo) {
	key := t.key()
	if old, ok := st.Todos.Get(key); ok && old.After <= t.After {
		return
	}
	st.Todos.Put(key, t)
}

func (t Todo) key() string {
	k := keyBuilder{byte(t.Kind)}
	switch t.Kind {
	case TodoTop:
		k = k.run(t.Run).id(t.Generation)
	case TodoAttempt:
		k = k.id(t.Attempt.Key())
	default:
		k = k.id(t.Attempt.Ref().Key())
	}
	return k.String()
}
