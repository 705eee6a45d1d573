package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/graph/embedded"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/node"
	"github.com/graphd/graphd/internal/openlineage"
	"github.com/graphd/graphd/internal/projection"
)

var errAway = errors.New("the store is away")

// flakyStore answers a call of a Writer with an error if fails says so, before the
// call has an effect or after it.
type flakyStore struct {
	graph.Store
	fails func() (before, after bool)
}

func flaky[T any](s *flakyStore, call func() (T, error)) (T, error) {
	var none T
	before, after := s.fails()
	if before {
		return none, errAway
	}
	out, err := call()
	if err == nil && after {
		return none, errAway
	}
	return out, err
}

func (s *flakyStore) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	return flaky(s, func() ([]graph.Standing, error) { return s.Store.Write(ctx, b) })
}

func (s *flakyStore) Settle(ctx context.Context) (bool, error) {
	return flaky(s, func() (bool, error) { return s.Store.Settle(ctx) })
}

func (s *flakyStore) Position(ctx context.Context, log string, lane int) (uint64, error) {
	return flaky(s, func() (uint64, error) { return s.Store.Position(ctx, log, lane) })
}

func openWrapped(t *testing.T, opt node.Options, wrap func(graph.Store) graph.Store) *node.Node {
	t.Helper()
	opt.Wrap, opt.Decoder = wrap, decoder()
	n, err := node.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(ended()); err != nil {
			t.Error(err)
		}
	})
	return n
}

// While the store fails, intake goes on and says that the graph follows later; reads
// answer. Once the store is back everything settles.
func TestTheStoreIsAway(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), alive)
	defer cancel()
	var away atomic.Bool
	n := openWrapped(t, small(vfs.NewMem()), func(s graph.Store) graph.Store {
		return &flakyStore{s, func() (bool, bool) { return away.Load(), false }}
	})
	w := newTraffic(lineagetest.Stream(rand.New(rand.NewPCG(4, 31)), 40))
	third := len(w.bodies) / 3
	if err := w.send(ctx, n, w.bodies[:third], alive, 3); err != nil {
		t.Fatal(err)
	}
	if err := settled(ctx, n); err != nil {
		t.Fatal(err)
	}
	position := n.Graph.Stats().Position
	away.Store(true)
	for _, body := range w.bodies[third:] {
		receipt, err := n.Pipeline.Accept(ctx, body, alive)
		if err != nil {
			t.Fatal(err)
		}
		if seen := receipt.Outcome == graph.Retry; receipt.Status != ingest.InLog && !seen {
			t.Errorf("a receipt says %s (%s) of an event that no store has", receipt.Status, receipt.Outcome)
		}
	}
	if err := n.Graph.Settled(ctx); !errors.Is(err, errAway) {
		t.Errorf("the graph has settled without a store: %v", err)
	}
	if s := n.Graph.Stats(); s.Position != position || s.Last <= position || !errors.Is(s.Failure, errAway) {
		t.Errorf("the graph follows as %+v, having come to %d", s, position)
	}
	if s, err := n.Store.Stats(ctx); err != nil || s.Events == 0 {
		t.Errorf("reads say %+v, %v", s, err)
	}
	away.Store(false)
	if err := w.converge(ctx, n, nil, w.fold()); err != nil {
		t.Error(err)
	}
}

// A store that fails now and then, before or after the effect, loses nothing.
func TestTheStoreFailsNowAndThen(t *testing.T) {
	for seed := range uint64(rounds(20, 5, 5)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), alive)
			defer cancel()
			r := rand.New(rand.NewPCG(seed, 32))
			var mu sync.Mutex // the fails of one projector, and the test's own use of r
			failures := 0
			n := openWrapped(t, small(vfs.NewMem()), func(s graph.Store) graph.Store {
				return &flakyStore{s, func() (bool, bool) {
					mu.Lock()
					defer mu.Unlock()
					if failures >= 12 || r.IntN(3) > 0 {
						return false, false
					}
					failures++
					before := r.IntN(2) == 0
					return before, !before
				}}
			})
			bodies := lineagetest.Stream(rand.New(rand.NewPCG(seed, 33)), 40)
			w := newTraffic(bodies)
			if err := w.converge(ctx, n, w.shuffled(rand.New(rand.NewPCG(seed, 34)), 3), w.fold()); err != nil {
				t.Error(err)
			}
		})
	}
}

// restartingStore is a store of its own disk that can be restarted, as one that
// runs elsewhere: a crash loses what was not synced, and a call that was under way
// ends with an error, or the next one does.
type restartingStore struct {
	graph.Store // for reads; set once
	opt         embedded.Options
	mu          sync.RWMutex
	disk        *vfs.MemFS
	now         *embedded.Store
	broken      atomic.Bool
}

func (s *restartingStore) open() error {
	s.opt.FS = s.disk
	now, err := embedded.Open("graph", s.opt)
	s.now = now
	return err
}

