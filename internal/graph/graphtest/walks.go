package graphtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
)

func (s *suite) walk(t *testing.T, store graph.Reader, root graph.Root, w lineage.Walk) *graph.Lineage {
	t.Helper()
	a, err := store.Lineage(t.Context(), graph.LineageQuery{Root: root, Walk: w})
	if err != nil {
		t.Fatal(err)
	}
	if err := closedUnderEdges(a.Reached); err != nil {
		t.Error(err)
	}
	return a
}

func names(a *graph.Lineage) (out []string) {
	for _, n := range a.Datasets {
		out = append(out, n.Name.Name)
	}
	slices.Sort(out)
	return out
}

// diamonds chains 16 diamonds: 65,536 paths over 49 datasets.
func (s *suite) diamonds(t *testing.T) {
	store := s.open(t)
	const n = 16
	for i := range n {
		top, left, right, bottom := fmt.Sprint("d", i), fmt.Sprint("l", i), fmt.Sprint("r", i), fmt.Sprint("d", i+1)
		s.write(t, store, complete(fmt.Sprint("split", i), 4*i, []string{top}, []string{left, right})...)
		s.write(t, store, complete(fmt.Sprint("join", i), 4*i+2, []string{left, right}, []string{bottom})...)
	}
	for _, c := range []struct {
		root string
		dir  lineage.Direction
	}{{fmt.Sprint("d", n), lineage.Up}, {"d0", lineage.Down}} {
		a := s.walk(t, store, graph.Root{Dataset: dataset(c.root)}, lineage.Walk{Direction: c.dir, Depth: 100, MaxNodes: 1000})
		if len(a.Datasets) != 3*n+1 || len(a.Derivations) != 2*n || len(a.Edges) != 6*n || len(a.Cuts) > 0 {
			t.Errorf("%s of %s: %d datasets, %d derivations, %d edges, cuts %v; want %d, %d, %d and none",
				c.dir, c.root, len(a.Datasets), len(a.Derivations), len(a.Edges), a.Cuts, 3*n+1, 2*n, 6*n)
		}
	}
}

func (s *suite) cuts(t *testing.T) {
	store := s.open(t)
	for i := range 5 {
		s.write(t, store, complete(fmt.Sprint("j", i), 2*i, []string{fmt.Sprint("d", i)}, []string{fmt.Sprint("d", i+1)})...)
	}
	for i := range 30 {
		s.write(t, store, complete(fmt.Sprint("wide", i), 100+2*i, []string{"d5"}, []string{fmt.Sprint("leaf", i)})...)
	}
	root := graph.Root{Dataset: dataset("d5")}
	a := s.walk(t, store, root, lineage.Walk{Direction: lineage.Up, Depth: 2, MaxNodes: 100})
	if got := names(a); !slices.Equal(got, []string{"d3", "d4", "d5"}) {
		t.Errorf("two levels up: %v", got)
	}
	if len(a.Cuts) != 1 || a.Cuts[0] != (lineage.Cut{Level: -3, Omitted: 1, Reason: "depth"}) {
		t.Errorf("two levels up: cuts %v, want one derivation at level -3", a.Cuts)
	}
	a = s.walk(t, store, root, lineage.Walk{Direction: lineage.Up, Depth: 5, MaxNodes: 100})
	if len(a.Cuts) > 0 {
		t.Errorf("all levels up: cuts %v, want none: nothing lies beyond", a.Cuts)
	}
	a = s.walk(t, store, root, lineage.Walk{Direction: lineage.Down, Depth: 5, MaxNodes: 21})
	if len(a.Datasets) != 11 || len(a.Derivations) != 10 {
		t.Errorf("at most 21 nodes: %d datasets and %d derivations", len(a.Datasets), len(a.Derivations))
	}
	if len(a.Cuts) != 1 || a.Cuts[0] != (lineage.Cut{Level: 1, Omitted: 20, Reason: "nodes"}) {
		t.Errorf("at most 21 nodes: cuts %v, want 20 derivations at level 1", a.Cuts)
	}
	i := slices.IndexFunc(a.Datasets, func(n *lineage.DatasetNode) bool { return n.Name.Name == "d5" })
	if n := a.Datasets[i]; n.Degree != (lineage.Degree{Up: 1, Down: 30}) || n.ExpandedDown {
		t.Errorf("the root says degree %v, expanded %v; want 1 up, 30 down, not expanded", n.Degree, n.ExpandedDown)
	}
	a = s.walk(t, store, root, lineage.Walk{Direction: lineage.Both, Depth: 0, MaxNodes: 10})
	if len(a.Datasets) != 1 || len(a.Cuts) != 2 {
		t.Errorf("depth 0: %d datasets, cuts %v", len(a.Datasets), a.Cuts)
	}
}

// groups: a path of which two neighbours know the middle by different names.
func (s *suite) groups(t *testing.T) {
	store := s.open(t)
	s.write(t, store, complete("j", 1, []string{"A"}, []string{"M1"})...)
	s.write(t, store, complete("k", 3, []string{"M2|" + symlinks("M1")}, []string{"Z"})...)
	a := s.walk(t, store, graph.Root{Dataset: dataset("Z")}, lineage.Walk{Direction: lineage.Up, Depth: 9, MaxNodes: 100})
	if got := names(a); !slices.Equal(got, []string{"A", "M1", "Z"}) {
		t.Errorf("upstream of Z: %v, want A, M1 (with M2) and Z", got)
	}
	b := s.walk(t, store, graph.Root{Dataset: dataset("M2")}, lineage.Walk{Direction: lineage.Both, Depth: 9, MaxNodes: 100})
	if b.Root != dataset("M1").String() || len(b.Datasets) != 3 {
		t.Errorf("around M2: root %s of %v, want that of M1", b.Root, names(b))
	}
	// The names part again when a newer facet says so.
	s.write(t, store, complete("k", 5, []string{"M2|" + symlinks("other")}, []string{"Z"})...)
	c := s.walk(t, store, graph.Root{Dataset: dataset("Z")}, lineage.Walk{Direction: lineage.Up, Depth: 9, MaxNodes: 100})
	if got := names(c); !slices.Equal(got, []string{"M2", "Z"}) {
		t.Errorf("upstream of Z after the names parted: %v, want M2 and Z", got)
	}
}

func (s *suite) otherRoots(t *testing.T) {
	store := s.open(t)
	s.write(t, store, complete("j", 1, []string{"A"}, []string{"B"})...)
	results := s.write(t, store, complete("k", 3, []string{"B"}, []string{"C"})...)
	s.write(t, store, complete("l", 5, []string{"C"}, []string{"D"})...)
	for what, root := range map[string]graph.Root{"job": {Job: job("k")}, "run": {Run: results[1].Run}} {
		up := s.walk(t, store, root, lineage.Walk{Direction: lineage.Up, Depth: 9, MaxNodes: 100})
		if got := names(up); !slices.Equal(got, []string{"A", "B", "C"}) {
			t.Errorf("upstream of the %s: %v", what, got)
		}
		both := s.walk(t, store, root, lineage.Walk{Direction: lineage.Both, Depth: 9, MaxNodes: 100})
		if got := names(both); !slices.Equal(got, []string{"A", "B", "C", "D"}) {
			t.Errorf("around the %s: %v", what, got)
		}
	}
}
