package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/ingest"
)

// ingestFlags say where events go, and what is told of it.
type ingestFlags struct {
	placeFlags
	local       bool // into a directory
	retryFor    time.Duration
	json, quiet bool
}

func (a *app) ingestCommand() *cobra.Command {
	var f ingestFlags
	cmd := &cobra.Command{
		Use:   "ingest PATH...",
		Short: "Send recorded events to a server, or take them into a directory",
		Long: "Send all events of PATH to a graphd server, and say what became of them. With --data they are taken into the directory\n" +
			"of a graphd that does not run, and it ends when the graph there has them.\n" +
			"An event that is known already changes nothing: after a failure, whole or in part, run the same command again.\n" +
			"Their order does not matter; several requests run at once. An event whose answer got lost is sent again, and may be\n" +
			"counted as a retry where it was new.\n" +
			"The exit status is 0 only if every event was taken in.\n\n" + pathHelp,
		Args: atLeast(1, "a PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.retryFor < 0 {
				return &usageError{errors.New("--retry-for must not be negative")}
			}
			var err error
			if f.local, err = f.isLocal(cmd.Flags()); err != nil {
				return err
			}
			return a.ingest(cmd.Context(), args, f)
		},
	}
	fs := cmd.Flags()
	f.add(fs)
	fs.DurationVar(&f.retryFor, "retry-for", 2*time.Minute, "how long to try again what a server does not take for now; 0 is not at all")
	fs.BoolVar(&f.json, "json", false, "write the summary as JSON, and show no progress")
	fs.BoolVar(&f.quiet, "quiet", false, "show no progress")
	return cmd
}

// intake is where ingest sends events. It is safe for concurrent use.
type intake interface {
	// send takes bodies in, in any order, and returns what became of each: a
	// receipt, whose Outcome is set, or an error if that one is rejected for good.
	// What it has no error for and no receipt is not known to be taken in; then
	// send's error says why, and the items may be fewer than the bodies. Sending
	// those again is always right. The bodies are send's to keep.
	send(ctx context.Context, bodies [][]byte) ([]ingest.Item, error)
	// close gives up what the intake holds. Everything that has a receipt is kept.
	// It may wait until ctx ends.
	close(ctx context.Context) error
}

// openIntake opens the intake that the flags name. What keeps it from going on for
// a while is told on c.
func (a *app) openIntake(f ingestFlags, c *console) (intake, error) {
	if f.local {
		n, err := f.openOffline(c, false)
		if err != nil {
			return nil, err
		}
		return &localIntake{n, c.say}, nil
	}
	r, err := newRemote(f.remoteFlags)
	if err != nil {
		return nil, err
	}
	return newHTTPIntake(r, f.retryFor, func(err error) {
		c.say("%s; trying again for up to %s", printable(err.Error()), f.retryFor)
	}), nil
}

// Bounds of what goes into an intake at once, and how often. An event longer than
// batchBytes goes alone.
const (
	batchEvents   = 500
	batchBytes    = 8 << 20
	batchesAtOnce = 4
	// batchTime is how long an event waits for others, where events come slowly.
	batchTime = time.Second
)

func (a *app) ingest(ctx context.Context, paths []string, f ingestFlags) error {
	c := newConsole(a.stderr, paths, !f.quiet && !f.json)
	to, err := a.openIntake(f, c)
	if err != nil {
		c.end()
		return err
	}
	in := &ingestion{to: to, console: c, summary: summary{Outcomes: map[fact.Outcome]int64{}}}
	for _, o := range outcomes {
		in.summary.Outcomes[o] = 0
	}
	err = in.run(ctx, ingest.Source{Stdin: a.stdin, MaxBody: maxEvent}, paths)
	err = errors.Join(err, to.close(ctx))
	c.end()
	s := in.conclude()
	if f.json {
		err = errors.Join(err, a.writeJSON(s))
	} else {
		_, bad := a.stdout.Write(s.text())
		err = errors.Join(err, bad)
	}
	switch {
	case err != nil && ctx.Err() != nil && s.Unacknowledged > 0:
		return fmt.Errorf("interrupted: %d of the events read may not be taken in; ingest all of them again, it does no harm", s.Unacknowledged)
	case err != nil:
		return err
	case s.Rejected > 0 || s.Unread > 0:
		return &statusError{code: exitFailed}
	}
	return nil
}

// ingestion is a call of ingest.
type ingestion struct {
	to      intake
	console *console

	mu      sync.Mutex
	summary summary
}

// document is what a source yields.
type document struct {
	body ingest.Body
	err  error
}

// run sends everything that source reads of paths. Its error is why it stopped
// before the end: one of the intake, or of ctx.
func (in *ingestion) run(ctx context.Context, source ingest.Source, paths []string) error {
	g, ctx := errgroup.WithContext(ctx)
	documents, batches := make(chan document), make(chan []ingest.Body)
	// Not of the group: nothing ends a read of a pipe that nobody writes to.
	go func() {
		defer close(documents)
		for body, err := range source.Read(paths...) {
			select {
			case documents <- document{body, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	g.Go(func() error {
		defer close(batches)
		return in.gather(ctx, documents, batches)
	})
	for range batchesAtOnce {
		g.Go(func() error {
			for batch := range batches {
				if err := in.send(ctx, batch); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// gather makes batches of documents.
func (in *ingestion) gather(ctx context.Context, documents <-chan document, batches chan<- []ingest.Body) error {
	var batch []ingest.Body
	size := 0
	slow := time.NewTimer(batchTime)
	slow.Stop()
	flush := func() error {
		slow.Stop()
		if len(batch) == 0 {
			return nil
		}
		select {
		case batches <- batch:
			batch, size = nil, 0
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for {
		select {
		case d, more := <-documents:
			switch {
			case !more && ctx.Err() != nil: // it may have ended for that
				return context.Cause(ctx)
			case !more:
				return flush()
			case d.err != nil && d.body.Number == 0:
				in.fault(d)
				continue
			}
			in.found()
			if d.err != nil {
				in.fault(d)
				continue
			}
			if n := len(d.body.Data); len(batch) == batchEvents || len(batch) > 0 && size+n > batchBytes {
				if err := flush(); err != nil {
					return err
				}
			}
			if len(batch) == 0 {
				slow.Reset(batchTime)
			}
			batch, size = append(batch, d.body), size+len(d.body.Data)
		case <-slow.C:
			if err := flush(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send sends a batch and counts what became of it.
func (in *ingestion) send(ctx context.Context, batch []ingest.Body) error {
	bodies := make([][]byte, len(batch))
	size := int64(0)
	for i := range batch {
		bodies[i] = batch[i].Data
		size += int64(len(bodies[i])) + 1 // what parts it from the next one
		batch[i].Data = nil               // it is the intake's now
	}
	items, err := in.to.send(ctx, bodies)
	for i, item := range items {
		switch {
		case item.Err != nil:
			in.fault(document{batch[i], item.Err})
		case item.Receipt != nil:
			in.accepted(item.Receipt.Outcome)
		}
	}
	if err == nil {
		in.console.advance(size)
	}
	return err
}

func (in *ingestion) found() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.summary.Events++
}

func (in *ingestion) accepted(o fact.Outcome) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.summary.Outcomes[o]++
}

// maxFaults is how many rejected events and unread paths are told one by one.
const maxFaults = 20

// fault counts an event that was rejected, or a path that could not be read to its
// end, and tells of it.
func (in *ingestion) fault(d document) {
	text := printable(d.err.Error())
	in.mu.Lock()
	if d.body.Number > 0 {
		in.summary.Rejected++
		text = printable(d.body.Place()) + ": " + text
	} else {
		in.summary.Unread++
	}
	told := in.summary.Rejected + in.summary.Unread
	in.mu.Unlock()
	if told <= maxFaults {
		in.console.say("%s", text)
	}
}

// conclude says what became of everything. It tells of the faults that were only
// counted.
func (in *ingestion) conclude() *summary {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := &in.summary
	if more := s.Rejected + s.Unread - maxFaults; more > 0 {
		in.console.say("and %d more", more)
	}
	s.Unacknowledged = s.Events - s.Rejected
	for _, n := range s.Outcomes {
		s.Unacknowledged -= n
	}
	return s
}

// summary is what became of the events of an ingestion.
type summary struct {
	// Events counts those read, whatever became of them.
	Events int64 `json:"events"`
	// Outcomes counts those taken in.
	Outcomes map[fact.Outcome]int64 `json:"outcomes"`
	Rejected int64                  `json:"rejected"`
	// Unacknowledged counts those of which nothing is known.
	Unacknowledged int64 `json:"unacknowledged"`
	// Unread counts paths that could not be read, or not to their end.
	Unread int64 `json:"unread"`
}

// outcomes in the order that a summary has them.
var outcomes = []fact.Outcome{fact.New, fact.Retry, fact.Equivalent, fact.Redescribed, fact.Collision}

// text writes the summary for people.
func (s *summary) text() []byte {
	type row struct {
		name  string
		count int64
		shown bool
	}
	rows := make([]row, 0, len(s.Outcomes)+4)
	rest := maps.Clone(s.Outcomes)
	for _, o := range outcomes {
		rows = append(rows, row{string(o), rest[o], true})
		delete(rest, o)
	}
	for _, o := range slices.Sorted(maps.Keys(rest)) { // of a later version
		rows = append(rows, row{printable(string(o)), rest[o], true})
	}
	rows = append(rows, row{"rejected", s.Rejected, true}, row{"unacknowledged", s.Unacknowledged, s.Unacknowledged > 0}, row{"events", s.Events, true},
		row{"unread paths", s.Unread, s.Unread > 0})
	var out []byte
	for _, r := range rows {
		if r.shown {
			out = fmt.Appendf(out, "%-15s %10d\n", r.name, r.count)
		}
	}
	return out
}
