package lineage

import (
	"cmp"
	"iter"
	"slices"

	"github.com/graphd/graphd/internal/fact"
)

// Direction is where a walk goes from its root.
type Direction string

// The directions of a walk along the flow of data.
const (
	Up   Direction = "upstream"
	Down Direction = "downstream"
	Both Direction = "both"
)

// Walk is a walk over current lineage: breadth first, each dataset and each
// derivation once, so that its cost grows with what it reaches and not with the
// number of paths. Datasets that are one by their symlinks are walked as one.
type Walk struct {
	Direction Direction
	// Depth bounds how many derivations lie between the root and a dataset; 0
	// stops at the root.
	Depth int
	// MaxNodes bounds the datasets and derivations of the answer; its edges are at
	// most edgesPerNode times as many.
	MaxNodes int
}

// edgesPerNode bounds the edges of an answer: a few thousand wide derivations
// over the same few thousand datasets would have millions.
const edgesPerNode = 20

// DatasetNode is a dataset that a walk reached, or several that are one.
type DatasetNode struct {
	DatasetRef
	// Names are the datasets that are walked as this one, itself included, sorted.
	Names []DatasetRef
	// Level is how many derivations away from the root it is; negative upstream.
	Level int
	// Degree counts all its current derivations, whether the walk took them or not.
	Degree Degree
	// Expanded says which of its derivations are in the answer: all of those
	// upstream, all of those downstream.
	ExpandedUp, ExpandedDown bool
}

// WalkEdge leads from a dataset to a derivation or from a derivation to a dataset,
// along the data flow.
type WalkEdge struct {
	Dataset    fact.ID // of the DatasetNode
	Derivation fact.ID
	// Into says that the dataset feeds the derivation; else it is fed by it.
	Into  bool
	Basis Basis // of an edge into a derivation
}

// Cut says what a walk left out at a level, and why.
type Cut struct {
	Level   int    `json:"level"`
	Omitted int    `json:"omitted"`
	Reason  string `json:"reason"`
}

// Reached is the answer of a walk, sorted by (level, key).
type Reached struct {
	Datasets    []*DatasetNode
	Derivations []*Derivation
	Edges       []WalkEdge
	Cuts        []Cut
}

// Neighbours is what a walk needs to see of a graph.
type Neighbours interface {
	// UpstreamOf yields the current derivations that feed a dataset.
	UpstreamOf(dataset fact.ID) iter.Seq[*Derivation]
	// DownstreamOf yields the current derivations that a dataset feeds.
	DownstreamOf(dataset fact.ID) iter.Seq[*Derivation]
	// SameAs yields the datasets that are linked to a dataset, one step.
	SameAs(dataset fact.ID) iter.Seq[DatasetRef]
	// DegreeOf counts a dataset's current derivations.
	DegreeOf(dataset fact.ID) Degree
	// FeedsNow reports whether a derivation is current for an output.
	FeedsNow(derivation, output fact.ID) bool
}

// From walks from datasets, which exist.
func (w Walk) From(g Neighbours, roots ...DatasetRef) *Reached {
	k := w.walker(g)
	var start []*DatasetNode
	for _, r := range roots {
		if n, isNew := k.node(r, 0); isNew {
			start = append(start, n)
		}
	}
	if w.Direction != Down {
		k.spread(start, -1, 1)
	}
	if w.Direction != Up {
		k.spread(start, 1, 1)
	}
	return k.sorted()
}

// Through walks from derivations: their outputs are at level 0, their inputs at
// level -1, and each direction goes on from its own side.
func (w Walk) Through(g Neighbours, roots ...*Derivation) *Reached {
	k := w.walker(g)
	var inputs, outputs []*DatasetNode
	add := func(r DatasetRef, level int, d *Derivation, into bool, side *[]*DatasetNode) {
		n, isNew := k.node(r, level)
		if isNew {
			*side = append(*side, n)
		}
		k.edge(WalkEdge{Dataset: n.ID, Derivation: d.ID, Into: into}, d, n)
	}
	for _, d := range roots {
		if k.derivations[d.ID] {
			continue
		}
		ends := len(d.Inputs) + len(d.Outputs)
		if reason := k.overflow(1+ends, ends); reason != "" {
			k.cut(0, 1, reason)
			continue
		}
		k.derivations[d.ID] = true
		k.answer.Derivations = append(k.answer.Derivations, d)
		for _, o := range d.Outputs {
			add(o, 0, d, false, &outputs)
		}
		for i := range d.Inputs {
			add(d.Inputs[i].DatasetRef, -1, d, true, &inputs)
		}
	}
	if w.Direction != Down {
		k.spread(inputs, -1, 2)
	}
	if w.Direction != Up {
		k.spread(outputs, 1, 1)
	}
	return k.sorted()
}

