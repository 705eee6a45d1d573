package memory

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/openlineage"
)

// Lineage implements graph.Reader.
func (s *Store) Lineage(ctx context.Context, q graph.LineageQuery) (*graph.Lineage, error) {
	var answer *graph.Lineage
	err := s.read(ctx, func(st *lineage.State) (err error) {
		answer, err = walk(st, q)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading lineage: %w", err)
	}
	return answer, nil
}

func walk(st *lineage.State, q graph.LineageQuery) (*graph.Lineage, error) {
	answer := &graph.Lineage{Settling: st.Pending(maxPending)}
	switch {
	case !q.Root.Dataset.IsZero():
		name, ok := st.Dataset(q.Root.Dataset)
		if !ok {
			return nil, fmt.Errorf("dataset %s: %w", q.Root.Dataset, graph.ErrNotFound)
		}
		answer.Reached = q.Walk.From(st, lineage.DatasetRef{ID: q.Root.Dataset, Name: name})
		answer.Root = q.Root.Dataset.String()
		for _, n := range answer.Datasets {
			if slices.ContainsFunc(n.Names, func(r lineage.DatasetRef) bool { return r.ID == q.Root.Dataset }) {
				answer.Root = n.ID.String()
			}
		}
	case !q.Root.Job.IsZero():
		if _, ok := st.Job(q.Root.Job); !ok {
			return nil, fmt.Errorf("job %s: %w", q.Root.Job, graph.ErrNotFound)
		}
		answer.Reached = q.Walk.Through(st, slices.Collect(st.DerivationsOf(q.Root.Job))...)
		answer.Root = q.Root.Job.String()
	default:
		run := st.Run(q.Root.Run)
		if run == nil {
			return nil, fmt.Errorf("run %s: %w", q.Root.Run, graph.ErrNotFound)
		}
		answer.Reached = q.Walk.Through(st, run.Derivations()...)
		answer.Root = run.ID.String()
	}
	return answer, nil
}

// maxPending bounds how far pending work is counted.
const maxPending = 10_000

// Datasets implements graph.Reader.
func (s *Store) Datasets(ctx context.Context, q graph.EntityQuery) (graph.Page[graph.Entity], error) {
	return s.entities(ctx, fact.DatasetEntity, q)
}

// Jobs implements graph.Reader.
func (s *Store) Jobs(ctx context.Context, q graph.EntityQuery) (graph.Page[graph.Entity], error) {
	return s.entities(ctx, fact.JobEntity, q)
}

func (s *Store) entities(ctx context.Context, kind fact.EntityKind, q graph.EntityQuery) (page graph.Page[graph.Entity], err error) {
	contains := strings.ToLower(q.Contains)
	err = s.read(ctx, func(st *lineage.State) error {
		after, err := entityCursor(st, kind, q.Cursor)
		if err != nil {
			return err
		}
		matching := func(yield func(graph.Entity) bool) {
			for id, n := range st.EntitiesFrom(kind, q.Namespace, after) {
				if strings.Contains(strings.ToLower(n.Name), contains) && !yield(graph.Entity{ID: id, Name: n}) {
					return
				}
			}
		}
		page = pageOf(matching, q.Limit, func(e graph.Entity) string { return cursor(string(kind), e.ID.String()) })
		return nil
	})
	return page, err
}

// pageOf takes limit elements and, if there are more, the cursor of the last.
func pageOf[T any](elems iter.Seq[T], limit int, cursorOf func(T) string) (page graph.Page[T]) {
	for e := range elems {
		if len(page.Items) == limit {
			page.Next = cursorOf(page.Items[limit-1])
			break
		}
		page.Items = append(page.Items, e)
	}
	return page
}

// cursor writes the name of a listing and parts as an opaque text; parts reads
// them.
func cursor(listing string, parts ...string) string {
	var b strings.Builder
	parts = append([]string{listing}, parts...)
	for _, p := range parts {
		b.WriteString(strconv.Itoa(len(p)))
		b.WriteByte(':')
		b.WriteString(p)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(b.String()))
}

func parts(cursor, listing string, want int) ([]string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, graph.ErrCursor
	}
	rest := string(raw)
	var parts []string
	for rest != "" {
		length, after, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(length)
		if !ok || err != nil || n < 0 || n > len(after) {
			return nil, graph.ErrCursor
		}
		parts, rest = append(parts, after[:n]), after[n:]
	}
	if len(parts) != want+1 || parts[0] != listing {
		return nil, graph.ErrCursor
	}
	return parts[1:], nil
}

