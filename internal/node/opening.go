package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
)

// ErrOpening: the graph is not open yet.
var ErrOpening = errors.New("the graph is being opened")

// opening is a store that is opened in the background, and that another one takes
// the place of where it is corrupt.
type opening struct {
	mu     sync.Mutex
	last   *attempt
	closed bool
}

// attempt is one opening of a store.
type attempt struct {
	done  chan struct{} // closed when store or err is set
	store graph.Store
	err   error
	// again says that there was one before. Then nothing is written, and nothing read,
	// before somebody has asked how far the new one has come.
	again  bool
	sought atomic.Bool
	// target is how far the log reached when the graph was begun; caught is set once
	// the graph has come so far.
	target atomic.Uint64
	caught atomic.Bool
}

// openingTime is how long a read waits for the store to be opened.
const openingTime = 2 * time.Second

// errAgain: what the store has, and how far it has come, is not what it was.
var errAgain = fmt.Errorf("%w: it is made anew", graph.ErrCorrupt)

func newOpening() *opening { return &opening{last: &attempt{done: make(chan struct{})}} }

// again begins another attempt, nil if the store is closed.
func (o *opening) again(target uint64) *attempt {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.last = &attempt{done: make(chan struct{}), again: true}
	o.last.target.Store(target)
	return o.last
}

// end ends an attempt.
func (a *attempt) end(store graph.Store, err error) {
	if a.err = err; err == nil {
		a.store = store // a driver's own nil is not one of the interface
	}
	close(a.done)
}

func (o *opening) now() *attempt {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

func (o *opening) get(ctx context.Context) (graph.Store, error) {
	a := o.now()
	select {
	case <-a.done:
	default:
		timer := time.NewTimer(openingTime)
		defer timer.Stop()
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
			if a.again {
				return nil, errAgain
			}
			return nil, ErrOpening
		}
	}
	if a.err == nil && a.again && !a.sought.Load() {
		return nil, errAgain
	}
	return a.store, a.err
}

func through[T any](ctx context.Context, o *opening, f func(graph.Store) (T, error)) (out T, err error) {
	s, err := o.get(ctx)
	if err != nil {
		return out, fmt.Errorf("waiting for the graph: %w", err)
	}
	return f(s)
}

func (o *opening) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	return through(ctx, o, func(s graph.Store) ([]graph.Standing, error) { return s.Write(ctx, b) })
}

func (o *opening) Settle(ctx context.Context) (bool, error) {
	return through(ctx, o, func(s graph.Store) (bool, error) { return s.Settle(ctx) })
}

// Position waits for as long as it takes: who asks for it has nothing else to do
// before the store is open.
func (o *opening) Position(ctx context.Context, log string, lane int) (uint64, error) {
	a := o.now()
	select {
	case <-a.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if a.err != nil {
		return 0, fmt.Errorf("waiting for the graph: %w", a.err)
	}
	position, err := a.store.Position(ctx, log, lane)
	if err == nil {
		a.sought.Store(true)
	}
	return position, err
}

func (o *opening) Lineage(ctx context.Context, q graph.LineageQuery) (*graph.Lineage, error) {
	return through(ctx, o, func(s graph.Store) (*graph.Lineage, error) { return s.Lineage(ctx, q) })
}

func (o *opening) Datasets(ctx context.Context, q graph.EntityQuery) (graph.Page[graph.Entity], error) {
	return through(ctx, o, func(s graph.Store) (graph.Page[graph.Entity], error) { return s.Datasets(ctx, q) })
}

func (o *opening) Jobs(ctx context.Context, q graph.EntityQuery) (graph.Page[graph.Entity], error) {
	return through(ctx, o, func(s graph.Store) (graph.Page[graph.Entity], error) { return s.Jobs(ctx, q) })
}

func (o *opening) Dataset(ctx context.Context, id fact.ID) (*graph.Dataset, error) {
	return through(ctx, o, func(s graph.Store) (*graph.Dataset, error) { return s.Dataset(ctx, id) })
}

func (o *opening) Job(ctx context.Context, id fact.ID) (*graph.Job, error) {
	return through(ctx, o, func(s graph.Store) (*graph.Job, error) { return s.Job(ctx, id) })
}

func (o *opening) Search(ctx context.Context, q graph.SearchQuery) (graph.Found, error) {
	return through(ctx, o, func(s graph.Store) (graph.Found, error) { return s.Search(ctx, q) })
}

func (o *opening) Runs(ctx context.Context, q graph.RunQuery) (graph.Page[*lineage.RunRow], error) {
	return through(ctx, o, func(s graph.Store) (graph.Page[*lineage.RunRow], error) { return s.Runs(ctx, q) })
}

func (o *opening) Run(ctx context.Context, id lineage.RunID) (*graph.Run, error) {
	return through(ctx, o, func(s graph.Store) (*graph.Run, error) { return s.Run(ctx, id) })
}

func (o *opening) Standings(ctx context.Context, attempts []fact.Attempt) ([]graph.Standing, error) {
	return through(ctx, o, func(s graph.Store) ([]graph.Standing, error) { return s.Standings(ctx, attempts) })
}

func (o *opening) Events(ctx context.Context, q graph.EventQuery) (graph.Page[graph.LoggedEvent], error) {
	return through(ctx, o, func(s graph.Store) (graph.Page[graph.LoggedEvent], error) { return s.Events(ctx, q) })
}

func (o *opening) Event(ctx context.Context, id fact.ID) ([]graph.LoggedEvent, error) {
	return through(ctx, o, func(s graph.Store) ([]graph.LoggedEvent, error) { return s.Event(ctx, id) })
}

func (o *opening) Snapshot(ctx context.Context, w io.Writer) error {
	_, err := through(ctx, o, func(s graph.Store) (struct{}, error) { return struct{}{}, s.Snapshot(ctx, w) })
	return err
}

func (o *opening) Stats(ctx context.Context) (graph.Stats, error) {
	return through(ctx, o, func(s graph.Store) (graph.Stats, error) { return s.Stats(ctx) })
}

// Close waits until the store is open, and closes it.
func (o *opening) Close() error {
	o.mu.Lock()
	o.closed = true
	a := o.last
	o.mu.Unlock()
	<-a.done
	if a.store == nil {
		return nil
	}
	return a.store.Close()
}