func (w Walk) walker(g Neighbours) *walker {
	return &walker{
		walk: w, graph: g, answer: &Reached{}, nodes: map[fact.ID]*DatasetNode{}, derivations: map[fact.ID]bool{},
		edges: map[WalkEdge]bool{},
	}
}

type walker struct {
	walk        Walk
	graph       Neighbours
	answer      *Reached
	nodes       map[fact.ID]*DatasetNode // by each of their names
	derivations map[fact.ID]bool
	edges       map[WalkEdge]bool
}

// size counts what the answer holds.
func (k *walker) size() int { return len(k.answer.Datasets) + len(k.answer.Derivations) }

// node returns the node of a dataset, made if need be.
func (k *walker) node(r DatasetRef, level int) (n *DatasetNode, isNew bool) {
	if n := k.nodes[r.ID]; n != nil {
		return n, false
	}
	n = &DatasetNode{DatasetRef: r, Names: k.group(r), Level: level}
	for _, name := range n.Names {
		k.nodes[name.ID] = n
		d := k.graph.DegreeOf(name.ID)
		n.Degree.Up += d.Up
		n.Degree.Down += d.Down
	}
	n.DatasetRef = n.Names[0]
	k.answer.Datasets = append(k.answer.Datasets, n)
	return n, true
}

// maxGroup bounds how many names of one dataset a walk follows.
const maxGroup = 1000

// group returns the datasets that are one with r, sorted by name.
func (k *walker) group(r DatasetRef) []DatasetRef {
	group := []DatasetRef{r}
	seen := map[fact.ID]bool{r.ID: true}
	for i := 0; i < len(group) && len(group) < maxGroup; i++ {
		for other := range k.graph.SameAs(group[i].ID) {
			if !seen[other.ID] {
				seen[other.ID] = true
				group = append(group, other)
			}
		}
	}
	slices.SortFunc(group, func(a, b DatasetRef) int { return a.Name.Compare(b.Name) })
	return group
}

// hop is a derivation next to a node, and the datasets on its far side.
type hop struct {
	node       *DatasetNode
	derivation *Derivation
	far        []DatasetRef
}

// spread walks from start in one direction, sign -1 is upstream; depth is that
// of its first hop.
func (k *walker) spread(start []*DatasetNode, sign, depth int) {
	frontier := start
	for ; len(frontier) > 0; depth++ {
		if depth > k.walk.Depth {
			k.cutDepth(frontier, sign, depth)
			return
		}
		hops := k.hops(frontier, sign)
		next, room := k.take(hops, sign*depth)
		if !room {
			return
		}
		for _, n := range frontier {
			n.expanded(sign)
		}
		frontier = next
	}
}

func (n *DatasetNode) expanded(sign int) {
	if sign < 0 {
		n.ExpandedUp = true
	} else {
		n.ExpandedDown = true
	}
}

// hops returns the derivations next to a frontier, in the order of their keys.
func (k *walker) hops(frontier []*DatasetNode, sign int) (hops []hop) {
	for _, n := range frontier {
		for _, name := range n.Names {
			next := k.graph.UpstreamOf
			if sign > 0 {
				next = k.graph.DownstreamOf
			}
			for d := range next(name.ID) {
				hops = append(hops, hop{n, d, k.far(d, sign)})
			}
		}
	}
	slices.SortFunc(hops, func(a, b hop) int {
		return cmp.Or(fact.CompareIDs(a.derivation.ID, b.derivation.ID), fact.CompareIDs(a.node.ID, b.node.ID))
	})
	return hops
}

// far returns the datasets on the far side of a derivation: what feeds it, or
// those of its outputs that it feeds now.
func (k *walker) far(d *Derivation, sign int) (far []DatasetRef) {
	if sign < 0 {
		for i := range d.Inputs {
			far = append(far, d.Inputs[i].DatasetRef)
		}
		return far
	}
	for _, o := range d.Outputs {
		if k.graph.FeedsNow(d.ID, o.ID) {
			far = append(far, o)
		}
	}
	return far
}

// take adds hops to the answer, derivation by derivation in the order of keys,
// until a whole one no longer fits. It returns the datasets that are new, and
// whether everything fitted.
func (k *walker) take(hops []hop, level int) (next []*DatasetNode, room bool) {
	for i, h := range hops {
		more := 0
		if !k.derivations[h.derivation.ID] {
			more++
		}
		for _, f := range h.far {
			if k.nodes[f.ID] == nil {
				more++
			}
		}
		if reason := k.overflow(more, 1+len(h.far)); reason != "" {
			k.cut(level, distinct(hops[i:], k.derivations), reason)
			return nil, false
		}
		if !k.derivations[h.derivation.ID] {
			k.derivations[h.derivation.ID] = true
			k.answer.Derivations = append(k.answer.Derivations, h.derivation)
		}
		k.connect(h, level, &next)
	}
	return next, true
}

