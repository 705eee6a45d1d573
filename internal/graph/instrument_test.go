package graph_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
)

// scripted is a store that notes what it was asked and answers with err, or with
// an answer of its own kind.
type scripted struct {
	asked []any
	spans []trace.SpanContext // of the contexts that it was called with
	err   error
}

func (s *scripted) note(ctx context.Context, op string, arg any) error {
	s.asked = append(s.asked, fmt.Sprint(op, " ", arg))
	s.spans = append(s.spans, trace.SpanContextFromContext(ctx))
	return s.err
}

func (s *scripted) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	return make([]graph.Standing, len(b.Deliveries)), s.note(ctx, "write", b)
}

func (s *scripted) Settle(ctx context.Context) (bool, error) { return true, s.note(ctx, "settle", "") }

func (s *scripted) Position(ctx context.Context, log string, lane int) (uint64, error) {
	return 9, s.note(ctx, "position", fmt.Sprint(log, lane))
}

func (s *scripted) Search(ctx context.Context, q graph.SearchQuery) (graph.Found, error) {
	return graph.Found{More: true}, s.note(ctx, "search", q)
}

func (s *scripted) Standings(ctx context.Context, attempts []fact.Attempt) ([]graph.Standing, error) {
	return make([]graph.Standing, len(attempts)), s.note(ctx, "standings", attempts)
}

func (s *scripted) Lineage(ctx context.Context, q graph.LineageQuery) (*graph.Lineage, error) {
	if err := s.note(ctx, "lineage", q); err != nil {
		return nil, err
	}
	return &graph.Lineage{Reached: &lineage.Reached{}, Root: "r"}, nil
}

func (s *scripted) Datasets(ctx context.Context, q graph.EntityQuery) (graph.Page[graph.Entity], error) {
	return graph.Page[graph.Entity]{Next: "d"}, s.note(ctx, "datasets", q)
}

func (s *scripted) Jobs(ctx context.Context, q graph.EntityQuery) (graph.Page[graph.Entity], error) {
	return graph.Page[graph.Entity]{Next: "j"}, s.note(ctx, "jobs", q)
}

func (s *scripted) Dataset(ctx context.Context, id fact.ID) (*graph.Dataset, error) {
	return &graph.Dataset{}, s.note(ctx, "dataset", id)
}

func (s *scripted) Job(ctx context.Context, id fact.ID) (*graph.Job, error) {
	return &graph.Job{}, s.note(ctx, "job", id)
}

func (s *scripted) Runs(ctx context.Context, q graph.RunQuery) (graph.Page[*lineage.RunRow], error) {
	return graph.Page[*lineage.RunRow]{Next: "r"}, s.note(ctx, "runs", q)
}

func (s *scripted) Run(ctx context.Context, id lineage.RunID) (*graph.Run, error) {
	return &graph.Run{}, s.note(ctx, "run", id)
}

func (s *scripted) Events(ctx context.Context, q graph.EventQuery) (graph.Page[graph.LoggedEvent], error) {
	return graph.Page[graph.LoggedEvent]{Next: "e"}, s.note(ctx, "events", q)
}

func (s *scripted) Event(ctx context.Context, id fact.ID) ([]graph.LoggedEvent, error) {
	return []graph.LoggedEvent{{Sequence: 7}}, s.note(ctx, "event", id)
}

func (s *scripted) Snapshot(ctx context.Context, w io.Writer) error {
	fmt.Fprint(w, "snapshot")
	return s.note(ctx, "snapshot", "")
}

func (s *scripted) Stats(ctx context.Context) (graph.Stats, error) {
	return graph.Stats{Settling: 5, Datasets: 2, Bytes: 11}, s.note(ctx, "stats", "")
}

func (s *scripted) Close() error { return s.note(context.Background(), "close", "") }

