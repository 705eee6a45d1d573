// Package graphtest is the conformance suite of package graph. Every driver
// passes all of it; a driver's own test says how to open an empty store and
// which bounds it has.
package graphtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/sharedtest"
)

// Driver says how the suite gets at a driver.
type Driver struct {
	// Open returns an empty store for events of an identity version, closed when
	// the test ends. A budget above 0 bounds the bytes that it may keep.
	Open func(t *testing.T, version string, budget int64) graph.Store
	// Serial says that only one store can be open at a time.
	Serial bool
}

// Run holds a driver to the contract.
func Run(t *testing.T, d Driver) {
	s := &suite{Driver: d, decoder: decoder(t)}
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"outcomes", s.outcomes},
		{"results name runs", s.results},
		{"random streams equal Fold", s.randomStreams},
		{"recorded streams equal Fold", s.recordedStreams},
		{"concurrent writers", s.concurrentWriters},
		{"one event from many writers", s.oneEventManyWriters},
		{"reads while writing", s.readsWhileWriting},
		{"a budget that is used up", s.budget},
		{"errors", s.errors},
		{"listings page", s.listings},
		{"events filter", s.eventFilters},
		{"entities", s.entities},
		{"walks over diamonds", s.diamonds},
		{"walks stop and say so", s.cuts},
		{"walks fold names", s.groups},
		{"walks from jobs and runs", s.otherRoots},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !d.Serial {
				t.Parallel()
			}
			c.test(t)
		})
	}
}

type suite struct {
	Driver
	decoder *ingest.Decoder
}