// restart crashes the store while calls are under way.
func (s *restartingStore) restart(r *rand.Rand) error {
	left := s.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: rand.New(rand.NewPCG(r.Uint64(), 0))})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken.Store(true)
	old := s.now
	s.disk = left
	return errors.Join(old.Close(), s.open())
}

func remotely[T any](s *restartingStore, call func(*embedded.Store) (T, error)) (T, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var none T
	if s.broken.Swap(false) {
		return none, errAway
	}
	out, err := call(s.now)
	if s.broken.Swap(false) {
		return none, errAway
	}
	return out, err
}

func (s *restartingStore) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	return remotely(s, func(now *embedded.Store) ([]graph.Standing, error) { return now.Write(ctx, b) })
}

func (s *restartingStore) Settle(ctx context.Context) (bool, error) {
	return remotely(s, func(now *embedded.Store) (bool, error) { return now.Settle(ctx) })
}

func (s *restartingStore) Position(ctx context.Context, log string, lane int) (uint64, error) {
	return remotely(s, func(now *embedded.Store) (uint64, error) { return now.Position(ctx, log, lane) })
}

func (s *restartingStore) Standings(ctx context.Context, a []fact.Attempt) ([]graph.Standing, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.now.Standings(ctx, a)
}

// A store that restarts, without what it had not synced, is written again from the
// position that it has.
func TestTheStoreRestarts(t *testing.T) {
	for seed := range uint64(rounds(10, 3, 3)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), alive)
			defer cancel()
			r := rand.New(rand.NewPCG(seed, 41))
			remote := &restartingStore{disk: vfs.NewCrashableMem()}
			var n *node.Node
			opened, ready := make(chan struct{}), make(chan error, 1)
			n = openWrapped(t, node.Options{}, func(s graph.Store) graph.Store {
				<-opened
				remote.Store = s
				remote.opt = embedded.Options{Version: decoder().Version(), Archive: projection.Archive{Log: n.Ledger, Decode: decoder().Decode}, CacheBytes: 128 << 10}
				ready <- remote.open()
				return remote
			})
			close(opened)
			if err := <-ready; err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := remote.now.Close(); err != nil {
					t.Error(err)
				}
			})
			bodies := lineagetest.Stream(r, 40)
			w, last := newTraffic(append(bodies, child(0))), child(0)
			done := make(chan error, 1)
			parts := newTraffic(bodies).shuffled(r, 3)
			go func() { done <- w.sendAll(ctx, n, parts, 20*time.Millisecond) }()
			for range 4 {
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
				if err := remote.restart(r); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			// With its next call the projector hears of the last restart.
			if err := w.send(ctx, n, [][]byte{last}, 0, 1); err != nil {
				t.Fatal(err)
			}
			if err := settled(ctx, n); err != nil {
				t.Fatal(err)
			}
			b := new(bytes.Buffer)
			if err := remote.now.Snapshot(ctx, b); err != nil {
				t.Fatal(err)
			}
			if fold := w.fold(); b.String() != fold {
				t.Errorf("the snapshot is not Fold's: %s", difference(b.String(), fold))
			}
		})
	}
}

// A child's run depends on its parent's slot, whichever is heard of first.
func TestLateParents(t *testing.T) {
	childBody := child(20)
	parents := [][]byte{
		parent(openlineage.Start, cascadeStart, nil),
		parent(openlineage.Complete, cascadeStart.Add(time.Hour), lineagetest.Object{"nominalTime": lineagetest.NominalTime("2026-11-01T00:00:00Z")}),
	}
	orders := map[string][][][]byte{ // parts that are sent one after the other
		"child first":  {{childBody}, parents},
		"parent first": {parents, {childBody}},
		"between":      {parents[:1], {childBody}, parents[1:]},
		"at once":      {{childBody, parents[0], parents[1]}},
	}
	for name, order := range orders {
		for _, store := range []string{node.Memory, node.Embedded} {
			t.Run(name+", "+store, func(t *testing.T) {
				for range rounds(10, 3, 3) {
					opt := small(vfs.NewMem())
					opt.Store = store
					lateParents(t, openWrapped(t, opt, nil), order, name == "at once")
				}
			})
		}
	}
}

func lateParents(t *testing.T, n *node.Node, order [][][]byte, atOnce bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), alive)
	defer cancel()
	w := newTraffic(nil)
	for _, part := range order {
		said := newTraffic(part)
		w.bodies, w.events = append(w.bodies, said.bodies...), append(w.events, said.events...)
		for body, e := range said.of {
			w.of[body] = e
		}
		parts := [][][]byte{part}
		if atOnce {
			parts = nil
			for _, body := range part {
				parts = append(parts, [][]byte{body})
			}
		}
		if err := w.sendAll(ctx, n, parts, alive); err != nil {
			t.Fatal(err)
		}
		// What was heard of by then is the graph of what was heard of by then.
		if err := w.settles(ctx, n, w.fold()); err != nil {
			t.Fatal(err)
		}
	}
}