// callAll calls every method of a store and returns what it answered.
func callAll(ctx context.Context, s graph.Store) []any {
	var out []any
	add := func(v any, err error) { out = append(out, v, err) }
	id, run := fact.ID{1}, lineage.RunID{2}
	var text strings.Builder
	add(s.Write(ctx, graph.Batch{Log: "l", Deliveries: make([]graph.Delivery, 3)}))
	add(s.Settle(ctx))
	add(s.Position(ctx, "l", 1))
	add(s.Search(ctx, graph.SearchQuery{Text: "t"}))
	add(s.Standings(ctx, make([]fact.Attempt, 2)))
	add(s.Lineage(ctx, graph.LineageQuery{Root: graph.Root{Dataset: id}, Walk: lineage.Walk{Direction: lineage.Up, Depth: 3, MaxNodes: 9}}))
	add(s.Datasets(ctx, graph.EntityQuery{Namespace: "n", Paging: graph.Paging{Limit: 1}}))
	add(s.Jobs(ctx, graph.EntityQuery{Contains: "c", Paging: graph.Paging{Limit: 2}}))
	add(s.Dataset(ctx, id))
	add(s.Job(ctx, id))
	add(s.Runs(ctx, graph.RunQuery{State: lineage.Running}))
	add(s.Run(ctx, run))
	add(s.Events(ctx, graph.EventQuery{Outcome: graph.Retry}))
	add(s.Event(ctx, id))
	err := s.Snapshot(ctx, &text)
	add(text.String(), err)
	add(s.Stats(ctx))
	add(nil, s.Close())
	return out
}

func TestInstrumentForwardsEverything(t *testing.T) {
	for _, err := range []error{nil, fmt.Errorf("no: %w", graph.ErrNotFound), errors.New("broken")} {
		plain, inner := &scripted{err: err}, &scripted{err: err}
		want := callAll(t.Context(), plain)
		got := callAll(t.Context(), graph.Instrument(inner, sdktrace.NewTracerProvider(), sdkmetric.NewMeterProvider()))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("with %v: answers\n%v, plain\n%v", err, got, want)
		}
		if !reflect.DeepEqual(inner.asked, plain.asked) {
			t.Errorf("with %v: asked\n%v, plain\n%v", err, inner.asked, plain.asked)
		}
	}
	// A method that is new in Store must be called by callAll.
	if n := reflect.TypeFor[graph.Store]().NumMethod(); n != 17 {
		t.Errorf("Store has %d methods: callAll calls 17", n)
	}
}

func TestInstrumentRecords(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	reader := sdkmetric.NewManualReader()
	inner := &scripted{}
	s := graph.Instrument(inner, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	ctx := t.Context()
	s.Write(ctx, graph.Batch{Deliveries: make([]graph.Delivery, 3)})
	inner.err = graph.ErrFull
	s.Write(ctx, graph.Batch{})
	inner.err = graph.ErrNotFound
	s.Run(ctx, lineage.RunID{})
	inner.err = nil

	ended := spans.Ended()
	if len(ended) != 3 || ended[0].Name() != "store write" || ended[2].Name() != "store run" {
		t.Fatalf("spans: %v", ended)
	}
	for i, status := range []codes.Code{codes.Unset, codes.Error, codes.Unset} {
		if ended[i].Status().Code != status {
			t.Errorf("span %d has status %v, want %v", i, ended[i].Status(), status)
		}
		if ended[i].SpanContext().SpanID() != inner.spans[i].SpanID() {
			t.Errorf("call %d was not made inside its span", i)
		}
	}

	got := measure(t, reader)
	for _, want := range []string{
		"graphd.store.duration{operation=write,result=ok} 1", "graphd.store.duration{operation=write,result=full} 1",
		"graphd.store.duration{operation=run,result=not_found} 1",
		"graphd.store.settling{} 5", "graphd.store.size{} 11", "graphd.store.objects{kind=dataset} 2",
	} {
		if !got[want] {
			t.Errorf("no %s in %v", want, got)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for line := range measure(t, reader) {
		if strings.HasPrefix(line, "graphd.store.settling") {
			t.Error("the gauges outlive the store")
		}
	}
}

// measure reads all metrics as lines: name{attributes} value or count.
func measure(t *testing.T, reader *sdkmetric.ManualReader) map[string]bool {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			add := func(attrs fmt.Stringer, v any) { lines[fmt.Sprintf("%s{%s} %v", m.Name, attrs, v)] = true }
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(encoded(p.Attributes.ToSlice()), p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					add(encoded(p.Attributes.ToSlice()), p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(encoded(p.Attributes.ToSlice()), p.Count)
				}
			}
		}
	}
	return lines
}

type encoded []attribute.KeyValue

func (e encoded) String() string {
	parts := make([]string, len(e))
	for i, kv := range e {
		parts[i] = string(kv.Key) + "=" + kv.Value.String()
	}
	return strings.Join(parts, ",")
}
