package lineage

import (
	"iter"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// AttemptOf returns the settled attempt that has the events of attempt a: a
// itself, or the one mapped attempt that adopted them. Nil if none is settled.
func (st *State) AttemptOf(a fact.Attempt) *AttemptRow {
	if row, ok := st.Attempts.Get(keyOf(a.Key()).String()); ok {
		return row
	}
	s := settlement{State: st}
	row, _ := st.Attempts.Get(keyOf(s.resolve(a.Ref()).Key()).String())
	return row
}

// Run returns a logical run, nil if there is none.
func (st *State) Run(id RunID) *RunRow {
	row, _ := st.Runs.Get(keyBuilder{}.run(id).String())
	return row
}

// AttemptsOf yields the attempts of a logical run, newest first.
func (st *State) AttemptsOf(id RunID) iter.Seq[*AttemptRow] {
	return func(yield func(*AttemptRow) bool) {
		for _, attempt := range st.Members.ScanBack(keyBuilder{}.run(id).String()) {
			if row, ok := st.Attempts.Get(keyOf(attempt).String()); ok && !yield(row) {
				return
			}
		}
	}
}

// RunsNewestFirst yields logical runs, of one job or with the zero ID of all,
// those that began last first, behind the run that after names.
func (st *State) RunsNewestFirst(job fact.ID, after *RunRow) iter.Seq[*RunRow] {
	prefix, table := "", st.RunsByTime
	if !job.IsZero() {
		prefix, table = keyOf(job).String(), st.JobRuns
	}
	return func(yield func(*RunRow) bool) {
		rows := table.ScanBack(prefix)
		if after != nil {
			rows = table.ScanBefore(prefix, prefix+keyBuilder{}.time(after.First).run(after.ID).String())
		}
		for key := range rows {
			if row := st.Run(runAt(key, len(prefix)+timeLen)); row != nil && !yield(row) {
				return
			}
		}
	}
}

// FacetsOf returns the current facets of an entity, by key; tombstones are left
// out.
func (st *State) FacetsOf(kind fact.EntityKind, entity fact.ID) (facets []FacetRow) {
	for place := range st.FacetsNow.Scan(keyOf(entity).String(), "") {
		if row, ok := st.facetNow(place); ok && row.Kind == kind && row.Value != "" {
			facets = append(facets, row)
		}
	}
	return facets
}

// DerivationsOf yields the current derivations of a job.
func (st *State) DerivationsOf(job fact.ID) iter.Seq[*Derivation] {
	return st.derivationsAt(st.JobDerivations, job)
}

// Dataset returns a dataset's name, false if it was never named.
func (st *State) Dataset(id fact.ID) (openlineage.Name, bool) {
	return st.Datasets.Get(keyOf(id).String())
}

// Job returns a job's name, false if it was never named.
func (st *State) Job(id fact.ID) (openlineage.Name, bool) { return st.Jobs.Get(keyOf(id).String()) }

// Pending counts the Todos, up to a bound.
func (st *State) Pending(bound int) (n int) {
	for range st.Todos.Scan("", "") {
		if n++; n == bound {
			break
		}
	}
	return n
}

// Derivations returns the derivations that a logical run asserts, each once.
func (r *RunRow) Derivations() (out []*Derivation) {
	seen := map[fact.ID]bool{}
	add := func(list []*Derivation) {
		for _, d := range list {
			if !seen[d.ID] {
				seen[d.ID] = true
				out = append(out, d)
			}
		}
	}
	for _, a := range r.Word {
		for i := range a.Said.Outputs {
			add(a.Said.Outputs[i].Derivations)
		}
		add(a.Said.Reads)
	}
	return out
}

// NamesDataset reports whether an event names a dataset anywhere.
func NamesDataset(e *fact.Event, dataset fact.ID) bool {
	_, datasets := namedBy(e)
	return slices.ContainsFunc(datasets, func(n openlineage.Name) bool { return fact.DatasetKey(n) == dataset })
}
