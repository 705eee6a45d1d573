package graphtest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
)

// crashes writes random streams, and goes on now and then with what a crash left:
// from the position that this has.
func (s *suite) crashes(t *testing.T) {
	if s.Crash == nil {
		t.Skip("the driver keeps nothing beyond its process")
	}
	for seed := range uint64(streams()) {
		rng := rand.New(rand.NewPCG(seed, 5))
		bodies := lineagetest.Stream(rng, 40)
		store := s.open(t)
		for i := 0; i < len(bodies); {
			n := 1 + rng.IntN(min(4, len(bodies)-i))
			if _, err := store.Write(t.Context(), store.log.append(s.decode(t, bodies[i:i+n]...)...)); err != nil {
				t.Fatal(err)
			}
			i += n
			if rng.IntN(4) == 0 {
				if _, err := store.Settle(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if rng.IntN(6) == 0 {
				store = s.crash(t, store)
			}
		}
		store = s.crash(t, store)
		equal(t, snapshot(t, store), s.fold(t, bodies))
	}
	s.crashWhileWriting(t)
}

// crash returns the store that a crash leaves, with what its log has to say.
func (s *suite) crash(t *testing.T, old *store) *store {
	t.Helper()
	left := &store{s.Crash(t, old.Store), old.log}
	catchUp(t, left)
	return left
}

func catchUp(t *testing.T, store *store) {
	t.Helper()
	position, err := store.Position(t.Context(), logName, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Write(t.Context(), store.log.from(position)); err != nil {
		t.Fatal(err)
	}
}

// crashWhileWriting crashes a store that somebody writes to and settles.
func (s *suite) crashWhileWriting(t *testing.T) {
	bodies := manyBodies(3)
	events := s.decode(t, bodies...)
	old := s.open(t)
	old.log.append(events...)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for i := range events {
			batch := old.log.from(0)
			batch.Deliveries, batch.Through = batch.Deliveries[i:i+1], uint64(i+1)
			if _, err := old.Write(context.Background(), batch); err != nil {
				t.Error(err)
			}
		}
	})
	for range 5 {
		left := &store{s.Crash(t, old.Store), old.log}
		catchUp(t, left)
		equal(t, snapshot(t, left), s.fold(t, bodies))
	}
}

// positions are those that survive: a lane of a log has its own.
func (s *suite) positions(t *testing.T) {
	store := s.open(t)
	write := func(log string, lane int, through uint64) {
		t.Helper()
		if _, err := store.Write(t.Context(), graph.Batch{Log: log, Lane: lane, Through: through}); err != nil {
			t.Fatal(err)
		}
	}
	write("a", 0, 7)
	write("a", 1, 5)
	write("b", 0, 3)
	write("a", 0, 6)   // a position never goes back
	snapshot(t, store) // whose moment has everything
	check := func(crashed bool, store graph.Store) {
		for _, want := range []struct {
			log  string
			lane int
			at   uint64
		}{{"a", 0, 7}, {"a", 1, 5}, {"b", 0, 3}, {"b", 1, 0}, {"c", 0, 0}} {
			at, err := store.Position(t.Context(), want.log, want.lane)
			if err != nil || at != want.at && !(crashed && at < want.at) {
				t.Errorf("lane %d of log %s is at %d (%v), want %d", want.lane, want.log, at, err, want.at)
			}
		}
	}
	check(false, store)
	if s.Crash != nil {
		check(true, s.Crash(t, store.Store))
	}
}
