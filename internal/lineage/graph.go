package lineage

import (
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// Graph is everything that follows from a set of facts: what a snapshot lists.
// Fold makes one from events, State.Graph from settled rows; for one set of
// events the two are equal.
type Graph struct {
	Events       map[fact.ID]Contents
	Observations map[fact.ID][]fact.Observation // by subject, sorted
	Attempts     map[fact.ID]*AttemptRow
	Runs         map[RunID]*RunRow
	Generations  map[fact.ID]GenerationRow
	Derivations  map[fact.ID]*Derivation
	Mappings     map[fact.ID]*Mapping
	Dependencies map[fact.ID]Dependency
	Renames      map[fact.ID]*Rename
	Selected     map[jobOutput]Selection
	Current      map[jobOutput][]item // sorted
	Fields       map[string]FieldRow
	DependsNow   map[fact.ID]bool
	Declared     map[jobOutput]*Declaration // by the job, or the zero job and the dataset
	Datasets     map[fact.ID]openlineage.Name
	Jobs         map[fact.ID]openlineage.Name
	Facets       map[string]FacetRow
	Dropped      map[fact.ID]openlineage.Instant
	Links        map[[2]fact.ID]bool
}

func newGraph() *Graph {
	return &Graph{
		Events: map[fact.ID]Contents{}, Observations: map[fact.ID][]fact.Observation{},
		Attempts: map[fact.ID]*AttemptRow{}, Runs: map[RunID]*RunRow{}, Generations: map[fact.ID]GenerationRow{},
		Derivations: map[fact.ID]*Derivation{}, Mappings: map[fact.ID]*Mapping{}, Dependencies: map[fact.ID]Dependency{},
		Renames: map[fact.ID]*Rename{}, Selected: map[jobOutput]Selection{}, Current: map[jobOutput][]item{},
		Fields: map[string]FieldRow{}, DependsNow: map[fact.ID]bool{}, Declared: map[jobOutput]*Declaration{},
		Datasets: map[fact.ID]openlineage.Name{}, Jobs: map[fact.ID]openlineage.Name{}, Facets: map[string]FacetRow{},
		Dropped: map[fact.ID]openlineage.Instant{}, Links: map[[2]fact.ID]bool{},
	}
}

// Graph returns everything that the State holds. Nothing may be pending.
func (st *State) Graph() *Graph {
	g := newGraph()
	for key, c := range st.Events.Scan("", "") {
		g.Events[idAt(key, 0)] = c
	}
	for key, o := range st.Observations.Scan("", "") {
		o.Detail, _ = st.Details.Get(key)
		g.Observations[idAt(key, 0)] = append(g.Observations[idAt(key, 0)], o)
	}
	for _, observations := range g.Observations {
		slices.SortFunc(observations, compareObservations)
	}
	byID(g.Attempts, st.Attempts)
	for _, r := range st.Runs.Scan("", "") {
		g.Runs[r.ID] = r
	}
	byID(g.Generations, st.Generations)
	byID(g.Derivations, st.Derivations)
	byID(g.Mappings, st.Mappings)
	byID(g.Dependencies, st.Dependencies)
	byID(g.Renames, st.Renames)
	byID(g.Datasets, st.Datasets)
	byID(g.Jobs, st.Jobs)
	for key, sel := range st.Selected.Scan("", "") {
		g.Selected[jobOutput{idAt(key, 0), idAt(key, idLen)}] = sel
	}
	for key := range st.Current.Scan("", "") {
		jo := jobOutput{idAt(key, 0), idAt(key, idLen)}
		g.Current[jo] = append(g.Current[jo], itemAt(key, 2*idLen))
	}
	for key, row := range st.Fields.Scan("", "") {
		g.Fields[key] = row
	}
	for key := range st.DependsNow.Scan("", "") {
		g.DependsNow[idAt(key, 0)] = true
	}
	for key, d := range st.Declared.Scan("", "") {
		jo := jobOutput{job: idAt(key, 0)}
		if jo.job.IsZero() {
			jo.output = idAt(key, idLen)
		}
		g.Declared[jo] = d
	}
	for key, row := range st.Facets.Scan("", "") {
		g.Facets[key] = row
	}
	for key := range st.Links.Scan("", "") {
		g.Links[[2]fact.ID{idAt(key, 0), idAt(key, idLen)}] = true
	}
	for id := range g.Datasets {
		if at, ok := st.Dropped(id); ok {
			g.Dropped[id] = at
		}
	}
	return g
}

func byID[V any](m map[fact.ID]V, t Table[V]) {
	for key, row := range t.Scan("", "") {
		m[idAt(key, 0)] = row
	}
}

// Dropped returns when a dataset was dropped, false if it was not or was
// written since.
func (st *State) Dropped(dataset fact.ID) (openlineage.Instant, bool) {
	key, _, ok := first(st.Writes.ScanBack(keyOf(dataset).String()))
	if !ok || key[idLen+timeLen] == 0 {
		return openlineage.Instant{}, false
	}
	return timeAt(key, idLen), true
}

// facetsNow returns the current value of each facet: the newest that is valid.
func (g *Graph) facetsNow() map[string]FacetRow {
	now := map[string]FacetRow{}
	for _, row := range g.Facets {
		place := facetPlace(&row)
		if old, ok := now[place]; !row.Invalid && (!ok || row.newer(&old)) {
			now[place] = row
		}
	}
	return now
}
