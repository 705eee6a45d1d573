// Package projection brings what a ledger's log says into a graph store. The log
// is what is acknowledged; the graph follows it, at any distance, and loses
// nothing: it goes on from the position that the store has.
package projection

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/ledger"
)

// Log is what the projector reads.
type Log interface {
	LogID() string
	First() uint64
	Last() uint64
	Read(from uint64, max int) iter.Seq2[ledger.LogRecord, error]
	Wait(ctx context.Context, after uint64) error
}

// Options of a Projector.
type Options struct {
	Log   Log
	Store graph.Store
	// Decode returns the event of a body in the log.
	Decode func(body []byte) (*fact.Event, error)
	// Lanes is how many parts of the log are written at once: events of one job and of
	// those under it are in one. Default 1, which is right for a store with one writer.
	Lanes int
	// Logger is told what goes wrong. Default: nobody.
	Logger *slog.Logger
	// Now is the clock, by default time.Now.
	Now func() time.Time
}

const (
	// roundEvents and roundBytes bound what is merged in one transaction of each lane.
	roundEvents = 512
	roundBytes  = 32 << 20
	// offeredBytes bounds the bodies of events that wait decoded; of the others the
	// log is read again.
	offeredBytes = 64 << 20
	// gatherEvents is how many events a round waits for under load, for offerPause.
	gatherEvents = 16
	// offerPause is how long an event that was just accepted is waited for, so that it
	// need not be read from the log.
	offerPause = 2 * time.Millisecond
	// idlePause is how often a store is called to which nothing is written.
	idlePause = 2 * time.Second
	// Pauses after an error of the store or of the log.
	shortestPause, longestPause = 50 * time.Millisecond, 5 * time.Second
)

// Projector is the one that writes a log into a store.
type Projector struct {
	opt  Options
	stop context.CancelFunc
	done chan struct{}

	mu       sync.Mutex
	offered  map[uint64]*offer
	held     int           // bytes of offered events
	progress chan struct{} // closed when something was written or settled
	failure  error         // why nothing is written at the moment
	failing  chan struct{} // closed while there is a failure

	busy     bool          // the last round had several events
	found    atomic.Bool   // position is known
	position atomic.Uint64 // everything up to it is in the store
	received atomic.Int64  // when what is not written was received, about, Unix nanoseconds; 0 for not known
	backlog  atomic.Bool   // something is left to settle
	skipped  atomic.Uint64 // records that could not be decoded
}

// offer is an event that was accepted and waits to be written.
type offer struct {
	event    *fact.Event
	size     int
	received time.Time
	standing graph.Standing // once it is written
	waiters  []waiter
}

// waiter is a place of a ticket.
type waiter struct {
	ticket *Ticket
	at     int
}

