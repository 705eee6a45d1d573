package query

import (
	"errors"
	"iter"
	"slices"
	"strconv"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/openlineage"
)

const (
	// examined bounds the bodies that one page reads from the log in search of some
	// that fit a filter.
	examined = 1000
	// observed bounds the observations that the events of a run are looked up in.
	observed = 10_000
)

// Events answers as graph.Reader's. last is the log's last place that the graph
// has.
func (v *View) Events(q graph.EventQuery, last uint64) (page graph.Page[graph.LoggedEvent], err error) {
	before := last + 1
	if q.Cursor != "" {
		p, err := parts(q.Cursor, "event", 1)
		if err != nil {
			return page, err
		}
		n, err := strconv.ParseUint(p[0], 10, 64)
		if err != nil || n < 1 {
			return page, graph.ErrCursor
		}
		before = min(before, n)
	}
	read := 0
	for sequence := range v.sequences(&q, before) {
		if len(page.Items) == q.Limit || read == examined {
			page.Next = cursor("event", strconv.FormatUint(before, 10))
			return page, nil
		}
		read++
		before = sequence
		e, err := v.Archive.Event(sequence)
		if errors.Is(err, graph.ErrNotFound) {
			continue // the log no longer reaches back so far
		}
		if err != nil {
			return page, err
		}
		if v.matches(&e, &q) {
			page.Items = append(page.Items, e)
		}
	}
	return page, nil
}

// sequences yields the places, last first, in which what is asked for may stand.
func (v *View) sequences(q *graph.EventQuery, before uint64) iter.Seq[uint64] {
	switch {
	case !q.Run.IsZero():
		return slices.Values(v.State.RunSequences(q.Run, before, observed))
	case !q.Job.IsZero():
		return v.State.EntitySequences(q.Job, before)
	}
	return func(yield func(uint64) bool) {
		for sequence := before - 1; sequence > 0; sequence-- {
			if !yield(sequence) {
				return
			}
		}
	}
}

func (v *View) matches(l *graph.LoggedEvent, q *graph.EventQuery) bool {
	e := l.Event
	if q.Type != "" && e.Type != q.Type || q.Outcome != "" && l.Outcome != q.Outcome {
		return false
	}
	if !q.Job.IsZero() && (e.Kind == openlineage.DatasetEvent || fact.JobKey(e.Job) != q.Job) {
		return false
	}
	if !q.Dataset.IsZero() && !lineage.NamesDataset(e, q.Dataset) {
		return false
	}
	if !q.Run.IsZero() {
		row := v.State.AttemptOf(e.Attempt)
		return e.Kind == openlineage.RunEvent && row != nil && row.Run == q.Run
	}
	return true
}

// Event answers as graph.Reader's.
func (v *View) Event(id fact.ID) (bodies []graph.LoggedEvent, err error) {
	for sequence := range v.State.EventSequences(id) {
		e, err := v.Archive.Event(sequence)
		if errors.Is(err, graph.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, e)
	}
	if len(bodies) == 0 {
		return nil, notFound("event", id)
	}
	return bodies, nil
}