// cut notes what was left out, once for each level and reason.
func (k *walker) cut(level, omitted int, reason string) {
	if last := len(k.answer.Cuts) - 1; last >= 0 && k.answer.Cuts[last].Level == level && k.answer.Cuts[last].Reason == reason {
		k.answer.Cuts[last].Omitted += omitted
		return
	}
	k.answer.Cuts = append(k.answer.Cuts, Cut{Level: level, Omitted: omitted, Reason: reason})
}

// overflow says what bound more nodes and edges would break, "" for none.
func (k *walker) overflow(nodes, edges int) string {
	switch {
	case nodes > 0 && k.size()+nodes > k.walk.MaxNodes:
		return "nodes"
	case len(k.answer.Edges)+edges > edgesPerNode*k.walk.MaxNodes:
		return "edges"
	}
	return ""
}

func distinct(hops []hop, known map[fact.ID]bool) (n int) {
	seen := map[fact.ID]bool{}
	for _, h := range hops {
		if id := h.derivation.ID; !known[id] && !seen[id] {
			seen[id] = true
			n++
		}
	}
	return n
}

// connect adds the edges of a hop and the datasets on its far side.
func (k *walker) connect(h hop, level int, next *[]*DatasetNode) {
	d := h.derivation
	up := level < 0
	k.edge(WalkEdge{Dataset: h.node.ID, Derivation: d.ID, Into: !up}, d, h.node)
	for _, f := range h.far {
		n, isNew := k.node(f, level)
		if isNew {
			*next = append(*next, n)
		}
		k.edge(WalkEdge{Dataset: n.ID, Derivation: d.ID, Into: up}, d, n)
	}
}

// edge adds an edge once; one into a derivation has the best basis of the
// node's names.
func (k *walker) edge(e WalkEdge, d *Derivation, n *DatasetNode) {
	if k.edges[e] {
		return
	}
	k.edges[e] = true
	if e.Into {
		for i := range d.Inputs {
			if slices.ContainsFunc(n.Names, func(r DatasetRef) bool { return r.ID == d.Inputs[i].ID }) {
				if b := d.Inputs[i].Basis; e.Basis == "" || b != ByJob {
					e.Basis = b
				}
			}
		}
	}
	k.answer.Edges = append(k.answer.Edges, e)
}

// cutDepth notes what lies beyond the last level.
func (k *walker) cutDepth(frontier []*DatasetNode, sign, depth int) {
	omitted := distinct(k.hops(frontier, sign), k.derivations)
	if omitted > 0 {
		k.cut(sign*depth, omitted, "depth")
		return
	}
	for _, n := range frontier {
		n.expanded(sign)
	}
}

func (k *walker) sorted() *Reached {
	slices.SortFunc(k.answer.Datasets, func(a, b *DatasetNode) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), fact.CompareIDs(a.ID, b.ID))
	})
	slices.SortFunc(k.answer.Derivations, func(a, b *Derivation) int { return fact.CompareIDs(a.ID, b.ID) })
	slices.SortFunc(k.answer.Edges, func(a, b WalkEdge) int {
		return cmp.Or(fact.CompareIDs(a.Derivation, b.Derivation), cmp.Compare(flag(b.Into), flag(a.Into)), fact.CompareIDs(a.Dataset, b.Dataset))
	})
	return k.answer
}

// UpstreamOf yields the current derivations that feed a dataset.
func (st *State) UpstreamOf(dataset fact.ID) iter.Seq[*Derivation] {
	return st.derivationsAt(st.Upstream, dataset)
}

// DownstreamOf yields the current derivations that a dataset feeds, and those
// that only read it.
func (st *State) DownstreamOf(dataset fact.ID) iter.Seq[*Derivation] {
	return st.derivationsAt(st.Downstream, dataset)
}

func (st *State) derivationsAt(t Table[int], dataset fact.ID) iter.Seq[*Derivation] {
	return func(yield func(*Derivation) bool) {
		for key := range t.Scan(keyOf(dataset).String(), "") {
			d, ok := st.Derivations.Get(key[idLen:])
			if ok && !yield(d) {
				return
			}
		}
	}
}

// SameAs yields the datasets that a symlinks facet or a rename joins to one.
func (st *State) SameAs(dataset fact.ID) iter.Seq[DatasetRef] {
	return func(yield func(DatasetRef) bool) {
		for key := range st.Links.Scan(keyOf(dataset).String(), "") {
			n, _ := st.Datasets.Get(key[idLen:])
			if !yield(DatasetRef{idAt(key, idLen), n}) {
				return
			}
		}
	}
}

// DegreeOf counts a dataset's current derivations.
func (st *State) DegreeOf(dataset fact.ID) Degree {
	d, _ := st.Degrees.Get(keyOf(dataset).String())
	return d
}

// FeedsNow reports whether a derivation is current for an output.
func (st *State) FeedsNow(derivation, output fact.ID) bool {
	return has(st.Upstream, keyOf(output, derivation).String())
}
