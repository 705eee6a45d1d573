package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/node"
)

// localIntake takes events into the log of a directory.
type localIntake struct {
	node *node.Node
	say  func(format string, args ...any)
}

// send implements intake. It does not wait for the graph, which follows.
func (l *localIntake) send(ctx context.Context, bodies [][]byte) ([]ingest.Item, error) {
	return l.node.Pipeline.AcceptAll(ctx, bodies, 0)
}

// patience is how long something may take before it is told what it is.
const patience = time.Second

// close implements intake. It waits for the graph, so that whoever reads it next
// finds all of it there.
func (l *localIntake) close(ctx context.Context) error {
	slow := time.AfterFunc(patience, func() {
		s := l.node.Graph.Stats()
		if left := s.Last - s.Position; s.Found && left > 0 {
			l.say("all events are kept; waiting for the graph, which has yet to merge %d", left)
		} else {
			l.say("all events are kept; waiting for the graph to settle")
		}
	})
	err := l.node.Graph.Settled(ctx)
	slow.Stop()
	if err != nil {
		err = fmt.Errorf("what was taken in is kept, but the graph does not have all of it; it goes on from there at the next start: %w", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel() // it has settled, or will not
	return errors.Join(err, l.node.Close(ended))
}

// localSnapshot writes the snapshot of the graph in a directory.
func (a *app) localSnapshot(ctx context.Context, f snapshotFlags, w io.Writer) (err error) {
	if err := f.checkThere(); err != nil {
		return err
	}
	n, err := f.openOffline(a.stderr, true)
	if err != nil {
		return err
	}
	defer func() {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		err = errors.Join(err, n.Close(ended))
	}()
	waiting, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	switch err := n.Graph.Settled(waiting); {
	case err == nil:
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for the graph to settle: %w", context.Cause(ctx))
	case waiting.Err() != nil:
		return &statusError{exitNotNow, fmt.Errorf("the graph is still settling, and has not ended within %s: ask again, or with a longer --wait", f.wait)}
	default:
		return &statusError{exitNotNow, fmt.Errorf("the graph does not have all that the log has: %w", err)}
	}
	out := bufio.NewWriterSize(w, 64<<10)
	if err := n.Store.Snapshot(ctx, out); err != nil {
		return fmt.Errorf("the snapshot broke off and is incomplete: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	return nil
}
