package projection

import (
	"context"
	"sync"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
)

// maxLag is the lag beyond which nobody waits for the graph.
const maxLag = time.Second

// Accepted is an event that the log has.
type Accepted struct {
	Sequence uint64
	Event    *fact.Event
	Received time.Time
	// Size is the length of the body, in bytes.
	Size int
}

// Ticket tells when events that were offered are in the graph.
type Ticket struct {
	attempts []fact.Attempt
	last     uint64        // the greatest sequence
	done     chan struct{} // closed when all that were offered are written

	mu        sync.Mutex
	left      int
	standings []graph.Standing
}

// written notes that an event is in the graph, and what its attempt stood as then:
// nothing, where that is not known.
func (t *Ticket) written(at int, s graph.Standing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.standings[at] = s
	if t.left--; t.left == 0 {
		close(t.done)
	}
}

// Offer tells the projector of events that were accepted just now, so that it
// need not read and decode them again.
func (p *Projector) Offer(events []Accepted) *Ticket {
	t := &Ticket{
		attempts: make([]fact.Attempt, len(events)), done: make(chan struct{}), left: len(events), standings: make([]graph.Standing, len(events)),
	}
	if len(events) == 0 {
		close(t.done)
		return t
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range events {
		t.attempts[i], t.last = e.Event.Attempt, max(t.last, e.Sequence)
		o := p.offered[e.Sequence]
		if e.Sequence <= p.position.Load() || o == nil && p.held+e.Size > offeredBytes {
			// Somebody was faster, or there is no room: the log has it.
			t.written(i, graph.Standing{})
			continue
		}
		if o == nil {
			o = &offer{event: e.Event, size: e.Size, received: e.Received}
			p.held += e.Size
			p.offered[e.Sequence] = o
		}
		o.waiters = append(o.waiters, waiter{t, i})
	}
	return t
}

// Await waits, at most for so long, until events that were offered are in the
// graph and nothing of their own attempts is pending. It returns what their
// attempts stand as, in their order; of one that is not in the graph yet nothing.
// It does not wait while the graph lags far behind, or cannot be written.
func (p *Projector) Await(ctx context.Context, t *Ticket, wait time.Duration) []graph.Standing {
	if s := p.Stats(); wait <= 0 || !s.Found || s.Failure != nil || s.Lag > maxLag {
		return t.now()
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-t.done:
	case <-p.failed():
		return t.now()
	case <-ctx.Done():
		return t.now()
	case <-p.done:
		return t.now()
	}
	for {
		changed := p.changed()
		standings := t.now()
		merged := p.position.Load() >= t.last
		var pending []fact.Attempt
		var at []int
		for i := range standings {
			if !standings[i].Settled {
				pending, at = append(pending, t.attempts[i]), append(at, i)
			}
		}
		if len(pending) == 0 {
			return standings
		}
		if merged {
			now, err := p.opt.Store.Standings(ctx, pending)
			if err != nil {
				return standings
			}
			settled := true
			for i := range now {
				t.set(at[i], now[i])
				settled = settled && now[i].Settled
			}
			if settled {
				return t.now()
			}
		}
		select {
		case <-changed:
		case <-p.failed():
			return t.now()
		case <-ctx.Done():
			return t.now()
		case <-p.done:
			return t.now()
		}
	}
}

func (t *Ticket) now() []graph.Standing {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]graph.Standing(nil), t.standings...)
}

func (t *Ticket) set(at int, s graph.Standing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.standings[at] = s
}

// Settled waits until everything that the log has now is in the graph and nothing
// is pending.
func (p *Projector) Settled(ctx context.Context) error {
	last := p.opt.Log.Last()
	for {
		changed := p.changed()
		s := p.Stats()
		if s.Found && s.Position >= last && !s.Settling {
			return nil
		}
		if s.Failure != nil {
			return s.Failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.done:
			return graph.ErrClosed
		}
	}
}