// entityCursor returns the name behind which a listing of entities continues. A
// cursor holds the key and not the name, which may be long.
func entityCursor(st *lineage.State, kind fact.EntityKind, c string) (n openlineage.Name, err error) {
	if c == "" {
		return n, nil
	}
	p, err := parts(c, string(kind), 1)
	if err != nil {
		return n, err
	}
	id, err := fact.ParseID(p[0])
	if err != nil {
		return n, graph.ErrCursor
	}
	known := false
	if kind == fact.JobEntity {
		n, known = st.Job(id)
	} else {
		n, known = st.Dataset(id)
	}
	if !known {
		return n, graph.ErrCursor
	}
	return n, nil
}

// Dataset implements graph.Reader.
func (s *Store) Dataset(ctx context.Context, id fact.ID) (*graph.Dataset, error) {
	var d *graph.Dataset
	err := s.read(ctx, func(st *lineage.State) error {
		name, ok := st.Dataset(id)
		if !ok {
			return fmt.Errorf("dataset %s: %w", id, graph.ErrNotFound)
		}
		d = &graph.Dataset{
			Entity: graph.Entity{ID: id, Name: name}, Facets: facets(st, fact.DatasetEntity, id),
			Degree: st.DegreeOf(id), Upstream: slices.Collect(st.UpstreamOf(id)),
		}
		d.Dropped, _ = st.Dropped(id)
		for other := range st.SameAs(id) {
			d.Aliases = append(d.Aliases, other)
		}
		slices.SortFunc(d.Aliases, func(a, b lineage.DatasetRef) int { return a.Name.Compare(b.Name) })
		return nil
	})
	return d, err
}

func facets(st *lineage.State, kind fact.EntityKind, id fact.ID) []lineage.FacetRow {
	rows := st.FacetsOf(kind, id)
	slices.SortFunc(rows, func(a, b lineage.FacetRow) int { return cmp.Compare(a.Key, b.Key) })
	return rows
}

// Job implements graph.Reader.
func (s *Store) Job(ctx context.Context, id fact.ID) (*graph.Job, error) {
	var j *graph.Job
	err := s.read(ctx, func(st *lineage.State) error {
		name, ok := st.Job(id)
		if !ok {
			return fmt.Errorf("job %s: %w", id, graph.ErrNotFound)
		}
		j = &graph.Job{
			Entity: graph.Entity{ID: id, Name: name}, Facets: facets(st, fact.JobEntity, id),
			Derivations: slices.Collect(st.DerivationsOf(id)),
		}
		for run := range st.RunsNewestFirst(id, nil) {
			j.Latest = run
			break
		}
		return nil
	})
	return j, err
}

// Runs implements graph.Reader.
func (s *Store) Runs(ctx context.Context, q graph.RunQuery) (page graph.Page[*lineage.RunRow], err error) {
	var after *lineage.RunRow
	if q.Cursor != "" {
		if after, err = runCursor(q.Cursor); err != nil {
			return page, err
		}
	}
	err = s.read(ctx, func(st *lineage.State) error {
		matching := func(yield func(*lineage.RunRow) bool) {
			for run := range st.RunsNewestFirst(q.Job, after) {
				if (q.State == "" || run.State == q.State) && !yield(run) {
					return
				}
			}
		}
		page = pageOf(matching, q.Limit, func(r *lineage.RunRow) string {
			return cursor("run", r.ID.String(), strconv.FormatInt(r.Last.Sec, 10), strconv.Itoa(int(r.Last.Nano)))
		})
		return nil
	})
	return page, err
}

