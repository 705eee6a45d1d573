// Package memory is the reference driver of package graph: the facts and what
// Settle makes of them, in memory, gone when the process ends. Every other
// driver must give the same answers.
package memory

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
)

// settleAtOnce bounds the Todos done under one lock, so that reads and other
// writes get in between while a large change settles.
const settleAtOnce = 200

// Store implements graph.Store.
type Store struct {
	mu     sync.RWMutex
	closed bool
	state  *lineage.State
	bodies map[fact.ID]int // body digest -> index in log
	drifts map[drift]bool
	firsts map[fact.ID][]int // event -> its bodies in log, first first
	log    []logged
	stats  map[graph.Outcome]int64
	bytes  int64
	budget int64
}

// drift is one set of drifting fields seen under an event's content.
type drift struct{ event, content, drift fact.ID }

// logged is a distinct body.
type logged struct {
	event      *fact.Event
	payload    []byte
	received   time.Time
	outcome    graph.Outcome
	deliveries int
}

// eventOverhead is about what a new body takes beside its payload.
const eventOverhead = 4096

// New returns an empty store. version is the identity version of the events
// that will be written; budget bounds the bytes of what is kept, 0 for no bound.
func New(version string, budget int64) *Store {
	return &Store{
		state: lineage.NewMemory(version), bodies: map[fact.ID]int{}, drifts: map[drift]bool{}, firsts: map[fact.ID][]int{},
		stats: map[graph.Outcome]int64{}, budget: budget,
	}
}

// Write implements graph.Writer. Room for all that is new is taken before
// anything is merged, so that a call for which there is none leaves nothing.
func (s *Store) Write(ctx context.Context, deliveries []graph.Delivery) ([]graph.Result, error) {
	reserved, err := s.reserve(deliveries)
	if err != nil {
		return nil, fmt.Errorf("writing %d events: %w", len(deliveries), err)
	}
	results := make([]graph.Result, len(deliveries))
	for i := range deliveries {
		if err = ctx.Err(); err == nil {
			var taken int64
			taken, err = s.merge(&deliveries[i], &results[i])
			reserved -= taken
		}
		if err != nil {
			err = fmt.Errorf("writing event %d of %d: %w", i+1, len(deliveries), err)
			break
		}
	}
	s.mu.Lock()
	s.bytes -= reserved
	s.mu.Unlock()
	// What was merged is settled even if the caller has gone: nobody else would.
	for s.settle() {
	}
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range deliveries {
		if row := s.state.AttemptOf(deliveries[i].Event.Attempt); row != nil {
			results[i].Run, results[i].Attempt = row.Run, row.Key
		}
	}
	return results, nil
}

// reserve takes the bytes that the bodies not known yet need.
func (s *Store) reserve(deliveries []graph.Delivery) (size int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, graph.ErrClosed
	}
	counted := map[fact.ID]bool{}
	for i := range deliveries {
		body := deliveries[i].Event.Body
		if _, known := s.bodies[body]; !known && !counted[body] {
			counted[body] = true
			size += sizeOf(&deliveries[i])
		}
	}
	if s.budget > 0 && size > 0 && s.bytes+size > s.budget {
		return 0, fmt.Errorf("%w: %d of %d bytes are used and %d more are needed", graph.ErrFull, s.bytes, s.budget, size)
	}
	s.bytes += size
	return size, nil
}

func sizeOf(d *graph.Delivery) int64 { return int64(len(d.Payload)) + eventOverhead }

func (s *Store) settle() (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Settle(settleAtOnce) > 0
}

// merge keeps one delivery and merges its event. It returns what that took of
// what was reserved.
func (s *Store) merge(d *graph.Delivery, r *graph.Result) (taken int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, graph.ErrClosed
	}
	e := d.Event
	if i, known := s.bodies[e.Body]; known {
		s.log[i].deliveries++
		r.Outcome = graph.Retry
	} else {
		taken = sizeOf(d)
		r.Outcome = s.outcome(e, s.state.Merge(e))
		s.bodies[e.Body] = len(s.log)
		s.firsts[e.ID] = append(s.firsts[e.ID], len(s.log))
		s.log = append(s.log, logged{event: e, payload: d.Payload, received: d.Received, outcome: r.Outcome, deliveries: 1})
	}
	s.stats[r.Outcome]++
	first := &s.log[s.firsts[e.ID][0]]
	r.FirstSeen, r.FirstEventTime = first.received, first.event.Time
	return taken, nil
}

// outcome says what a body not seen before did.
func (s *Store) outcome(e *fact.Event, m lineage.Merged) graph.Outcome {
	key := drift{e.ID, e.Content, e.Drift}
	same := s.drifts[key]
	s.drifts[key] = true
	switch {
	case m.NewEvent:
		return graph.New
	case m.NewContent:
		return graph.Collision
	case same:
		return graph.Equivalent
	}
	return graph.Redescribed
}

// Snapshot implements graph.Reader.
func (s *Store) Snapshot(ctx context.Context, w io.Writer) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("waiting for the graph to settle: %w", err)
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return graph.ErrClosed
		}
		if s.state.Settle(settleAtOnce) > 0 {
			s.mu.Unlock()
			continue
		}
		g := s.state.Graph()
		s.mu.Unlock()
		return g.WriteSnapshot(w)
	}
}

// Close implements graph.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// read runs f over the state of one moment.
func (s *Store) read(ctx context.Context, f func(*lineage.State) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return graph.ErrClosed
	}
	return f(s.state)
}