func decoder(t *testing.T) *ingest.Decoder {
	t.Helper()
	d, err := ingest.NewDecoder(ingest.Options{Names: normalize.DefaultNameRules()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// received is the moment at which the suite's deliveries arrive.
var received = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func (s *suite) open(t *testing.T) graph.Store {
	t.Helper()
	return s.Open(t, s.decoder.Version(), 0)
}

// deliver makes a delivery of each body that is an event.
func (s *suite) deliver(t *testing.T, bodies ...[]byte) (out []graph.Delivery) {
	t.Helper()
	for _, b := range bodies {
		e, err := s.decoder.Decode(b)
		if err != nil {
			t.Fatalf("decoding %s: %v", b, err)
		}
		out = append(out, graph.Delivery{Event: e, Payload: b, Received: received})
	}
	return out
}

func (s *suite) write(t *testing.T, store graph.Store, bodies ...[]byte) []graph.Result {
	t.Helper()
	results, err := store.Write(t.Context(), s.deliver(t, bodies...))
	if err != nil {
		t.Fatalf("writing: %v", err)
	}
	return results
}

// fold returns the snapshot that the bodies must give.
func (s *suite) fold(t *testing.T, bodies [][]byte) string {
	t.Helper()
	var events []*fact.Event
	for _, d := range s.deliver(t, bodies...) {
		events = append(events, d.Event)
	}
	var b bytes.Buffer
	if err := lineage.Fold(s.decoder.Version(), events).WriteSnapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func snapshot(t *testing.T, store graph.Store) string {
	t.Helper()
	var b bytes.Buffer
	if err := store.Snapshot(t.Context(), &b); err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return b.String()
}

// equal fails with the first lines that differ.
func equal(t *testing.T, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := bytes.Split([]byte(got), []byte("\n")), bytes.Split([]byte(want), []byte("\n"))
	in := func(list [][]byte) map[string]bool {
		m := map[string]bool{}
		for _, l := range list {
			m[string(l)] = true
		}
		return m
	}
	inGot, inWant := in(g), in(w)
	shown := 0
	for _, l := range g {
		if !inWant[string(l)] && shown < 5 {
			t.Errorf("unexpected: %s", l)
			shown++
		}
	}
	for _, l := range w {
		if !inGot[string(l)] && shown < 10 {
			t.Errorf("missing: %s", l)
			shown++
		}
	}
	t.Fatalf("the snapshot (%d lines) is not that of Fold (%d lines)", len(g), len(w))
}

func (s *suite) outcomes(t *testing.T) {
	store := s.open(t)
	for i, c := range []struct {
		body []byte
		want graph.Outcome
	}{
		{described("j", "r1", "START", 1, "x", "a"), graph.New},
		{described("j", "r1", "START", 1, "x", "a"), graph.Retry},
		{described("j", "r1", "START", 2, "x", "a"), graph.Equivalent},
		{described("j", "r1", "START", 2, "x", "b"), graph.Redescribed},
		{described("j", "r1", "START", 3, "x", "b"), graph.Equivalent},
		{described("j", "r1", "START", 3, "y", "b"), graph.Collision},
		{described("j", "r1", "START", 3, "y", "b"), graph.Retry},
		{described("j", "r2", "START", 1, "x", "a"), graph.New},
	} {
		if got := s.write(t, store, c.body)[0].Outcome; got != c.want {
			t.Errorf("delivery %d: outcome %s, want %s", i+1, got, c.want)
		}
	}
	stats, err := store.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[graph.Outcome]int64{graph.New: 2, graph.Retry: 2, graph.Equivalent: 2, graph.Redescribed: 1, graph.Collision: 1}
	for outcome, n := range want {
		if stats.Deliveries[outcome] != n {
			t.Errorf("%d deliveries counted as %s, want %d", stats.Deliveries[outcome], outcome, n)
		}
	}
	if stats.Events != 2 {
		t.Errorf("%d events, want 2", stats.Events)
	}
}

func (s *suite) results(t *testing.T) {
	store := s.open(t)
	first := s.write(t, store, run("j", "r1", "START", 1, nominal))[0]
	second := s.write(t, store, run("j", "r2", "START", 2, nominal))[0]
	if first.Run.IsZero() || first.Run != second.Run {
		t.Errorf("two tries of one slot are runs %s and %s, want one", first.Run, second.Run)
	}
	if first.Attempt == second.Attempt {
		t.Error("two tries of one slot are one attempt")
	}
	if !second.FirstSeen.Equal(received) || second.FirstEventTime.String() != "2026-11-30T00:00:01Z" {
		t.Errorf("the event was first seen %s with event time %s", second.FirstSeen, second.FirstEventTime)
	}
	r, err := store.Run(t.Context(), first.Run)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Members) != 2 || r.Members[0].Key != second.Attempt {
		t.Errorf("run %s has %d attempts, newest %s; want 2, newest %s", r.ID, len(r.Members), r.Members[0].Key, second.Attempt)
	}
}

// streams is how many random streams a driver is held to.
func streams() int {
	if testing.Short() {
		return 20
	}
	return 150
}

func (s *suite) randomStreams(t *testing.T) {
	for seed := range streams() {
		rng := rand.New(rand.NewPCG(uint64(seed), 0))
		bodies := lineagetest.Stream(rng, 40)
		sent := slices.Clone(bodies)
		sent = append(sent, bodies[:rng.IntN(len(bodies)+1)]...)
		rng.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
		store := s.open(t)
		for len(sent) > 0 {
			n := 1 + rng.IntN(len(sent))
			s.write(t, store, sent[:n]...)
			sent = sent[n:]
		}
		equal(t, snapshot(t, store), s.fold(t, bodies))
		if t.Failed() {
			t.Fatalf("stream %d", seed)
		}
	}
}

func (s *suite) recordedStreams(t *testing.T) {
	for _, stream := range sharedtest.RecordedStreams(t) {
		var bodies [][]byte
		for _, d := range stream.Deliveries {
			bodies = append(bodies, d.Body)
		}
		store := s.open(t)
		s.write(t, store, bodies...)
		equal(t, snapshot(t, store), s.fold(t, bodies))
	}
}

func (s *suite) concurrentWriters(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 0))
	var bodies [][]byte
	for range 10 {
		bodies = append(bodies, lineagetest.Stream(rng, 40)...)
	}
	deliveries := s.deliver(t, bodies...)
	store := s.open(t)
	const writers = 8
	outcomes := make([]map[graph.Outcome]int, writers)
	var wg sync.WaitGroup
	for w := range writers {
		mine := slices.Clone(deliveries)
		rng.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		outcomes[w] = map[graph.Outcome]int{}
		wg.Go(func() {
			for len(mine) > 0 {
				n := min(7, len(mine))
				results, err := store.Write(context.Background(), mine[:n])
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				for _, r := range results {
					outcomes[w][r.Outcome]++
				}
				mine = mine[n:]
			}
		})
	}
	wg.Wait()
	equal(t, snapshot(t, store), s.fold(t, bodies))
	events, distinct := map[fact.ID]bool{}, map[fact.ID]bool{}
	for _, d := range deliveries {
		events[d.Event.ID], distinct[d.Event.Body] = true, true
	}
	total := map[graph.Outcome]int{}
	for _, o := range outcomes {
		for outcome, n := range o {
			total[outcome] += n
		}
	}
	if total[graph.New] != len(events) {
		t.Errorf("%d deliveries were new, want one for each of %d events", total[graph.New], len(events))
	}
	if got, want := total[graph.Retry], writers*len(deliveries)-len(distinct); got != want {
		t.Errorf("%d deliveries were retries, want %d", got, want)
	}
}

func (s *suite) oneEventManyWriters(t *testing.T) {
	store := s.open(t)
	delivery := s.deliver(t, run("j", "r", "START", 1, ""))
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[graph.Outcome]int{}
	for range 16 {
		wg.Go(func() {
			for range 20 {
				results, err := store.Write(context.Background(), delivery)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				outcomes[results[0].Outcome]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if outcomes[graph.New] != 1 || outcomes[graph.Retry] != 319 {
		t.Errorf("outcomes %v, want 1 new and 319 retry", outcomes)
	}
}

func (s *suite) readsWhileWriting(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	var bodies [][]byte
	for range 10 {
		bodies = append(bodies, lineagetest.Stream(rng, 40)...)
	}
	deliveries := s.deliver(t, bodies...)
	store := s.open(t)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { s.readAll(t, store, done) })
	}
	for i := range deliveries {
		if _, err := store.Write(t.Context(), deliveries[i:i+1]); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
	equal(t, snapshot(t, store), s.fold(t, bodies))
}

// readAll reads everything there is until done. Whatever the moment, an answer
// holds together: its edges end at its nodes.
func (s *suite) readAll(t *testing.T, store graph.Store, done <-chan struct{}) {
	ctx := context.Background()
	for {
		select {
		case <-done:
			return
		default:
		}
		page, err := store.Datasets(ctx, graph.EntityQuery{Paging: graph.Paging{Limit: 5}})
		if err != nil {
			t.Error(err)
			return
		}
		for _, d := range page.Items {
			a, err := store.Lineage(ctx, graph.LineageQuery{
				Root: graph.Root{Dataset: d.ID}, Walk: lineage.Walk{Direction: lineage.Both, Depth: 5, MaxNodes: 100},
			})
			if err != nil {
				t.Error(err)
				return
			}
			if err := closedUnderEdges(a.Reached); err != nil {
				t.Error(err)
				return
			}
			if _, err := store.Dataset(ctx, d.ID); err != nil {
				t.Error(err)
			}
		}
		runs, err := store.Runs(ctx, graph.RunQuery{Paging: graph.Paging{Limit: 3}})
		if err != nil {
			t.Error(err)
			return
		}
		for _, r := range runs.Items {
			if _, err := store.Run(ctx, r.ID); err != nil && !errors.Is(err, graph.ErrNotFound) {
				t.Error(err)
			}
		}
		if _, err := store.Events(ctx, graph.EventQuery{Paging: graph.Paging{Limit: 3}}); err != nil {
			t.Error(err)
		}
	}
}

func closedUnderEdges(r *lineage.Reached) error {
	datasets, derivations := map[fact.ID]bool{}, map[fact.ID]bool{}
	for _, n := range r.Datasets {
		datasets[n.ID] = true
	}
	for _, d := range r.Derivations {
		derivations[d.ID] = true
	}
	for _, e := range r.Edges {
		if !datasets[e.Dataset] || !derivations[e.Derivation] {
			return fmt.Errorf("an edge between dataset %s and derivation %s leaves the answer", e.Dataset, e.Derivation)
		}
	}
	return nil
}
