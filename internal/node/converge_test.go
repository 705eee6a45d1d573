package node_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/node"
	"github.com/graphd/graphd/internal/sharedtest"
)

// tally counts what the lives of many nodes came to.
type tally struct{ crashes, inFlight, acknowledged, recovered atomic.Int64 }

// lives has traffic go through several nodes, each of which a crash ends at a random
// moment, and through a last one, whose snapshot is Fold's.
func lives(seed uint64, bodies [][]byte, count *tally) error {
	r := rand.New(rand.NewPCG(seed, 11))
	w := newTraffic(bodies)
	fold := w.fold()
	ctx, cancel := context.WithTimeout(context.Background(), alive)
	defer cancel()
	var disk vfs.FS = vfs.NewCrashableMem()
	for range 1 + r.IntN(2) {
		var err error
		if disk, err = life(ctx, r, w, disk, count); err != nil {
			return err
		}
	}
	n, err := node.Open(small(disk))
	if err != nil {
		return err
	}
	if err := w.checkLog(n, w.known()); err != nil {
		return errors.Join(fmt.Errorf("after the last crash: %w", err), n.Close(ended()))
	}
	err = w.converge(ctx, n, w.shuffled(r, 1+r.IntN(4)), fold)
	return errors.Join(err, n.Close(ended()))
}

// life sends to a node until a crash, and returns what that left of the disk.
func life(ctx context.Context, r *rand.Rand, w *traffic, disk vfs.FS, count *tally) (vfs.FS, error) {
	n, err := node.Open(small(disk))
	if err != nil {
		return nil, err
	}
	if err := w.checkLog(n, w.known()); err != nil {
		return nil, errors.Join(err, n.Close(ended()))
	}
	count.recovered.Add(int64(n.Ledger.Last()))
	parts := w.shuffled(r, 1+r.IntN(4))
	wait := time.Duration(r.IntN(2)*r.IntN(20)) * time.Millisecond
	// The moment: some time after so many bodies are acknowledged.
	after, pause := r.IntN(len(w.bodies)), time.Duration(r.IntN(2_000))*time.Microsecond
	clone := vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: rand.New(rand.NewPCG(r.Uint64(), 0))}
	sending, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- w.sendAll(sending, n, parts, wait) }()
	for len(done) == 0 && len(w.known()) < after {
		time.Sleep(100 * time.Microsecond)
	}
	time.Sleep(pause)
	// First what is acknowledged, then the crash: all of it must be there. What is
	// acknowledged later happens in a world that is gone.
	known := w.known()
	left := disk.(*vfs.MemFS).CrashClone(clone)
	count.crashes.Add(1)
	count.acknowledged.Add(int64(len(known)))
	stop()
	if err := <-done; err != nil {
		count.inFlight.Add(1)
		if !errors.Is(err, context.Canceled) {
			return nil, errors.Join(err, n.Close(ended()))
		}
	}
	w.mu.Lock()
	w.acknowledged = known
	w.mu.Unlock()
	return left, n.Close(ended())
}

// The snapshot equals Fold: random streams, split over senders at once, shuffled
// and with repetitions, over nodes that crash at random moments and lose a random
// part of what was not synced. GRAPHD_TEST_STREAMS says how many streams.
func TestStreamsConverge(t *testing.T) {
	t.Parallel()
	streams := rounds(1000, 100, 100)
	if n, err := strconv.Atoi(os.Getenv("GRAPHD_TEST_STREAMS")); err == nil {
		streams = n
	}
	var count tally
	var next, events atomic.Int64
	var workers sync.WaitGroup
	for range 12 { // they mostly wait
		workers.Go(func() {
			for !t.Failed() {
				seed := uint64(next.Add(1))
				if seed > uint64(streams) {
					return
				}
				bodies := lineagetest.Stream(rand.New(rand.NewPCG(seed, 10)), 40)
				events.Add(int64(len(bodies)))
				if err := lives(seed, bodies, &count); err != nil {
					t.Errorf("stream %d: %v", seed, err)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d streams of %d events, %d crashes with %d bodies acknowledged before, %d of them while somebody was sending; %d records were there at the next start of those that crashed again",
		streams, events.Load(), count.crashes.Load(), count.acknowledged.Load(), count.inFlight.Load(), count.recovered.Load())
	if crashes := count.crashes.Load(); count.inFlight.Load() < crashes/10 || count.acknowledged.Load() == 0 {
		t.Errorf("of %d crashes %d came while somebody was sending: the moments are not random", crashes, count.inFlight.Load())
	}
}

// Every recorded stream, in the same way.
func TestRecordedStreamsConverge(t *testing.T) {
	for i, s := range sharedtest.RecordedStreams(t) {
		t.Run(s.Name, func(t *testing.T) {
			var bodies [][]byte
			for _, d := range s.Deliveries {
				bodies = append(bodies, d.Body)
			}
			var count tally
			if err := lives(uint64(i), bodies, &count); err != nil {
				t.Error(err)
			}
		})
	}
}
