package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/graphd/graphd/internal/telemetry"
)

const scope = "github.com/graphd/graphd/internal/httpapi"

// meter measures requests.
type meter struct {
	tracer   trace.Tracer
	context  propagation.TextMapPropagator
	duration metric.Float64Histogram
	active   metric.Int64UpDownCounter
}

func newMeter(t *telemetry.Telemetry) (*meter, error) {
	m := t.Meters.Meter(scope)
	duration, err1 := m.Float64Histogram("http.server.request.duration",
		metric.WithUnit("s"), metric.WithDescription("How long a request took, by route and status."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10))
	active, err2 := m.Int64UpDownCounter("http.server.active_requests",
		metric.WithUnit("{request}"), metric.WithDescription("Requests that are being answered."))
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("making the metrics of HTTP: %w", err)
	}
	return &meter{tracer: t.Traces.Tracer(scope), context: t.Context, duration: duration, active: active}, nil
}

// Keys of what a request's handling leaves for its log line.
const (
	routeKey   = "graphd.route"
	failureKey = "graphd.failure"
)

// observe traces, measures and logs a request, and answers for a handler that
// panics. What is sent is never logged, nor is a query, in which names stand.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		r := c.Request()
		ctx := s.meter.context.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := s.meter.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		c.SetRequest(r.WithContext(ctx))
		if sc := span.SpanContext(); sc.IsValid() {
			// https://w3c.github.io/trace-context/#traceresponse-header
			c.Response().Header().Set("Traceresponse", fmt.Sprintf("00-%s-%s-%s", sc.TraceID(), sc.SpanID(), sc.TraceFlags()))
		}
		s.meter.active.Add(ctx, 1)
		defer s.meter.active.Add(ctx, -1)

		cut := s.answer(c, next)
		s.record(ctx, c, span, time.Since(start))
		if cut {
			panic(http.ErrAbortHandler) // half an answer must not look like a whole one
		}
		return nil
	}
}

// answer runs a handler and writes the problem that it ends with. It reports
// whether the answer broke off.
func (s *Server) answer(c echo.Context, next echo.HandlerFunc) (cut bool) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		err, ok := v.(error)
		if !ok {
			err = fmt.Errorf("%v", v)
		}
		if !errors.Is(err, http.ErrAbortHandler) {
			s.log.ErrorContext(c.Request().Context(), "a handler panicked", "route", routeOf(c), "panic", err, "stack", string(debug.Stack()))
		}
		cut = c.Response().Committed
		s.writeFailure(fmt.Errorf("panic: %w", err), c)
	}()
	if err := next(c); err != nil {
		s.writeFailure(err, c)
	}
	return false
}

// writeFailure answers with the problem document of an error.
func (s *Server) writeFailure(err error, c echo.Context) {
	f := failureOf(err)
	c.Set(failureKey, f)
	if c.Response().Committed {
		return
	}
	h := c.Response().Header()
	for name, values := range f.header {
		h[name] = values
	}
	h.Del("Etag")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/problem+json")
	p := f.Problem
	if sc := trace.SpanContextFromContext(c.Request().Context()); sc.IsValid() {
		p.TraceID = sc.TraceID().String()
	}
	text, err := Encode(p)
	if err != nil { // it holds nothing that cannot be written
		panic(err)
	}
	if p.Status == http.StatusRequestEntityTooLarge {
		drain(c.Response(), c.Request())
	}
	c.Response().WriteHeader(p.Status)
	_, _ = c.Response().Write(text) // the client may be gone
}

func routeOf(c echo.Context) string {
	route, _ := c.Get(routeKey).(string)
	return route
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}

// record writes down how a request ended.
func (s *Server) record(ctx context.Context, c echo.Context, span trace.Span, took time.Duration) {
	r, status, route := c.Request(), c.Response().Status, routeOf(c)
	method := r.Method
	if !slices.Contains(methods, method) {
		method = "_OTHER"
	}
	attrs := []attribute.KeyValue{attribute.String("http.request.method", method), attribute.Int("http.response.status_code", status)}
	if route != "" {
		attrs = append(attrs, attribute.String("http.route", route))
		span.SetName(method + " " + route)
	}
	span.SetAttributes(attrs...)
	s.meter.duration.Record(ctx, took.Seconds(), metric.WithAttributes(attrs...))

	level := slog.LevelDebug
	line := []slog.Attr{
		slog.String("method", method), slog.String("route", route), slog.Int("status", status),
		slog.Duration("took", took), slog.Int64("sent", c.Response().Size),
	}
	if f, ok := c.Get(failureKey).(*failure); ok {
		line = append(line, slog.String("problem", f.kind()), slog.Int("errors", len(f.Errors)))
		if len(f.Errors) > 0 && f.Errors[0].Offset != nil {
			line = append(line, slog.Int("offset", *f.Errors[0].Offset))
		}
		switch {
		case errors.Is(ctx.Err(), context.Canceled): // the client has gone: nobody was refused
		case status == http.StatusInternalServerError:
			level = slog.LevelError
		case status > http.StatusInternalServerError:
			level = slog.LevelWarn
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			level = slog.LevelInfo
		}
		if f.cause != nil {
			line = append(line, slog.Any("cause", f.cause))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, f.kind())
		}
	}
	s.log.LogAttrs(ctx, level, "request", line...)
}
