package lineage

import (
	"iter"

	"github.com/graphd/graphd/internal/openlineage"
)

// Edge is one current pair of datasets: under Job, Input feeds Output.
type Edge struct {
	// Job is the zero name where a dataset event declares the edge.
	Job           openlineage.Name
	Input, Output openlineage.Name
	Basis         Basis
}

// CurrentEdges yields the current pairs of datasets in no particular order. A
// pair that is held for two reasons is yielded with each basis; what is only
// read or only written is in none.
func (g *Graph) CurrentEdges() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		for jo, items := range g.Current {
			if jo.output == readsOutput {
				continue
			}
			seen := map[Edge]bool{}
			for _, it := range items {
				if it.kind != derivationItem {
					continue
				}
				d := g.Derivations[it.id]
				for _, source := range d.Inputs {
					e := Edge{Job: d.Job, Input: source.Name, Output: g.Datasets[jo.output], Basis: source.Basis}
					if !seen[e] && !yield(e) {
						return
					}
					seen[e] = true
				}
			}
		}
	}
}
