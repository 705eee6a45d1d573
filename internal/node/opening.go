package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
)

// ErrOpening: the graph is not open yet.
var ErrOpening = errors.New("the graph is being opened")

// opening is a store that is opened in the background.
type opening struct {
	done  chan struct{} // closed when store or err is set
	store graph.Store
	err   error
}

// openingTime is how long a read waits for the store to be opened.
const openingTime = 2 * time.Second

func openLater(log *slog.Logger, open func() (graph.Store, error)) *opening {
	o := &opening{done: make(chan struct{})}
	go func() {
		defer close(o.done)
		if o.store, o.err = open(); o.err != nil {
			o.store = nil // a driver's own nil is not one of the interface
			log.Error("the graph cannot be opened: events are taken in, and nothing can be read", "error", o.err)
		}
	}()
	return o
}

func (o *opening) get(ctx context.Context) (graph.Store, error) {
	select {
	case <-o.done:
		return o.store, o.err
	default:
	}
	timer := time.NewTimer(openingTime)
	defer timer.Stop()
	select {
	case <-o.done:
		return o.store, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, ErrOpening
	}
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
	select {
	case <-o.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return through(ctx, o, func(s graph.Store) (uint64, error) { return s.Position(ctx, log, lane) })
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
	<-o.done
	if o.store == nil {
		return nil
	}
	return o.store.Close()
}
