package httpapi

import (
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/openlineage"
)

var lineageParameters = []string{
	"id", "type", "namespace", "name", "direction", "depth", "limit", "level", "view", "asOf", "knownAt", "nodeId",
}

// What a walk takes if it is not told, and at most.
const (
	defaultDepth = 5
	maxDepth     = 100
	defaultNodes = 500
	maxNodes     = 10_000
)

// The kinds of entity that a walk can begin at, and the levels of its answer.
const (
	datasetType = "dataset"
	jobType     = "job"
	runType     = "run"
)

type lineageAnswer struct {
	Root  rootRef     `json:"root"`
	Nodes []any       `json:"nodes"`
	Edges []edge      `json:"edges"`
	Meta  lineageMeta `json:"meta"`
}

// rootRef is where the walk began. A dataset is the node of that ID, under the
// first of its names.
type rootRef struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// edge leads along the flow of data.
type edge struct {
	ID   string `json:"id"`
	From string `json:"from"`
	To   string `json:"to"`
	// Kind is input (a derivation reads a dataset), output (it writes one) or data
	// (a job reads what another wrote).
	Kind  string        `json:"kind"`
	Basis lineage.Basis `json:"basis,omitempty"`
	// Via are the datasets by which one job feeds another.
	Via []fact.ID `json:"via,omitempty"`
}

func newEdge(kind, from, to string) edge {
	return edge{ID: from + "-" + to, From: from, To: to, Kind: kind}
}

type lineageMeta struct {
	Truncated bool `json:"truncated"`
	// Cut says what was left out, at which distance from the root, and why.
	Cut []lineage.Cut `json:"cut"`
	// View is which lineage it is: current.
	View string `json:"view"`
	// Settling counts what was written and is not in the answer yet.
	Settling int `json:"settling"`
}

type datasetNode struct {
	named
	Type string `json:"type"`
	// Aliases are the other names that are walked as this one.
	Aliases []named `json:"aliases"`
	// Level is how many derivations away from the root it is, negative upstream.
	Level int `json:"level"`
	// Degree counts all its derivations, Expanded says whether the answer has
	// them.
	Degree   lineage.Degree `json:"degree"`
	Expanded expanded       `json:"expanded"`
}

type expanded struct {
	Upstream   bool `json:"upstream"`
	Downstream bool `json:"downstream"`
}

type derivationNode struct {
	ID   fact.ID `json:"id"`
	Type string  `json:"type"`
	// Job is null where a dataset event declares the lineage, under no job.
	Job *named `json:"job"`
}

type jobNode struct {
	named
	Type string `json:"type"`
}

// getLineage walks upstream and downstream.
func (s *Server) getLineage(c echo.Context, q *query) error {
	if err := notYet(q); err != nil {
		return err
	}
	root, kind := s.root(q)
	walk := lineage.Walk{
		Direction: choice(q, "direction", lineage.Both, lineage.Up, lineage.Down, lineage.Both),
		Depth:     q.number("depth", defaultDepth, 0, maxDepth),
		MaxNodes:  q.number("limit", defaultNodes, 1, maxNodes),
	}
	level := choice(q, "level", datasetType, datasetType, jobType)
	if err := q.err(); err != nil {
		return err
	}
	found, err := s.opt.Node.Store.Lineage(c.Request().Context(), graph.LineageQuery{Root: root, Walk: walk})
	if err != nil {
		return err
	}
	answer := lineageAnswer{
		Root: rootRef{found.Root, kind}, Nodes: []any{}, Edges: []edge{},
		Meta: lineageMeta{Cut: found.Cuts, View: "current", Settling: found.Settling},
	}
	if level == jobType {
		jobLevel(&answer, found.Reached)
	} else {
		datasetLevel(&answer, found.Reached)
	}
	if answer.Meta.Truncated = len(answer.Meta.Cut) > 0; !answer.Meta.Truncated {
		answer.Meta.Cut = []lineage.Cut{}
	}
	return writeRead(c, answer)
}

