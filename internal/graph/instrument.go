package graph

import (
	"context"
	"errors"
	"io"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
)

const scope = "github.com/graphd/graphd/internal/graph"

// Instrument returns s with a span around every call and with metrics: how long
// calls take, by operation and result, and what the store holds and has yet to
// settle. Drivers carry none of that.
func Instrument(s Store, traces trace.TracerProvider, meters metric.MeterProvider) Store {
	in := &instrumented{store: s, tracer: traces.Tracer(scope)}
	m := meters.Meter(scope)
	var errs [8]error
	in.duration, errs[0] = m.Float64Histogram("graphd.store.duration",
		metric.WithUnit("s"), metric.WithDescription("How long a call of the store took."),
		metric.WithExplicitBucketBoundaries(.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))
	settling, err := m.Int64ObservableGauge("graphd.store.settling",
		metric.WithUnit("{item}"), metric.WithDescription("What is written and not settled yet."))
	errs[1] = err
	objects, err := m.Int64ObservableGauge("graphd.store.objects",
		metric.WithUnit("{object}"), metric.WithDescription("What the store holds, by kind."))
	errs[2] = err
	used, err := m.Int64ObservableGauge("graphd.store.size",
		metric.WithUnit("By"), metric.WithDescription("What the store takes on disk."))
	errs[3] = err
	debt, err := m.Int64ObservableGauge("graphd.store.compaction_debt",
		metric.WithUnit("By"), metric.WithDescription("What the store has yet to compact."))
	errs[4] = err
	rows, err := m.Int64ObservableCounter("graphd.store.rows_written",
		metric.WithUnit("{row}"), metric.WithDescription("Rows written since the start, deletions too."))
	errs[5] = err
	rowBytes, err := m.Int64ObservableCounter("graphd.store.row_bytes_written",
		metric.WithUnit("By"), metric.WithDescription("The bytes of their keys and values."))
	errs[6] = err
	in.gauges, errs[7] = m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		stats, err := s.Stats(ctx)
		if errors.Is(err, ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		o.ObserveInt64(settling, int64(stats.Settling))
		o.ObserveInt64(used, stats.Bytes)
		o.ObserveInt64(debt, stats.Debt)
		o.ObserveInt64(rows, stats.Rows)
		o.ObserveInt64(rowBytes, stats.RowBytes)
		for _, k := range []struct {
			kind string
			n    int
		}{
			{"dataset", stats.Datasets}, {"job", stats.Jobs}, {"run", stats.Runs}, {"attempt", stats.Attempts},
			{"event", stats.Events}, {"derivation", stats.Derivations},
		} {
			o.ObserveInt64(objects, int64(k.n), metric.WithAttributes(attribute.String("kind", k.kind)))
		}
		return nil
	}, settling, objects, used, debt, rows, rowBytes)
	// An instrument that could not be made records nothing: no reason to fail.
	if err := errors.Join(errs[:]...); err != nil {
		otel.Handle(err)
	}
	return in
}

type instrumented struct {
	store    Store
	tracer   trace.Tracer
	duration metric.Float64Histogram
	gauges   metric.Registration
}

// begin starts the span of an operation; the function that it returns ends it.
func (in *instrumented) begin(ctx context.Context, operation string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	start := time.Now()
	ctx, span := in.tracer.Start(ctx, "store "+operation, trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		result := resultOf(err)
		// What does not exist is an answer; the store did its work.
		if err != nil && result != "not_found" && result != "cursor" {
			span.RecordError(err)
			span.SetStatus(codes.Error, result)
		}
		span.End()
		in.duration.Record(ctx, time.Since(start).Seconds(), metric.WithAttributes(
			attribute.String("operation", operation), attribute.String("result", result)))
	}
}

// resultOf names what a call came to, out of a closed list.
func resultOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrNotFound):
		return "not_found"
	case errors.Is(err, ErrCursor):
		return "cursor"
	case errors.Is(err, ErrFull):
		return "full"
	case errors.Is(err, ErrCorrupt):
		return "corrupt"
	case errors.Is(err, ErrClosed):
		return "closed"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	}
	return "error"
}

// call runs one read inside a span.
func call[T any](ctx context.Context, in *instrumented, operation string, f func(context.Context) (T, error)) (T, error) {
	ctx, end := in.begin(ctx, operation)
	v, err := f(ctx)
	end(err)
	return v, err
}

// Write implements Writer.
func (in *instrumented) Write(ctx context.Context, b Batch) ([]Standing, error) {
	ctx, end := in.begin(ctx, "write", attribute.Int("graphd.deliveries", len(b.Deliveries)))
	standings, err := in.store.Write(ctx, b)
	end(err)
	return standings, err
}

