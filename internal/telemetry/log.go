package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// LogOptions say what is logged and how.
type LogOptions struct {
	// Level is debug, info, warn or error, in any case.
	Level string
	// Format is text or json.
	Format string
}

// NewLogger returns a logger whose lines carry the trace_id and span_id of the
// context that they are logged with.
func NewLogger(w io.Writer, opt LogOptions) (*slog.Logger, error) {
	levels := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	level, ok := levels[strings.ToLower(opt.Level)]
	if !ok {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", opt.Level)
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: plainErrors}
	switch strings.ToLower(opt.Format) {
	case "text":
		return slog.New(traced{slog.NewTextHandler(w, opts)}), nil
	case "json":
		return slog.New(traced{slog.NewJSONHandler(w, opts)}), nil
	}
	return nil, fmt.Errorf("log format %q: want text or json", opt.Format)
}

// plainErrors shows an error as its text. The text handler would ask it for all it
// knows, which of some errors is a stack.
func plainErrors(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok && a.Value.Kind() == slog.KindAny {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}

// traced adds the current span to each record.
type traced struct{ slog.Handler }

// Handle implements slog.Handler.
func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }
