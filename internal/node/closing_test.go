package node_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/node"
)

// stuck is a store whose transactions do not end before they are let.
type stuck struct {
	graph.Store
	begun func()
	let   chan struct{}
}

func (s *stuck) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	s.begun()
	<-s.let
	return s.Store.Write(ctx, b)
}

// TestALongTransactionDoesNotHoldTheEndUp: what is acknowledged is in the log, and a
// process that is told to end must not need a kill.
func TestALongTransactionDoesNotHoldTheEndUp(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	s := &stuck{begun: sync.OnceFunc(func() { close(begun) }), let: make(chan struct{})}
	defer close(s.let)
	opt := small(vfs.NewMem())
	opt.Wrap = func(store graph.Store) graph.Store { s.Store = store; return s }
	n, err := node.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Pipeline.Accept(t.Context(), lineagetest.LoadEvent(0), 0); err != nil {
		t.Fatal(err)
	}
	<-begun
	closed := make(chan error, 1)
	go func() { closed <- n.Close(ended()) }()
	select {
	case err := <-closed:
		if err == nil || !strings.Contains(err.Error(), "goes on from the log at the next start") {
			t.Errorf("closing says %v", err)
		}
	case <-time.After(alive):
		t.Fatal("it does not end")
	}
}
