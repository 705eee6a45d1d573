package node

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/graphd/graphd/internal/ledger"
)

// observe registers the gauges of the ledger and of how the graph follows it.
func (n *Node) observe(meters metric.MeterProvider) error {
	m := meters.Meter("github.com/graphd/graphd/internal/node")
	var errs []error
	var all []metric.Observable
	gauge := func(name, unit, about string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(about))
		errs, all = append(errs, err), append(all, g)
		return g
	}
	counter := func(name, unit, about string) metric.Int64ObservableCounter {
		c, err := m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
		errs, all = append(errs, err), append(all, c)
		return c
	}
	deliveries := counter("graphd.deliveries", "{delivery}", "Deliveries since ever, by what they did.")
	lag, err := m.Float64ObservableGauge("graphd.projection.lag", metric.WithUnit("s"),
		metric.WithDescription("How long ago the first event was received that is in the log and not in the graph, about."))
	errs, all = append(errs, err), append(all, lag)
	behind := gauge("graphd.projection.behind", "{event}", "Events in the log that are not in the graph yet.")
	skipped := counter("graphd.projection.skipped", "{event}", "Records of the log that could not be read as events.")
	logBytes := gauge("graphd.ledger.size", "By", "What the ledger takes on disk.")
	budget := gauge("graphd.ledger.budget", "By", "What it may take; 0 is no bound.")
	rows := counter("graphd.ledger.rows_written", "{row}", "Rows that the ledger has written since the start, beside payloads.")
	rowBytes := counter("graphd.ledger.row_bytes_written", "By", "The bytes of their keys and values.")
	age, err := m.Float64ObservableGauge("graphd.ledger.window.age", metric.WithUnit("s"),
		metric.WithDescription("How far back the dedupe window reaches: alert where it is shorter than the longest delay of a retry."))
	errs, all = append(errs, err), append(all, age)
	keys := gauge("graphd.ledger.window.keys", "{key}", "Keys in the dedupe window.")
	windowBytes := gauge("graphd.ledger.window.size", "By", "What they take.")
	hits := counter("graphd.ledger.hits", "{delivery}", "Deliveries since the start whose event was known, by where it was found.")
	misses := counter("graphd.ledger.misses", "{delivery}", "Deliveries since the start whose event was not known.")
	faults := counter("graphd.ledger.background_errors", "{error}", "Flushes and compactions that failed and were tried again.")
	_, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for outcome, total := range n.Ledger.Totals() {
			o.ObserveInt64(deliveries, int64(total), metric.WithAttributes(attribute.String("outcome", string(outcome))))
		}
		p := n.Graph.Stats()
		o.ObserveFloat64(lag, p.Lag.Seconds())
		o.ObserveInt64(behind, int64(p.Last-p.Position))
		o.ObserveInt64(skipped, int64(p.Skipped))
		s, err := n.Ledger.Stats()
		if errors.Is(err, ledger.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		o.ObserveInt64(logBytes, int64(s.DiskBytes))
		o.ObserveInt64(budget, s.DiskBudget)
		o.ObserveInt64(rows, s.Rows)
		o.ObserveInt64(rowBytes, s.RowBytes)
		if !s.Window.Oldest.IsZero() {
			o.ObserveFloat64(age, n.now().Sub(s.Window.Oldest).Seconds())
		}
		o.ObserveInt64(keys, s.Window.Keys)
		o.ObserveInt64(windowBytes, s.Window.Bytes)
		o.ObserveInt64(hits, int64(s.Hits), metric.WithAttributes(attribute.String("in", "window")))
		o.ObserveInt64(hits, int64(s.RecentHits), metric.WithAttributes(attribute.String("in", "recent")))
		o.ObserveInt64(misses, int64(s.Misses))
		o.ObserveInt64(faults, int64(s.BackgroundErrors))
		return nil
	}, all...)
	return errors.Join(append(errs, err)...)
}
