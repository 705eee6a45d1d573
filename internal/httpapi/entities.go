package httpapi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/openlineage"
)

// page is a part of a list.
type page[T any] struct {
	Items []T `json:"items"`
	// Next is the cursor of the following part, null at the end.
	Next *string `json:"next"`
}

func newPage[T, U any](p graph.Page[T], show func(T) U) page[U] {
	out := page[U]{Items: make([]U, len(p.Items))}
	for i, item := range p.Items {
		out.Items[i] = show(item)
	}
	if p.Next != "" {
		out.Next = &p.Next
	}
	return out
}

func showEntity(e graph.Entity) named { return newNamed(e.ID, e.Name) }

// getDatasets lists datasets, or finds one by its whole name.
func (s *Server) getDatasets(c echo.Context, q *query) error {
	return s.entities(c, q, s.opt.Node.Store.Datasets, func(ctx context.Context, n openlineage.Name) (graph.Entity, error) {
		d, err := s.opt.Node.Store.Dataset(ctx, s.datasetKey(n))
		if err != nil {
			return graph.Entity{}, err
		}
		return d.Entity, nil
	})
}

// getJobs lists jobs, or finds one by its whole name.
func (s *Server) getJobs(c echo.Context, q *query) error {
	return s.entities(c, q, s.opt.Node.Store.Jobs, func(ctx context.Context, n openlineage.Name) (graph.Entity, error) {
		j, err := s.opt.Node.Store.Job(ctx, fact.JobKey(n))
		if err != nil {
			return graph.Entity{}, err
		}
		return j.Entity, nil
	})
}

type (
	lister func(context.Context, graph.EntityQuery) (graph.Page[graph.Entity], error)
	finder func(context.Context, openlineage.Name) (graph.Entity, error)
)

func (s *Server) entities(c echo.Context, q *query, list lister, find finder) error {
	eq := graph.EntityQuery{Paging: q.paging(), Namespace: q.text("namespace"), Contains: q.text("contains")}
	name := q.text("name")
	switch {
	case !q.has("name"):
	case !q.has("namespace"):
		q.wrong("namespace", "it is missing beside name")
	case q.has("contains"):
		q.wrong("contains", "it stands beside name, which is the whole name: give one of them")
	case q.has("cursor"):
		q.wrong("cursor", "a whole name has one page")
	}
	if err := q.err(); err != nil {
		return err
	}
	if !q.has("name") {
		found, err := list(c.Request().Context(), eq)
		if err != nil {
			return err
		}
		return writeRead(c, newPage(found, showEntity))
	}
	one, err := find(c.Request().Context(), openlineage.Name{Namespace: eq.Namespace, Name: name})
	var found graph.Page[graph.Entity]
	switch {
	case err == nil:
		found.Items = append(found.Items, one)
	case !errors.Is(err, graph.ErrNotFound):
		return err
	}
	return writeRead(c, newPage(found, showEntity))
}

// facetValue is a current facet of an entity.
type facetValue struct {
	Value json.RawMessage `json:"value"`
	// First and Last are the first and last event time that gave this value.
	First string `json:"firstEventTime"`
	Last  string `json:"lastEventTime"`
}

func showFacets(rows []lineage.FacetRow) object {
	o := object{}
	for i := range rows {
		r := &rows[i]
		o = append(o, pair{r.Key, facetValue{json.RawMessage(r.Value), when(r.First), when(r.Last)}})
	}
	return o
}

// derivation is a set of inputs that feeds a set of outputs under one job.
type derivation struct {
	ID      fact.ID       `json:"id"`
	Job     *named        `json:"job"`
	Inputs  []sourceNamed `json:"inputs"`
	Outputs []named       `json:"outputs"`
}

type sourceNamed struct {
	named
	Basis lineage.Basis `json:"basis"`
}

func showDerivation(d *lineage.Derivation) derivation {
	out := derivation{ID: d.ID, Job: jobOf(d), Inputs: make([]sourceNamed, len(d.Inputs)), Outputs: make([]named, len(d.Outputs))}
	for i := range d.Inputs {
		out.Inputs[i] = sourceNamed{newNamed(d.Inputs[i].ID, d.Inputs[i].Name), d.Inputs[i].Basis}
	}
	for i, o := range d.Outputs {
		out.Outputs[i] = newNamed(o.ID, o.Name)
	}
	return out
}

func showAll[T, U any](items []T, show func(T) U) []U {
	out := make([]U, len(items))
	for i, item := range items {
		out[i] = show(item)
	}
	return out
}

type dataset struct {
	named
	Facets  object  `json:"facets"`
	Aliases []named `json:"aliases"`
	// Dropped is when it was dropped, absent if it is not.
	Dropped  string         `json:"dropped,omitempty"`
	Degree   lineage.Degree `json:"degree"`
	Upstream []derivation   `json:"upstream"`
}

func (s *Server) getDataset(c echo.Context, q *query) error {
	id := q.parseID("id", c.Param("id"))
	if err := q.err(); err != nil {
		return err
	}
	d, err := s.opt.Node.Store.Dataset(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return writeRead(c, dataset{
		named: newNamed(d.ID, d.Name), Facets: showFacets(d.Facets), Dropped: when(d.Dropped), Degree: d.Degree,
		Aliases:  showAll(d.Aliases, func(r lineage.DatasetRef) named { return newNamed(r.ID, r.Name) }),
		Upstream: showAll(d.Upstream, showDerivation),
	})
}

type job struct {
	named
	Facets object `json:"facets"`
	// Latest is the logical run with the latest event, null if it never ran.
	Latest      *run         `json:"latestRun"`
	Derivations []derivation `json:"derivations"`
}

func (s *Server) getJob(c echo.Context, q *query) error {
	id := q.parseID("id", c.Param("id"))
	if err := q.err(); err != nil {
		return err
	}
	j, err := s.opt.Node.Store.Job(c.Request().Context(), id)
	if err != nil {
		return err
	}
	out := job{named: newNamed(j.ID, j.Name), Facets: showFacets(j.Facets), Derivations: showAll(j.Derivations, showDerivation)}
	if j.Latest != nil {
		latest := showRun(j.Latest)
		out.Latest = &latest
	}
	return writeRead(c, out)
}