// Settle implements Writer.
func (in *instrumented) Settle(ctx context.Context) (bool, error) {
	return call(ctx, in, "settle", in.store.Settle)
}

// Position implements Writer.
func (in *instrumented) Position(ctx context.Context, log string, lane int) (uint64, error) {
	return call(ctx, in, "position", func(ctx context.Context) (uint64, error) { return in.store.Position(ctx, log, lane) })
}

// Lineage implements Reader.
func (in *instrumented) Lineage(ctx context.Context, q LineageQuery) (*Lineage, error) {
	ctx, end := in.begin(ctx, "lineage",
		attribute.String("graphd.direction", string(q.Direction)), attribute.Int("graphd.depth", q.Depth), attribute.Int("graphd.limit", q.MaxNodes))
	answer, err := in.store.Lineage(ctx, q)
	if err == nil {
		trace.SpanFromContext(ctx).SetAttributes(
			attribute.Int("graphd.datasets", len(answer.Datasets)), attribute.Int("graphd.derivations", len(answer.Derivations)))
	}
	end(err)
	return answer, err
}

// Datasets implements Reader.
func (in *instrumented) Datasets(ctx context.Context, q EntityQuery) (Page[Entity], error) {
	return call(ctx, in, "datasets", func(ctx context.Context) (Page[Entity], error) { return in.store.Datasets(ctx, q) })
}

// Jobs implements Reader.
func (in *instrumented) Jobs(ctx context.Context, q EntityQuery) (Page[Entity], error) {
	return call(ctx, in, "jobs", func(ctx context.Context) (Page[Entity], error) { return in.store.Jobs(ctx, q) })
}

// Dataset implements Reader.
func (in *instrumented) Dataset(ctx context.Context, id fact.ID) (*Dataset, error) {
	return call(ctx, in, "dataset", func(ctx context.Context) (*Dataset, error) { return in.store.Dataset(ctx, id) })
}

// Job implements Reader.
func (in *instrumented) Job(ctx context.Context, id fact.ID) (*Job, error) {
	return call(ctx, in, "job", func(ctx context.Context) (*Job, error) { return in.store.Job(ctx, id) })
}

// Search implements Reader.
func (in *instrumented) Search(ctx context.Context, q SearchQuery) (Found, error) {
	return call(ctx, in, "search", func(ctx context.Context) (Found, error) { return in.store.Search(ctx, q) })
}

// Standings implements Reader.
func (in *instrumented) Standings(ctx context.Context, attempts []fact.Attempt) ([]Standing, error) {
	return call(ctx, in, "standings", func(ctx context.Context) ([]Standing, error) { return in.store.Standings(ctx, attempts) })
}

// Runs implements Reader.
func (in *instrumented) Runs(ctx context.Context, q RunQuery) (Page[*lineage.RunRow], error) {
	return call(ctx, in, "runs", func(ctx context.Context) (Page[*lineage.RunRow], error) { return in.store.Runs(ctx, q) })
}

// Run implements Reader.
func (in *instrumented) Run(ctx context.Context, id lineage.RunID) (*Run, error) {
	return call(ctx, in, "run", func(ctx context.Context) (*Run, error) { return in.store.Run(ctx, id) })
}

// Events implements Reader.
func (in *instrumented) Events(ctx context.Context, q EventQuery) (Page[LoggedEvent], error) {
	return call(ctx, in, "events", func(ctx context.Context) (Page[LoggedEvent], error) { return in.store.Events(ctx, q) })
}

// Event implements Reader.
func (in *instrumented) Event(ctx context.Context, id fact.ID) ([]LoggedEvent, error) {
	return call(ctx, in, "event", func(ctx context.Context) ([]LoggedEvent, error) { return in.store.Event(ctx, id) })
}

// Snapshot implements Reader.
func (in *instrumented) Snapshot(ctx context.Context, w io.Writer) error {
	ctx, end := in.begin(ctx, "snapshot")
	err := in.store.Snapshot(ctx, w)
	end(err)
	return err
}

// Stats implements Reader.
func (in *instrumented) Stats(ctx context.Context) (Stats, error) {
	return call(ctx, in, "stats", func(ctx context.Context) (Stats, error) { return in.store.Stats(ctx) })
}

// Close implements Store. The gauges end with the store.
func (in *instrumented) Close() error {
	if in.gauges != nil {
		if err := in.gauges.Unregister(); err != nil {
			otel.Handle(err)
		}
	}
	return in.store.Close()
}
