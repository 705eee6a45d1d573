// Package memory is the reference driver of package graph: the facts and what
// Settle makes of them, in memory, gone when the process ends. Every other
// driver must give the same answers.
package memory

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/graph/query"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/namesearch"
	"github.com/graphd/graphd/internal/openlineage"
)

// settleAtOnce bounds the Todos done under one lock, so that reads and other
// writes get in between while a large change settles.
const settleAtOnce = 200

// Store implements graph.Store.
type Store struct {
	mu        sync.RWMutex
	closed    bool
	state     *lineage.State
	archive   graph.Archive
	names     *namesearch.Index
	positions map[lane]uint64
	last      uint64 // place in the log
}

type lane struct {
	log    string
	number int
}

// New returns an empty store. version is the identity version of the events that
// will be written; archive has the bodies of the log.
func New(version string, archive graph.Archive) *Store {
	s := &Store{
		state: lineage.NewMemory(version), archive: archive, names: namesearch.New(), positions: map[lane]uint64{},
	}
	s.state.NewName = func(kind fact.EntityKind, id fact.ID, name openlineage.Name) {
		s.names.Add(namesearch.Entry{Kind: kind, ID: id, Name: name})
	}
	return s
}

// Write implements graph.Writer.
func (s *Store) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("writing %d events: %w", len(b.Deliveries), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, graph.ErrClosed
	}
	for _, d := range b.Deliveries {
		s.state.Merge(d.Event)
		if d.Sequence > 0 {
			s.state.Log(d.Event, d.Sequence)
			s.last = max(s.last, d.Sequence)
		}
	}
	if l := (lane{b.Log, b.Lane}); b.Through > s.positions[l] {
		s.positions[l] = b.Through
	}
	s.state.Settle(settleAtOnce)
	return query.Standings(s.state, b.Deliveries), nil
}

// Settle implements graph.Writer.
func (s *Store) Settle(ctx context.Context) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("settling: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, graph.ErrClosed
	}
	s.state.Settle(settleAtOnce)
	return s.state.Pending(1) > 0, nil
}

// Position implements graph.Writer.
func (s *Store) Position(ctx context.Context, log string, number int) (position uint64, err error) {
	err = s.read(ctx, func(*query.View) error {
		position = s.positions[lane{log, number}]
		return nil
	})
	return position, err
}

// Snapshot implements graph.Reader.
func (s *Store) Snapshot(ctx context.Context, w io.Writer) error {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return graph.ErrClosed
		}
		if s.state.Settle(settleAtOnce) == 0 {
			break
		}
		s.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("waiting for the graph to settle: %w", err)
		}
	}
	g := s.state.Graph()
	s.mu.Unlock()
	return g.WriteSnapshot(w)
}

// Close implements graph.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// read runs f over the graph of one moment.
func (s *Store) read(ctx context.Context, f func(*query.View) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return graph.ErrClosed
	}
	return f(&query.View{State: s.state, Archive: s.archive, Names: s.names})
}

// answer runs one read.
func answer[T any](ctx context.Context, s *Store, f func(*query.View) (T, error)) (out T, err error) {
	err = s.read(ctx, func(v *query.View) error {
		out, err = f(v)
		return err
	})
	return out, err
}

// Lineage implements graph.Reader.
func (s *Store) Lineage(ctx context.Context, q graph.LineageQuery) (*graph.Lineage, error) {
	return answer(ctx, s, func(v *query.View) (*graph.Lineage, error) { return v.Lineage(q) })
}

// Datasets implements graph.Reader.
func (s *Store) Datasets(ctx context.Context, q graph.EntityQuery) (graph.Page[graph.Entity], error) {
	return answer(ctx, s, func(v *query.View) (graph.Page[graph.Entity], error) { return v.Entities(fact.DatasetEntity, q) })
}

// Jobs implements graph.Reader.
func (s *Store) Jobs(ctx context.Context, q graph.EntityQuery) (graph.Page[graph.Entity], error) {
	return answer(ctx, s, func(v *query.View) (graph.Page[graph.Entity], error) { return v.Entities(fact.JobEntity, q) })
}

// Dataset implements graph.Reader.
func (s *Store) Dataset(ctx context.Context, id fact.ID) (*graph.Dataset, error) {
	return answer(ctx, s, func(v *query.View) (*graph.Dataset, error) { return v.Dataset(id) })
}

// Job implements graph.Reader.
func (s *Store) Job(ctx context.Context, id fact.ID) (*graph.Job, error) {
	return answer(ctx, s, func(v *query.View) (*graph.Job, error) { return v.Job(id) })
}

// Search implements graph.Reader.
func (s *Store) Search(ctx context.Context, q graph.SearchQuery) (graph.Found, error) {
	return answer(ctx, s, func(v *query.View) (graph.Found, error) { return v.Search(q), nil })
}

// Runs implements graph.Reader.
func (s *Store) Runs(ctx context.Context, q graph.RunQuery) (graph.Page[*lineage.RunRow], error) {
	return answer(ctx, s, func(v *query.View) (graph.Page[*lineage.RunRow], error) { return v.Runs(q) })
}

// Run implements graph.Reader.
func (s *Store) Run(ctx context.Context, id lineage.RunID) (*graph.Run, error) {
	return answer(ctx, s, func(v *query.View) (*graph.Run, error) { return v.Run(id) })
}

// Standings implements graph.Reader.
func (s *Store) Standings(ctx context.Context, attempts []fact.Attempt) ([]graph.Standing, error) {
	return answer(ctx, s, func(v *query.View) ([]graph.Standing, error) { return v.Standings(attempts), nil })
}

// Events implements graph.Reader.
func (s *Store) Events(ctx context.Context, q graph.EventQuery) (graph.Page[graph.LoggedEvent], error) {
	return answer(ctx, s, func(v *query.View) (graph.Page[graph.LoggedEvent], error) { return v.Events(q, s.last) })
}

// Event implements graph.Reader.
func (s *Store) Event(ctx context.Context, id fact.ID) ([]graph.LoggedEvent, error) {
	return answer(ctx, s, func(v *query.View) ([]graph.LoggedEvent, error) { return v.Event(id) })
}

// Stats implements graph.Reader.
func (s *Store) Stats(ctx context.Context) (graph.Stats, error) {
	return answer(ctx, s, func(v *query.View) (graph.Stats, error) { return v.Stats(), nil })
}