func runCursor(c string) (*lineage.RunRow, error) {
	p, err := parts(c, "run", 3)
	if err != nil {
		return nil, err
	}
	id, err1 := lineage.ParseRunID(p[0])
	sec, err2 := strconv.ParseInt(p[1], 10, 64)
	nano, err3 := strconv.ParseInt(p[2], 10, 32)
	if err1 != nil || err2 != nil || err3 != nil {
		return nil, graph.ErrCursor
	}
	return &lineage.RunRow{ID: id, Last: openlineage.Instant{Sec: sec, Nano: int32(nano)}}, nil
}

// Run implements graph.Reader.
func (s *Store) Run(ctx context.Context, id lineage.RunID) (*graph.Run, error) {
	var r *graph.Run
	err := s.read(ctx, func(st *lineage.State) error {
		row := st.Run(id)
		if row == nil {
			return fmt.Errorf("run %s: %w", id, graph.ErrNotFound)
		}
		r = &graph.Run{RunRow: row, Members: slices.Collect(st.AttemptsOf(id))}
		return nil
	})
	return r, err
}

// Events implements graph.Reader.
func (s *Store) Events(ctx context.Context, q graph.EventQuery) (page graph.Page[graph.LoggedEvent], err error) {
	before := -1
	if q.Cursor != "" {
		p, err := parts(q.Cursor, "event", 1)
		if err != nil {
			return page, err
		}
		if before, err = strconv.Atoi(p[0]); err != nil || before < 1 {
			return page, graph.ErrCursor
		}
	}
	err = s.read(ctx, func(st *lineage.State) error {
		if before < 0 || before > len(s.log) {
			before = len(s.log) + 1
		}
		matching := func(yield func(graph.LoggedEvent) bool) {
			for i := before - 2; i >= 0; i-- {
				if s.matches(st, &s.log[i], &q) && !yield(s.logged(i)) {
					return
				}
			}
		}
		page = pageOf(matching, q.Limit, func(e graph.LoggedEvent) string { return cursor("event", strconv.FormatInt(e.Sequence, 10)) })
		return nil
	})
	return page, err
}

func (s *Store) logged(i int) graph.LoggedEvent {
	l := &s.log[i]
	return graph.LoggedEvent{
		Event: l.event, Sequence: int64(i) + 1, Outcome: l.outcome, Received: l.received, Payload: l.payload, Deliveries: l.deliveries,
	}
}

func (s *Store) matches(st *lineage.State, l *logged, q *graph.EventQuery) bool {
	e := l.event
	if q.Type != "" && e.Type != q.Type || q.Outcome != "" && l.outcome != q.Outcome {
		return false
	}
	if !q.Job.IsZero() && (e.Kind == openlineage.DatasetEvent || fact.JobKey(e.Job) != q.Job) {
		return false
	}
	if !q.Dataset.IsZero() && !lineage.NamesDataset(e, q.Dataset) {
		return false
	}
	if !q.Run.IsZero() {
		row := st.AttemptOf(e.Attempt)
		return e.Kind == openlineage.RunEvent && row != nil && row.Run == q.Run
	}
	return true
}

// Event implements graph.Reader.
func (s *Store) Event(ctx context.Context, id fact.ID) (bodies []graph.LoggedEvent, err error) {
	err = s.read(ctx, func(*lineage.State) error {
		for _, i := range s.firsts[id] {
			bodies = append(bodies, s.logged(i))
		}
		if len(bodies) == 0 {
			return fmt.Errorf("event %s: %w", id, graph.ErrNotFound)
		}
		return nil
	})
	return bodies, err
}

// Stats implements graph.Reader.
func (s *Store) Stats(ctx context.Context) (stats graph.Stats, err error) {
	err = s.read(ctx, func(st *lineage.State) error {
		stats = graph.Stats{
			Datasets: st.Datasets.Len(), Jobs: st.Jobs.Len(), Runs: st.Runs.Len(), Attempts: st.Attempts.Len(),
			Events: st.Events.Len(), Derivations: st.Derivations.Len(),
			Deliveries: map[graph.Outcome]int64{}, Settling: st.Pending(maxPending), Bytes: s.bytes, Budget: s.budget,
		}
		for outcome, n := range s.stats {
			stats.Deliveries[outcome] = n
		}
		return nil
	})
	return stats, err
}