// notYet refuses what is planned and not there.
func notYet(q *query) error {
	wait := func(name, what string) error {
		return fail("not-available", []Fault{{Parameter: text(name), Reason: "not available yet"}}, "%s", what)
	}
	switch {
	case q.has("nodeId"):
		return wait("nodeId", "Compatibility with Marquez, whose parameter nodeId is, is not there yet. "+
			"Name the root by type and id, or by type, namespace and name.")
	case q.has("asOf"):
		return wait("asOf", "Lineage as of a time is not available yet: leave asOf out to read what is current.")
	case q.has("knownAt"):
		return wait("knownAt", "Lineage as it was known at a time is not available yet: leave knownAt out to read what is current.")
	case q.has("view") && q.values.Get("view") != "current":
		return wait("view", "Only view=current is available yet.")
	case slices.Contains([]string{"run", "column"}, q.values.Get("level")):
		return wait("level", "Only level=dataset and level=job are available yet.")
	case q.values.Get("type") == "field":
		return wait("type", "Lineage of fields is not available yet.")
	}
	return nil
}

// root reads where to begin: type with id, or with namespace and name.
func (s *Server) root(q *query) (root graph.Root, kind string) {
	kind = choice(q, "type", "", datasetType, jobType, runType)
	if !q.has("type") {
		q.wrong("type", "it is missing: want dataset, job or run")
	}
	name := openlineage.Name{Namespace: q.text("namespace"), Name: q.text("name")}
	switch byName := q.has("namespace") || q.has("name"); {
	case byName && q.has("id"):
		q.wrong("id", "it stands beside a name: give one of them")
	case byName && kind == runType:
		q.wrong("id", "a run is named by its id alone")
	case byName && !q.has("namespace"):
		q.wrong("namespace", "it is missing beside name")
	case byName && !q.has("name"):
		q.wrong("name", "it is missing beside namespace")
	case !byName && !q.has("id"):
		q.wrong("id", "it is missing: give id, or namespace and name")
	case kind == runType:
		root.Run = q.run("id")
	case kind == jobType:
		if root.Job = q.id("id"); byName {
			root.Job = fact.JobKey(name)
		}
	default:
		if root.Dataset = q.id("id"); byName {
			root.Dataset = s.datasetKey(name)
		}
	}
	return root, kind
}

// datasetKey finds the dataset behind a name as a producer sends it.
func (s *Server) datasetKey(sent openlineage.Name) fact.ID {
	entity, _, _ := s.opt.Node.Names.Entity(sent)
	return fact.DatasetKey(entity)
}

// datasetLevel shows datasets and the derivations between them.
func datasetLevel(a *lineageAnswer, r *lineage.Reached) {
	for _, d := range r.Datasets {
		n := datasetNode{
			named: newNamed(d.ID, d.Name), Type: datasetType, Aliases: []named{}, Level: d.Level, Degree: d.Degree,
			Expanded: expanded{d.ExpandedUp, d.ExpandedDown},
		}
		for _, name := range d.Names {
			if name.ID != d.ID {
				n.Aliases = append(n.Aliases, newNamed(name.ID, name.Name))
			}
		}
		a.Nodes = append(a.Nodes, n)
	}
	for _, d := range r.Derivations {
		a.Nodes = append(a.Nodes, derivationNode{d.ID, "derivation", jobOf(d)})
	}
	for _, e := range r.Edges {
		if e.Into {
			input := newEdge("input", e.Dataset.String(), e.Derivation.String())
			input.Basis = e.Basis
			a.Edges = append(a.Edges, input)
		} else {
			a.Edges = append(a.Edges, newEdge("output", e.Derivation.String(), e.Dataset.String()))
		}
	}
}

// jobOf names the job of a derivation.
func jobOf(d *lineage.Derivation) *named { return jobOrNone(d.Job) }

// jobOrNone names a job, nil where a dataset event declares something under no
// job.
func jobOrNone(n openlineage.Name) *named {
	if n == (openlineage.Name{}) {
		return nil
	}
	j := jobNamed(n)
	return &j
}
