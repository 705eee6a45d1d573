package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/httpapi"
	"github.com/graphd/graphd/internal/ledger"
	"github.com/graphd/graphd/internal/node"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/telemetry"
)

// serveFlags configure the server.
type serveFlags struct {
	listen   string
	data     dataFlags
	requests size
	event    size
	batch    size
	drain    time.Duration
	profiles string
	log      telemetry.LogOptions
}

// gcPercent lets the heap grow further between collections than Go does by default:
// much of it is caches, which are bounded and cost a collection each time. GOGC in
// the environment decides otherwise.
const gcPercent = 200

// restBytes is what everything but requests takes at most, with garbage. From that
// and twice the requests' on, garbage is collected more often in place of letting the
// heap grow to three times what is live: large requests come and go. GOMEMLIMIT in
// the environment decides otherwise.
const restBytes = 1 << 30

// inboxBytes bounds what is kept of rejected bodies.
const inboxBytes = 16 << 20

func (a *app) serveCommand() *cobra.Command {
	limits := httpapi.DefaultLimits()
	f := serveFlags{
		requests: size(limits.Memory), event: size(limits.EventBytes), batch: size(limits.BatchBytes),
	}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API",
		Long: "Serve the API: intake at POST /api/v1/lineage, as OpenLineage clients send it, and reads.\n" +
			"SIGINT or SIGTERM ends it when the requests that run are answered.",
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.listen, "listen", "127.0.0.1:5000", "loopback `HOST:PORT` to serve on; port 0 takes a free one")
	f.data.add(fs)
	fs.Var(&f.requests, "request-memory", "what all request bodies together may take, decoded and parsed")
	fs.Var(&f.event, "max-event", "the longest event, decompressed")
	fs.Var(&f.batch, "max-batch", "the longest batch, decompressed")
	fs.DurationVar(&f.drain, "drain", 20*time.Second, "how long requests may run on when the server ends")
	fs.StringVar(&f.profiles, "profile-listen", "", "loopback `HOST:PORT` to serve Go's profiles on, at /debug/pprof/; none by default")
	fs.StringVar(&f.log.Level, "log-level", "info", "debug, info, warn or error")
	fs.StringVar(&f.log.Format, "log-format", "text", "text or json")
	return cmd
}

func (a *app) serve(ctx context.Context, f serveFlags) (err error) {
	logger, err := telemetry.NewLogger(a.stderr, f.log)
	if err != nil {
		return &usageError{err}
	}
	if err := f.data.check(); err != nil {
		return err
	}
	if a.getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if a.getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(restBytes + 2*int64(f.requests))
	}
	limits := httpapi.DefaultLimits()
	limits.Memory, limits.EventBytes, limits.BatchBytes = int64(f.requests), int64(f.event), int64(f.batch)
	if limits.Memory == 0 || limits.EventBytes == 0 || limits.BatchBytes < limits.EventBytes {
		return &usageError{errors.New("--request-memory and --max-event must not be 0, nor --max-batch less than --max-event")}
	}
	// Before anything else, so that a wrong address is told at once.
	ln, err := httpapi.Listen(ctx, f.listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	tel, err := telemetry.New(ctx, telemetry.Options{Version: build().Version, Logger: logger})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.drain)
		defer cancel()
		// A collector that is away is no reason to end with an error.
		if bad := tel.Shutdown(end); bad != nil {
			logger.Warn("telemetry was not sent to its end", "error", bad)
		}
	}()
	n, err := f.data.open(node.Options{Traces: tel.Traces, Meters: tel.Meters, Logger: logger, InboxBytes: inboxBytes})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.drain)
		defer cancel()
		err = errors.Join(err, n.Close(end))
	}()
	if f.profiles != "" {
		end, err := a.serveProfiles(ctx, f.profiles)
		if err != nil {
			return err
		}
		defer end()
	}
	server, err := httpapi.New(httpapi.Options{Node: n, Telemetry: tel, Logger: logger, Version: build().Version, Limits: limits})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-n.Failed(): // a start recovers
			stop(n.Failure())
		case <-ctx.Done():
		}
	}()
	logger.Info("graphd serves", "address", ln.Addr().String(), "version", build().Version, "identity", n.Decoder.Version(), "store", f.data.store, "data", f.data.shown())
	fmt.Fprintf(a.stdout, "graphd %s serves http://%s\n", build().Version, ln.Addr())
	if err := server.Serve(ctx, ln, f.drain); err != nil {
		return err
	}
	logger.Info("graphd ends")
	if cause := context.Cause(ctx); errors.Is(cause, ledger.ErrFailed) || errors.Is(cause, graph.ErrFailed) || errors.Is(cause, graph.ErrCorrupt) {
		return cause
	}
	return nil
}

func nameRules(collapse bool) normalize.NameRules {
	names := normalize.DefaultNameRules()
	names.Collapse = collapse
	return names
}