// Start begins to write, as soon as the store says how far it has come. Close
// ends it.
func Start(opt Options) *Projector {
	if opt.Lanes == 0 {
		opt.Lanes = 1
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Projector{
		opt: opt, stop: stop, done: make(chan struct{}), offered: map[uint64]*offer{}, progress: make(chan struct{}),
		failing: make(chan struct{}),
	}
	go p.run(ctx)
	return p
}

// Close ends the writing. What is not written yet is in the log.
func (p *Projector) Close() {
	p.stop()
	<-p.done
	p.announce()
}

// seek sets the position to what the store has for good.
func (p *Projector) seek(ctx context.Context) error {
	if err := p.find(ctx); err != nil {
		return fmt.Errorf("finding how far the graph has come: %w", err)
	}
	p.found.Store(true)
	p.announce()
	return nil
}

func (p *Projector) find(ctx context.Context) error {
	var position uint64
	for lane := range p.opt.Lanes {
		at, err := p.opt.Store.Position(ctx, p.opt.Log.LogID(), lane)
		if err != nil {
			return err
		}
		if lane == 0 || at < position {
			position = at
		}
	}
	if last := p.opt.Log.Last(); position > last {
		return fmt.Errorf("the graph has come to record %d of a log that ends at %d: it is another log's, or the log was cut", position, last)
	}
	if first := p.opt.Log.First(); position+1 < first {
		return fmt.Errorf("the graph has come to record %d, and the log begins at %d: %w", position, first, ledger.ErrTruncated)
	}
	p.position.Store(position)
	p.backlog.Store(true) // until the store says otherwise
	return nil
}

// run writes and settles until ctx ends.
func (p *Projector) run(ctx context.Context) {
	defer close(p.done)
	pause := shortestPause
	for ctx.Err() == nil {
		err, found := error(nil), p.found.Load()
		if found {
			err = p.step(ctx)
		} else {
			err = p.seek(ctx)
		}
		if err == nil {
			// A store that can be read may still fail at the write that failed before.
			if found && pause != shortestPause {
				p.fail(nil)
				pause = shortestPause
			}
			continue
		}
		if ctx.Err() != nil || errors.Is(err, graph.ErrClosed) || errors.Is(err, ledger.ErrClosed) {
			return
		}
		p.fail(err)
		p.opt.Logger.Error("the graph does not follow the log", "error", err, "position", p.position.Load(), "again", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, longestPause)
		// Of what was written before the error some may be lost, with the position.
		p.found.Store(false)
	}
}

// step does the next thing: write what the log has, settle what is pending, or
// wait.
func (p *Projector) step(ctx context.Context) error {
	if left := p.opt.Log.Last() - p.position.Load(); left > 0 {
		if left < gatherEvents && p.busy {
			time.Sleep(offerPause) // a transaction costs what many events do
		}
		p.busy = p.opt.Log.Last()-p.position.Load() >= gatherEvents/4
		if err := p.round(ctx); err != nil {
			return err
		}
		if !p.backlog.Load() {
			return nil
		}
	}
	if p.backlog.Load() {
		more, err := p.opt.Store.Settle(ctx)
		if err != nil {
			return err
		}
		p.backlog.Store(more)
		p.announce()
		return nil
	}
	idle, cancel := context.WithTimeout(ctx, idlePause)
	defer cancel()
	err := p.opt.Log.Wait(idle, p.position.Load())
	if err != nil && idle.Err() != nil && ctx.Err() == nil {
		// A store may have kept something back for later events.
		_, err = p.opt.Store.Settle(ctx)
	}
	return err
}

// round writes the next events of the log, each lane its own, all at once.
func (p *Projector) round(ctx context.Context) error {
	events, err := p.next()
	if err != nil {
		return err
	}
	p.received.Store(events[0].received.UnixNano())
	through := p.position.Load() + uint64(len(events))
	batches := make([]graph.Batch, p.opt.Lanes)
	offers := make([][]*offer, p.opt.Lanes)
	for i := range batches {
		batches[i] = graph.Batch{Log: p.opt.Log.LogID(), Lane: i, Through: through}
	}
	for i, o := range events {
		if o.event == nil {
			continue // it cannot be decoded
		}
		lane := laneOf(o.event, p.opt.Lanes)
		batches[lane].Deliveries = append(batches[lane].Deliveries, graph.Delivery{Sequence: p.position.Load() + 1 + uint64(i), Event: o.event})
		offers[lane] = append(offers[lane], o)
	}
	group, ctx := errgroup.WithContext(ctx)
	for i := range batches {
		group.Go(func() error {
			standings, err := p.opt.Store.Write(ctx, batches[i])
			if err != nil {
				return err
			}
			for j, o := range offers[i] {
				o.standing = standings[j]
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("writing records %d to %d of the log: %w", p.position.Load()+1, through, err)
	}
	if through < p.opt.Log.Last() {
		p.received.Store(events[len(events)-1].received.UnixNano())
	} else {
		p.received.Store(0) // what comes next comes after a pause, which is no lag
	}
	p.backlog.Store(true) // Settle says whether anything is left, and writes what waits
	from := p.position.Swap(through) + 1
	p.forget(from, through)
	p.announce()
	return nil
}

// laneOf keeps the events of a job in one lane, with those of the jobs right under
// it, so that lanes seldom wait for one another.
func laneOf(e *fact.Event, lanes int) int {
	name := e.Parent.Job
	if name.Name == "" {
		name = e.Job
	}
	id := fact.JobKey(name)
	return int(id[0]) * lanes / 256
}

// next returns the next events of the log: those offered, others read from it.
func (p *Projector) next() (events []*offer, err error) {
	from, last := p.position.Load()+1, p.opt.Log.Last()
	last = min(last, from+roundEvents-1)
	waited := false
	bytes := 0
	for sequence := from; sequence <= last && bytes < roundBytes; {
		o := p.take(sequence)
		if o == nil && !waited {
			waited = true
			time.Sleep(offerPause)
			o = p.take(sequence)
		}
		if o != nil && o.event != nil {
			events = append(events, o)
			bytes += o.size
			sequence++
			continue
		}
		for r, err := range p.opt.Log.Read(sequence, int(last-sequence)+1) {
			if err != nil {
				return nil, err
			}
			if r.Sequence != sequence {
				if o = p.take(sequence); o != nil && o.event != nil {
					break
				}
			}
			if o == nil {
				o = &offer{}
			}
			o.size, o.received = len(r.Payload), r.Received
			if o.event, err = p.opt.Decode(r.Payload); err != nil {
				// It was an event when it was accepted.
				p.skipped.Add(1)
				p.opt.Logger.Error("a record of the log is no event any more: the graph goes on without it", "sequence", r.Sequence, "error", err)
			}
			events = append(events, o)
			bytes += o.size
			o = nil
			if sequence++; bytes >= roundBytes {
				break
			}
			if o = p.take(sequence); o != nil && o.event != nil {
				break
			}
		}
	}
	return events, nil
}

// take returns what was offered of a record, nil if nothing was. It stays offered
// until it is written.
func (p *Projector) take(sequence uint64) *offer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.offered[sequence]
}

// forget drops what was offered and is written, and tells who waits for it.
func (p *Projector) forget(from, through uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for sequence := from; sequence <= through && len(p.offered) > 0; sequence++ {
		o := p.offered[sequence]
		if o == nil {
			continue
		}
		p.held -= o.size
		delete(p.offered, sequence)
		for _, w := range o.waiters {
			w.ticket.written(w.at, o.standing)
		}
	}
}

// announce tells all who wait that something changed.
func (p *Projector) announce() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.progress)
	p.progress = make(chan struct{})
}

func (p *Projector) changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress
}

// fail sets why nothing is written, nil if it is, and tells all who wait.
func (p *Projector) fail(err error) {
	p.mu.Lock()
	switch {
	case err != nil && p.failure == nil:
		close(p.failing)
	case err == nil && p.failure != nil:
		p.failing = make(chan struct{})
	}
	p.failure = err
	p.mu.Unlock()
	p.announce()
}

func (p *Projector) failed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failing
}

// Merged reports whether a record of the log is in the graph.
func (p *Projector) Merged(sequence uint64) bool { return sequence <= p.position.Load() }
