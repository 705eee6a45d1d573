package httpapi

import (
	"cmp"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
)

// maxPairs bounds the pairs of jobs that one answer lists: a thousand jobs that
// write a dataset and a thousand that read it are a million.
const maxPairs = 100_000

// jobLevel shows jobs and, between them, who reads what another wrote; it is
// the same walk with the datasets folded into edges. Lineage that a dataset
// event declares has no job: its derivation stands there in its place, so that
// the way through it is not lost.
func jobLevel(a *lineageAnswer, r *lineage.Reached) {
	jobs := map[fact.ID]fact.ID{} // by derivation
	seen := map[fact.ID]bool{}
	for _, d := range r.Derivations {
		id := d.ID
		var node any = derivationNode{ID: d.ID, Type: "derivation"}
		if job := jobOf(d); job != nil {
			id, node = job.ID, jobNode{*job, jobType}
		}
		jobs[d.ID] = id
		if !seen[id] {
			seen[id] = true
			a.Nodes = append(a.Nodes, node)
		}
	}
	type ends struct{ writers, readers []fact.ID }
	type end struct {
		dataset, job fact.ID
		reads        bool
	}
	at, known := map[fact.ID]*ends{}, map[end]bool{} // by dataset
	for _, e := range r.Edges {
		if at[e.Dataset] == nil {
			at[e.Dataset] = &ends{}
		}
		side := &at[e.Dataset].writers
		if e.Into {
			side = &at[e.Dataset].readers
		}
		if job := (end{e.Dataset, jobs[e.Derivation], e.Into}); !known[job] {
			known[job] = true
			*side = append(*side, job.job)
		}
	}
	type jobPair struct{ from, to fact.ID }
	via := map[jobPair][]fact.ID{}
	pairs, omitted := 0, 0
	for _, d := range r.Datasets {
		e := at[d.ID]
		if e == nil {
			continue
		}
		if n := len(e.writers) * len(e.readers); pairs+n > maxPairs {
			omitted += n
			continue
		}
		for _, from := range e.writers {
			for _, to := range e.readers {
				pairs++
				via[jobPair{from, to}] = append(via[jobPair{from, to}], d.ID)
			}
		}
	}
	for p, datasets := range via {
		e := newEdge("data", p.from.String(), p.to.String())
		e.Via = datasets
		a.Edges = append(a.Edges, e)
	}
	slices.SortFunc(a.Edges, func(x, y edge) int { return cmp.Compare(x.ID, y.ID) })
	if omitted > 0 {
		a.Meta.Cut = append(a.Meta.Cut, lineage.Cut{Omitted: omitted, Reason: "edges"})
	}
}
