package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/node"
)

// scenario is a node's life of which any operation on the disk may fail: it is
// opened on a disk that has a past and a write-ahead log to recover, takes events in
// from several senders, settles, answers, and is closed.
type scenario struct {
	past   *vfs.MemFS
	known  map[fact.ID]bool // acknowledged in the past
	bodies [][]byte
	fold   string
}

func newScenario(t *testing.T) *scenario {
	t.Helper()
	s := &scenario{}
	for seed := range uint64(3) {
		s.bodies = append(s.bodies, lineagetest.Stream(rand.New(rand.NewPCG(seed, 21)), 40)...)
	}
	// Enough bytes for flushes and compactions of both stores.
	for i := range 24 {
		s.bodies = append(s.bodies, lineagetest.LoadEvent(i))
	}
	w := newTraffic(s.bodies)
	s.fold = w.fold()
	s.past = vfs.NewCrashableMem()
	n, err := node.Open(tiny(s.past))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.send(t.Context(), n, w.bodies[:len(w.bodies)/2], 0, 7); err != nil {
		t.Fatal(err)
	}
	if err := settled(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	s.known = w.known()
	crashed := s.past.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	if err := n.Close(ended()); err != nil {
		t.Fatal(err)
	}
	s.past = crashed
	return s
}

// tiny are options with memtables so small that the scenario flushes and compacts.
func tiny(fs vfs.FS) node.Options {
	opt := small(fs)
	opt.CacheBytes = 24 << 10
	return opt
}

// ending is what became of a node on a failing disk.
type ending string

const (
	notOpened   ending = "did not open"
	graphClosed ending = "did not open its graph"
	stopped     ending = "stopped"
	errorsOnly  ending = "answered with errors"
	wentOn      ending = "went on"
)

// run lives the scenario on disk as far as it gets. A node that neither stopped nor
// failed to open must have everything in the end.
func (s *scenario) run(disk *faultFS, w *traffic) (n *node.Node, end ending, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), alive)
	defer cancel()
	if n, err = node.Open(tiny(disk)); err != nil {
		return nil, notOpened, nil
	}
	r := rand.New(rand.NewPCG(3, 3))
	half := newTraffic(w.bodies[len(w.bodies)/2:])
	sending, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-n.Failed():
			stop()
		case <-sending.Done():
		}
	}()
	// Errors are an answer too: that of one sender does not stop the others.
	_ = w.sendAll(sending, n, half.shuffled(r, 3), 0)
	if err := n.Graph.Settled(ctx); err == nil {
		ask(ctx, n)
	}
	for n.Failure() == nil {
		switch _, err := n.Store.Stats(ctx); {
		case err == nil:
			// It works: then it works for everything.
			err := w.converge(ctx, n, [][][]byte{w.bodies}, s.fold)
			if err == nil {
				return n, wentOn, nil
			}
			if ctx.Err() != nil {
				return n, wentOn, fmt.Errorf("a node that did not stop: %w", err)
			}
		case errors.Is(err, node.ErrOpening):
		case errors.Is(err, errInjected) && disk.forGood && disk.struck():
			// Reads fail and nothing has to be written: once the disk can be read again, so
			// can the graph.
			return n, errorsOnly, nil
		case errors.Is(err, errInjected) && strings.Contains(err.Error(), "opening the graph"):
			return n, graphClosed, nil
		}
		if ctx.Err() != nil {
			return n, wentOn, errors.New("a node that did not stop does not answer")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if !errors.Is(n.Failure(), graph.ErrFailed) {
		return n, stopped, nil
	}
	if _, err := n.Store.Stats(ctx); !errors.Is(err, graph.ErrFailed) {
		return n, stopped, fmt.Errorf("the graph stopped, and reads say %w", err)
	}
	// The ledger is another store: intake goes on, unless its files fail too.
	if _, err := n.Pipeline.Accept(ctx, w.bodies[0], alive); err != nil && !errors.Is(err, errInjected) {
		return n, stopped, fmt.Errorf("the graph stopped, and intake says %w", err)
	}
	return n, stopped, nil
}

// ask reads, so that reads meet errors.
func ask(ctx context.Context, n *node.Node) {
	_, _ = n.Store.Lineage(ctx, graph.LineageQuery{Root: graph.Root{Dataset: fact.DatasetKey(lineagetest.Table("A"))}, Walk: lineage.Walk{Direction: lineage.Up, Depth: 10, MaxNodes: 100}})
	_, _ = n.Store.Runs(ctx, graph.RunQuery{Paging: graph.Paging{Limit: 10}})
	_ = n.Store.Snapshot(ctx, &bytes.Buffer{})
}

// restart opens a node on what is left, and holds it to all promises.
func (s *scenario) restart(disk *vfs.MemFS, known map[fact.ID]bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), alive)
	defer cancel()
	w := newTraffic(s.bodies)
	n, err := node.Open(small(disk))
	if err != nil {
		return err
	}
	if err := w.checkLog(n, known); err != nil {
		return errors.Join(err, n.Close(ended()))
	}
	return errors.Join(w.converge(ctx, n, [][][]byte{w.bodies}, s.fold), n.Close(ended()))
}

