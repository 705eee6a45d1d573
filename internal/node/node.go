// Package node puts one process's parts together: the ledger, the graph store
// that follows it, and the pipeline that feeds them. Commands and tests open the
// same one.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/ledger"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/projection"
)

// The stores.
const (
	// Embedded keeps the graph on disk, beside the ledger.
	Embedded = "embedded"
	// Memory keeps everything in memory, the ledger too: it is gone with the process.
	Memory = "memory"
)

// Options of a node. The zero value is one in memory with the shipped rules.
type Options struct {
	// Store is Embedded or Memory, by default the latter.
	Store string
	// Dir is the data directory of an embedded store: the ledger is in its ledger/,
	// the graph in its graph/.
	Dir string
	// Names are the name rules, by default the shipped ones.
	Names *normalize.NameRules
	// Decoder reads the events by Names; default: one of its own. To make one takes
	// 50 ms, which tests that open many nodes want to do once.
	Decoder *ingest.Decoder
	// Budget bounds what is kept, in bytes: on disk, or in memory the log. 0 for no
	// bound. With it used up, intake says graph.ErrFull.
	Budget int64
	// CacheBytes bounds the memory of the ledger and, again, of an embedded graph: the
	// blocks and memtables of each, the table of recent bodies a quarter of it.
	// Default: what each takes by itself (ledger.Options, embedded.Options).
	CacheBytes int64
	// InboxBytes bounds what is kept of rejected bodies. Default 16 MiB.
	InboxBytes int
	// Traces and Meters are told what the store does. Default: nobody.
	Traces trace.TracerProvider
	Meters metric.MeterProvider
	// Logger is told what goes wrong. Default: nobody.
	Logger *slog.Logger
	// FS is the file system, by default the operating system's.
	FS vfs.FS
	// Now is the clock, by default time.Now.
	Now func() time.Time
	// KeepGraph says that a graph of other rules or of another log, or one that is
	// corrupt, is an error, and is not made anew from the log: for whoever only wants to
	// read.
	KeepGraph bool
	// Wrap lets a test stand between the parts and the graph store.
	Wrap func(graph.Store) graph.Store
}

// ErrLogCorrupt: a record of the log is not what was written.
var ErrLogCorrupt = ledger.ErrCorrupt

// Node is one process's parts.
type Node struct {
	Decoder  *ingest.Decoder
	Names    normalize.NameRules
	Ledger   *ledger.Ledger
	Graph    *projection.Projector
	Store    graph.Store
	Pipeline *ingest.Pipeline
	Inbox    *ingest.Inbox

	opening *opening

	now    func() time.Time
	failed chan struct{} // closed when cause is set
	once   sync.Once
	cause  error
	closed chan struct{} // closed by shut
	shut   func()
}

// Open opens the ledger, and in the background the graph: intake works as soon as
// Open returns, whatever the graph's size; reads wait for it. Errors: ledger.Err...,
// wrapped, with what to do about it.
func Open(opt Options) (*Node, error) {
	n := &Node{Names: normalize.DefaultNameRules(), failed: make(chan struct{}), closed: make(chan struct{})}
	if opt.Names != nil {
		n.Names = *opt.Names
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Traces == nil {
		opt.Traces = tracenoop.NewTracerProvider()
	}
	if opt.Meters == nil {
		opt.Meters = metricnoop.NewMeterProvider()
	}
	if opt.InboxBytes == 0 {
		opt.InboxBytes = 16 << 20
	}
	n.now = opt.Now
	n.shut = sync.OnceFunc(func() { close(n.closed) })
	var err error
	if n.Decoder = opt.Decoder; n.Decoder == nil {
		if n.Decoder, err = ingest.NewDecoder(ingest.Options{Names: n.Names}); err != nil {
			return nil, err
		}
	}
	log := ledger.Options{
		DiskBudget: opt.Budget, CacheBytes: opt.CacheBytes, RecentBytes: opt.CacheBytes / 4, Now: opt.Now, FS: opt.FS, Logger: opt.Logger,
	}
	dir := filepath.Join(opt.Dir, "ledger")
	switch opt.Store {
	case Embedded:
	case Memory, "":
		log.FS, dir = vfs.NewMem(), "ledger"
		log.CacheBytes = 8 << 20 // the files are in memory
	default:
		return nil, fmt.Errorf("store %q: want %s or %s", opt.Store, Embedded, Memory)
	}
	if n.Ledger, err = ledger.Open(dir, log); err != nil {
		return nil, err
	}
	go n.watch(n.Ledger.Failed(), ledger.ErrFailed)
	g := newGraphs(n, opt, projection.Archive{Log: n.Ledger, Decode: n.Decoder.Decode})
	n.opening = newOpening()
	// Before anything is taken in: a log that lost its end must not grow over that.
	last := n.Ledger.Last()
	go g.first(n.opening.now(), last)
	n.Store = graph.Instrument(n.opening, opt.Traces, opt.Meters)
	n.Graph = projection.Start(projection.Options{
		Log: n.Ledger, Store: n.Store, Decode: n.Decoder.Decode, Logger: opt.Logger, Now: opt.Now,
	})
	n.Inbox = ingest.NewInbox(opt.InboxBytes)
	n.Pipeline = ingest.NewPipeline(n.Decoder, n.Ledger, n.Graph, n.Inbox, opt.Now)
	if err := n.observe(opt.Meters); err != nil {
		opt.Logger.Warn("some metrics are missing", "error", err)
	}
	return n, nil
}

// watch waits until a part has stopped.
func (n *Node) watch(stopped <-chan struct{}, cause error) {
	select {
	case <-stopped:
		n.fail(cause)
	case <-n.closed:
	}
}

func (n *Node) fail(cause error) {
	n.once.Do(func() {
		n.cause = cause
		close(n.failed)
	})
}

// Failed is closed when the ledger or the graph has stopped after an error of the
// disk, or the graph is corrupt once more after it was made anew: the process should
// end, and start again.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Failure says which of them has: ledger.ErrFailed, graph.ErrFailed or
// graph.ErrCorrupt, wrapped; nil while Failed is open.
func (n *Node) Failure() error {
	select {
	case <-n.failed:
		return n.cause
	default:
		return nil
	}
}

// Close ends the node: what was acknowledged is on disk; the graph is given until
// ctx ends to come to the end of the log, and follows on from where it is at the
// next start.
func (n *Node) Close(ctx context.Context) error {
	// An error says that it did not get there: it will.
	_ = n.Graph.Settled(ctx)
	n.shut()
	return errors.Join(n.closeGraph(), n.Ledger.Close())
}

// lastTransaction is how long the transaction that runs when a node is closed may
// take.
const lastTransaction = 10 * time.Second

// errGivenUp: nothing is lost.
var errGivenUp = errors.New("the graph was in the middle of a long transaction, which is given up: it goes on from the log at the next start")

// closeGraph leaves a graph that does not end in time as it is. Its files are closed
// with the process.
func (n *Node) closeGraph() error {
	closed := make(chan error, 1)
	go func() {
		n.Graph.Close()
		closed <- n.Store.Close()
	}()
	select {
	case err := <-closed:
		return err
	case <-time.After(lastTransaction):
		return errGivenUp
	}
}
