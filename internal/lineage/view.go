package lineage

import (
	"iter"
	"maps"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// view is what a snapshot lists, of a Graph or of a State, in any order.
type view interface {
	events() iter.Seq2[fact.ID, Contents]
	// observations yields them with their subjects.
	observations() iter.Seq2[fact.ID, fact.Observation]
	attempts() iter.Seq[*AttemptRow]
	runs() iter.Seq[*RunRow]
	generations() iter.Seq[GenerationRow]
	derivations() iter.Seq[*Derivation]
	mappings() iter.Seq[*Mapping]
	// dependencies yields them with whether they are current.
	dependencies() iter.Seq2[Dependency, bool]
	current() iter.Seq[currentOutput]
	fields() iter.Seq[FieldRow]
	declared() iter.Seq[*Declaration]
	// datasets yields them with when they were dropped.
	datasets() iter.Seq2[DatasetRef, openlineage.Instant]
	jobs() iter.Seq2[fact.ID, openlineage.Name]
	// facets yields every value with whether it is current.
	facets() iter.Seq2[FacetRow, bool]
	// linked yields the datasets that are one with another, links those that one is
	// linked to.
	linked() iter.Seq[fact.ID]
	links(fact.ID) iter.Seq[fact.ID]
	dataset(fact.ID) openlineage.Name
}

// currentOutput is what is current for an output of a job.
type currentOutput struct {
	job, output openlineage.Name
	Selection
	items []item // sorted
}

// graphView is a Graph.
type graphView struct {
	*Graph
	neighbours map[fact.ID][]fact.ID
}

func viewOf(g *Graph) graphView {
	v := graphView{g, map[fact.ID][]fact.ID{}}
	for l := range g.Links {
		v.neighbours[l[0]] = append(v.neighbours[l[0]], l[1])
	}
	return v
}

func (g graphView) events() iter.Seq2[fact.ID, Contents] { return maps.All(g.Events) }

func (g graphView) observations() iter.Seq2[fact.ID, fact.Observation] {
	return func(yield func(fact.ID, fact.Observation) bool) {
		for subject, list := range g.Observations {
			for _, o := range list {
				if !yield(subject, o) {
					return
				}
			}
		}
	}
}

func (g graphView) attempts() iter.Seq[*AttemptRow]      { return maps.Values(g.Attempts) }
func (g graphView) runs() iter.Seq[*RunRow]              { return maps.Values(g.Runs) }
func (g graphView) generations() iter.Seq[GenerationRow] { return maps.Values(g.Generations) }
func (g graphView) derivations() iter.Seq[*Derivation]   { return maps.Values(g.Derivations) }
func (g graphView) mappings() iter.Seq[*Mapping]         { return maps.Values(g.Mappings) }
func (g graphView) fields() iter.Seq[FieldRow]           { return maps.Values(g.Fields) }
func (g graphView) declared() iter.Seq[*Declaration]     { return maps.Values(g.Declared) }

func (g graphView) dependencies() iter.Seq2[Dependency, bool] {
	return func(yield func(Dependency, bool) bool) {
		for id, d := range g.Dependencies {
			if !yield(d, g.DependsNow[id]) {
				return
			}
		}
	}
}

func (g graphView) current() iter.Seq[currentOutput] {
	return func(yield func(currentOutput) bool) {
		for jo, sel := range g.Selected {
			if !yield(currentOutput{g.Jobs[jo.job], g.Datasets[jo.output], sel, g.Current[jo]}) {
				return
			}
		}
	}
}

func (g graphView) datasets() iter.Seq2[DatasetRef, openlineage.Instant] {
	return func(yield func(DatasetRef, openlineage.Instant) bool) {
		for id, name := range g.Datasets {
			if !yield(DatasetRef{id, name}, g.Dropped[id]) {
				return
			}
		}
	}
}

func (g graphView) jobs() iter.Seq2[fact.ID, openlineage.Name] { return maps.All(g.Jobs) }

func (g graphView) facets() iter.Seq2[FacetRow, bool] {
	now := g.facetsNow()
	return func(yield func(FacetRow, bool) bool) {
		for _, r := range g.Facets {
			if !yield(r, now[facetPlace(&r)].Digest == r.Digest) {
				return
			}
		}
	}
}

func (g graphView) linked() iter.Seq[fact.ID] { return maps.Keys(g.neighbours) }

func (g graphView) links(id fact.ID) iter.Seq[fact.ID] { return slices.Values(g.neighbours[id]) }

func (g graphView) dataset(id fact.ID) openlineage.Name { return g.Datasets[id] }

// stateView is a State without Todos.
type stateView struct{ *State }

// rows yields the rows of a table.
func rows[V any](t Table[V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, row := range t.Scan("", "") {
			if !yield(row) {
				return
			}
		}
	}
}

// byKey yields the rows of a table with the ID that their keys begin with.
func byKey[V any](t Table[V]) iter.Seq2[fact.ID, V] {
	return func(yield func(fact.ID, V) bool) {
		for key, row := range t.Scan("", "") {
			if !yield(idAt(key, 0), row) {
				return
			}
		}
	}
}

func (v stateView) events() iter.Seq2[fact.ID, Contents] { return byKey(v.Events) }

func (v stateView) observations() iter.Seq2[fact.ID, fact.Observation] {
	return func(yield func(fact.ID, fact.Observation) bool) {
		for key, o := range v.Observations.Scan("", "") {
			o.Detail, _ = v.Details.Get(key)
			if !yield(idAt(key, 0), o) {
				return
			}
		}
	}
}

func (v stateView) attempts() iter.Seq[*AttemptRow]            { return rows(v.Attempts) }
func (v stateView) runs() iter.Seq[*RunRow]                    { return rows(v.Runs) }
func (v stateView) generations() iter.Seq[GenerationRow]       { return rows(v.Generations) }
func (v stateView) derivations() iter.Seq[*Derivation]         { return rows(v.Derivations) }
func (v stateView) mappings() iter.Seq[*Mapping]               { return rows(v.Mappings) }
func (v stateView) fields() iter.Seq[FieldRow]                 { return rows(v.Fields) }
func (v stateView) declared() iter.Seq[*Declaration]           { return rows(v.Declared) }
func (v stateView) jobs() iter.Seq2[fact.ID, openlineage.Name] { return byKey(v.Jobs) }

func (v stateView) dependencies() iter.Seq2[Dependency, bool] {
	return func(yield func(Dependency, bool) bool) {
		for key, d := range v.Dependencies.Scan("", "") {
			if !yield(d, has(v.DependsNow, key)) {
				return
			}
		}
	}
}

func (v stateView) current() iter.Seq[currentOutput] {
	return func(yield func(currentOutput) bool) {
		for key, sel := range v.Selected.Scan("", "") {
			c := currentOutput{Selection: sel}
			c.job, _ = v.Jobs.Get(key[:idLen])
			c.output, _ = v.Datasets.Get(key[idLen:])
			for k := range v.Current.Scan(key, "") {
				c.items = append(c.items, itemAt(k, 2*idLen))
			}
			if !yield(c) {
				return
			}
		}
	}
}

func (v stateView) datasets() iter.Seq2[DatasetRef, openlineage.Instant] {
	return func(yield func(DatasetRef, openlineage.Instant) bool) {
		for key, name := range v.Datasets.Scan("", "") {
			r := DatasetRef{idAt(key, 0), name}
			dropped, _ := v.Dropped(r.ID)
			if !yield(r, dropped) {
				return
			}
		}
	}
}

func (v stateView) facets() iter.Seq2[FacetRow, bool] {
	return func(yield func(FacetRow, bool) bool) {
		for key, r := range v.Facets.Scan("", "") {
			now, ok := v.FacetsNow.Get(key[:2*idLen])
			if !yield(r, ok && now == r.Digest) {
				return
			}
		}
	}
}

func (v stateView) linked() iter.Seq[fact.ID] {
	return func(yield func(fact.ID) bool) {
		var last fact.ID
		for key := range v.Links.Scan("", "") {
			if id := idAt(key, 0); id != last {
				if last = id; !yield(id) {
					return
				}
			}
		}
	}
}

func (v stateView) links(id fact.ID) iter.Seq[fact.ID] {
	return func(yield func(fact.ID) bool) {
		for key := range v.Links.Scan(keyOf(id).String(), "") {
			if !yield(idAt(key, idLen)) {
				return
			}
		}
	}
}

func (v stateView) dataset(id fact.ID) openlineage.Name {
	name, _ := v.Datasets.Get(keyOf(id).String())
	return name
}