// classes counts the operations of the scenario when nothing fails.
func (s *scenario) classes(t *testing.T) map[string]int {
	t.Helper()
	f := &faults{count: map[string]int{}}
	fs := &faultFS{FS: s.past.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}), faults: f}
	n, end, err := s.run(fs, newTraffic(s.bodies))
	if err != nil || end != wentOn {
		t.Fatalf("without a fault: %s, %v", end, err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.count)
}

// choose returns the faults to be had: of every class the first operation, in two
// ways of failing, and the last one, in one; the ways take turns. With
// GRAPHD_TEST_FAULTS=20 there are 20 places of every class, failing in every way;
// with all, every operation in every way.
func choose(classes map[string]int) (chosen []fault, total int) {
	places, ways := rounds(2, 1, 1), rounds(2, 1, 1)
	if wanted := os.Getenv("GRAPHD_TEST_FAULTS"); wanted == "all" {
		places, ways = math.MaxInt, 4
	} else if n, err := strconv.Atoi(wanted); err == nil {
		places, ways = n, 4
	}
	turn := 0
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		n := classes[class]
		total += n
		here := min(places, n)
		for i := range here {
			nth := 1
			if here > 1 {
				nth = 1 + i*(n-1)/(here-1)
			}
			for way := range ways {
				if ways < 4 {
					if i > 0 && way > 0 {
						break
					}
					way = turn % 4
					turn += 3
				}
				chosen = append(chosen, fault{class: class, nth: nth, after: way&1 != 0, forGood: way&2 != 0})
			}
		}
	}
	return chosen, total
}

// The fault matrix. Every kind of operation on every kind of file of both stores
// fails before its effect and after it, once and for good (see choose). Then the node stops, does not open, or goes
// on and loses nothing. Whatever it does, a start on what is on the disk, and one on
// what a crash leaves of that, have every acknowledged event once and no other, and
// come to the graph that Fold gives. Nothing hangs.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	classes := s.classes(t)
	chosen, total := choose(classes)
	seen := map[string]int{}
	for _, f := range chosen {
		seen[f.class]++
	}
	for _, dir := range []string{"ledger", "graph"} {
		for _, class := range []string{
			"create " + dir + "/log", "create " + dir + "/sst", "create " + dir + "/MANIFEST", "create " + dir + "/marker", "write " + dir + "/log", "write " + dir + "/sst",
			"write " + dir + "/MANIFEST", "sync " + dir + "/MANIFEST", "sync " + dir, "read " + dir + "/sst", "remove " + dir + "/log", "list " + dir, "close " + dir + "/log",
		} {
			if seen[class] == 0 {
				t.Errorf("the scenario has no %q", class)
			}
		}
	}
	if only := os.Getenv("GRAPHD_TEST_FAULTS_OF"); only != "" {
		chosen = slices.DeleteFunc(chosen, func(f fault) bool { return f.class != only })
	}
	ends := map[ending]*atomic.Int64{notOpened: {}, graphClosed: {}, stopped: {}, errorsOnly: {}, wentOn: {}}
	var missed, next atomic.Int64
	var workers, closing sync.WaitGroup
	for range 12 { // they mostly wait
		workers.Go(func() {
			for !t.Failed() {
				i := int(next.Add(1)) - 1
				if i >= len(chosen) {
					return
				}
				f := &faults{fault: chosen[i], count: map[string]int{}}
				disk := s.past.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
				w := newTraffic(s.bodies)
				maps.Copy(w.acknowledged, s.known)
				n, end, err := s.run(&faultFS{FS: disk, faults: f}, w)
				if err != nil {
					t.Errorf("%s: it %s: %v", f.fault, end, err)
					return
				}
				known := w.known()
				asItIs := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
				crashed := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: i % 3 * 50, RNG: rand.New(rand.NewPCG(uint64(i), 9))})
				if n != nil {
					closing.Go(func() { _ = n.Close(ended()) }) // an error is an answer
				}
				ends[end].Add(1)
				if !f.struck() {
					missed.Add(1)
				}
				if err := s.restart(asItIs, known); err != nil {
					t.Errorf("%s: it %s, then on the disk as it is: %v", f.fault, end, err)
				}
				if err := s.restart(crashed, known); err != nil {
					t.Errorf("%s: it %s, then after a crash: %v", f.fault, end, err)
				}
			}
		})
	}
	workers.Wait()
	closed := make(chan struct{})
	go func() { closing.Wait(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(alive):
		t.Error("a node with a failing disk cannot be closed")
	}
	t.Logf("%d operations of %d classes; %d faults, of which %d did not come up: the node did not open %d times, did not open its graph %d times, stopped %d times, answered with errors %d times, went on %d times",
		total, len(classes), len(chosen), missed.Load(), ends[notOpened].Load(), ends[graphClosed].Load(), ends[stopped].Load(), ends[errorsOnly].Load(), ends[wentOn].Load())
	if ends[stopped].Load() == 0 || ends[wentOn].Load() == 0 || missed.Load() > int64(len(chosen)/2) {
		t.Error("the matrix does not reach what it should")
	}
}
