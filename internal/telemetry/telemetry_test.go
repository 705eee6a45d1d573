package telemetry

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestLogLinesCarryTheSpan(t *testing.T) {
	tel, err := New(t.Context(), Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := tel.Traces.Tracer("test").Start(t.Context(), "work")
	defer span.End()
	var out bytes.Buffer
	log, err := NewLogger(&out, LogOptions{Level: "INFO", Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	log.With("a", 1).InfoContext(ctx, "hello")
	log.DebugContext(ctx, "not this")
	log.Info("no span")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || strings.Contains(lines[1], "trace_id") {
		t.Fatalf("lines: %q", lines)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil {
		t.Fatal(err)
	}
	want := trace.SpanContextFromContext(ctx)
	if !want.IsValid() || got["trace_id"] != want.TraceID().String() || got["span_id"] != want.SpanID().String() || got["a"] != 1.0 {
		t.Errorf("line %v, span %v", got, want)
	}
}

func TestLogOptionsAreChecked(t *testing.T) {
	for _, opt := range []LogOptions{{"loud", "text"}, {"info", "xml"}, {}} {
		if _, err := NewLogger(io.Discard, opt); err == nil {
			t.Errorf("%+v was accepted", opt)
		}
	}
}

// collector counts what is exported to it, by path.
type collector struct {
	mu   sync.Mutex
	seen map[string]int
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[r.URL.Path]++
}

func TestExportsOnlyWhereACollectorIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		variable string
		disabled bool
		want     []string
	}{
		"none":     {},
		"both":     {variable: "OTEL_EXPORTER_OTLP_ENDPOINT", want: []string{"/v1/traces", "/v1/metrics"}},
		"traces":   {variable: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", want: []string{"/"}},
		"disabled": {variable: "OTEL_EXPORTER_OTLP_ENDPOINT", disabled: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &collector{seen: map[string]int{}}
			srv := httptest.NewServer(c)
			defer srv.Close()
			for _, v := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"} {
				t.Setenv(v, "")
			}
			if tc.variable != "" {
				t.Setenv(tc.variable, srv.URL)
			}
			if tc.disabled {
				t.Setenv("OTEL_SDK_DISABLED", "true")
			}
			tel, err := New(t.Context(), Options{Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			_, span := tel.Traces.Tracer("test").Start(t.Context(), "work")
			span.End()
			counter, err := tel.Meters.Meter("test").Int64Counter("graphd.test")
			if err != nil {
				t.Fatal(err)
			}
			counter.Add(t.Context(), 3)
			rec := httptest.NewRecorder()
			tel.Metrics.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
			if !strings.Contains(rec.Body.String(), "graphd_test_total 3") {
				t.Errorf("no counter in the metrics:\n%s", rec.Body)
			}
			if err := tel.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(c.seen) != len(tc.want) {
				t.Errorf("exported to %v, want %v", c.seen, tc.want)
			}
			for _, path := range tc.want {
				if c.seen[path] == 0 {
					t.Errorf("nothing was exported to %s: %v", path, c.seen)
				}
			}
		})
	}
}
