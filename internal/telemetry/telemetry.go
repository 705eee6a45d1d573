// Package telemetry sets up what graphd tells of itself: structured logs,
// OpenTelemetry traces and metrics, and metrics for Prometheus to fetch.
//
// Nothing leaves the process unless the standard variables name a collector:
// OTEL_EXPORTER_OTLP_ENDPOINT, or one of OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and
// OTEL_EXPORTER_OTLP_METRICS_ENDPOINT; then the other OTEL_EXPORTER_OTLP_*
// variables hold too, over HTTP. OTEL_SDK_DISABLED=true turns that off again.
//
// Start at New. No global of OpenTelemetry is set but its error handler.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options say who reports.
type Options struct {
	// Version is the program's.
	Version string
	// Logger takes what the OpenTelemetry SDK says of its own failures.
	Logger *slog.Logger
}

// Telemetry is where spans and measurements go.
type Telemetry struct {
	Traces  trace.TracerProvider
	Meters  metric.MeterProvider
	Context propagation.TextMapPropagator // W3C trace context and baggage
	// Metrics answers with all metrics in the format of Prometheus.
	Metrics  http.Handler
	shutdown []func(context.Context) error
}

// New sets telemetry up. Shutdown sends what is left.
func New(ctx context.Context, opt Options) (*Telemetry, error) {
	t := &Telemetry{
		Context: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
	}
	if opt.Logger != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
			opt.Logger.Warn("telemetry could not be sent", "error", err)
		}))
	}
	// What the environment says of the service comes last and wins.
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "graphd"), attribute.String("service.version", opt.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describing this process to OpenTelemetry: %w", err)
	}
	if err := t.traces(ctx, about); err != nil {
		return nil, err
	}
	if err := t.metrics(ctx, about); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	return t, nil
}

// exports reports whether a collector of a signal is named.
func exports(signal string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

func (t *Telemetry) traces(ctx context.Context, about *resource.Resource) error {
	opts := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	if exports("TRACES") {
		out, err := otlptracehttp.New(ctx)
		if err != nil {
			return fmt.Errorf("setting up the export of traces: %w", err)
		}
		opts = append(opts, sdktrace.WithBatcher(out))
	} else {
		// Spans have IDs, for logs and answers, and cost next to nothing.
		opts = append(opts, sdktrace.WithSampler(sdktrace.NeverSample()))
	}
	p := sdktrace.NewTracerProvider(opts...)
	t.Traces = p
	t.shutdown = append(t.shutdown, p.Shutdown)
	return nil
}

func (t *Telemetry) metrics(ctx context.Context, about *resource.Resource) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	fetched, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return fmt.Errorf("setting up metrics for Prometheus: %w", err)
	}
	opts := []sdkmetric.Option{sdkmetric.WithResource(about), sdkmetric.WithReader(fetched)}
	if exports("METRICS") {
		out, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return fmt.Errorf("setting up the export of metrics: %w", err)
		}
		opts = append(opts, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(out)))
	}
	p := sdkmetric.NewMeterProvider(opts...)
	t.Meters = p
	t.shutdown = append(t.shutdown, p.Shutdown)
	t.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return nil
}

// Shutdown sends what was not sent yet and ends telemetry.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var all []error
	for _, f := range t.shutdown {
		all = append(all, f(ctx))
	}
	t.shutdown = nil
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("ending telemetry: %w", err)
	}
	return nil
}
