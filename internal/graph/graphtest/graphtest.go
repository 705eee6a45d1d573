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
	// Open returns an empty store for events of an identity version, closed when the
	// test ends. The bodies of its log are in archive.
	Open func(t *testing.T, version string, archive graph.Archive) graph.Store
	// Crash returns what is left of a store after a crash at this moment, as somebody
	// finds it who opens it again; it may be called while the store is in use. Nil for
	// a driver that keeps nothing.
	Crash func(t *testing.T, s graph.Store) graph.Store
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
		{"standings name runs", s.standings},
		{"random streams equal Fold", s.randomStreams},
		{"recorded streams equal Fold", s.recordedStreams},
		{"wide jobs equal Fold", s.wide},
		{"crashes", s.crashes},
		{"concurrent writers", s.concurrentWriters},
		{"one event from many writers", s.oneEventManyWriters},
		{"reads while writing", s.readsWhileWriting},
		{"positions", s.positions},
		{"errors", s.errors},
		{"listings page", s.listings},
		{"search", s.search},
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

// store is a store under test with the log that feeds it.
type store struct {
	graph.Store
	log *log
}

func (s *suite) open(t *testing.T) *store {
	t.Helper()
	l := &log{}
	return &store{s.Open(t, s.decoder.Version(), l), l}
}

// log is the bodies that a store is given, in their order: its archive.
type log struct {
	mu     sync.Mutex
	bodies []graph.LoggedEvent
}

const logName = "the log"

// append adds events to the log.
func (l *log) append(events ...graph.LoggedEvent) (batch graph.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch.Log = logName
	for _, e := range events {
		e.Sequence = uint64(len(l.bodies)) + 1
		e.Received, e.Outcome = received, graph.New
		l.bodies = append(l.bodies, e)
		batch.Through = e.Sequence
		batch.Deliveries = append(batch.Deliveries, graph.Delivery{Sequence: e.Sequence, Event: e.Event})
	}
	return batch
}

// from returns the log behind a position.
func (l *log) from(position uint64) (batch graph.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch = graph.Batch{Log: logName, Through: uint64(len(l.bodies))}
	for _, e := range l.bodies[min(position, batch.Through):] {
		batch.Deliveries = append(batch.Deliveries, graph.Delivery{Sequence: e.Sequence, Event: e.Event})
	}
	return batch
}

// Event implements graph.Archive.
func (l *log) Event(sequence uint64) (graph.LoggedEvent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sequence == 0 || sequence > uint64(len(l.bodies)) {
		return graph.LoggedEvent{}, fmt.Errorf("%w: the log has no record %d", graph.ErrCorrupt, sequence)
	}
	return l.bodies[sequence-1], nil
}

// decode returns the events of bodies.
func (s *suite) decode(t *testing.T, bodies ...[]byte) (out []graph.LoggedEvent) {
	t.Helper()
	for _, b := range bodies {
		e, err := s.decoder.Decode(b)
		if err != nil {
			t.Fatalf("decoding %s: %v", b, err)
		}
		out = append(out, graph.LoggedEvent{Event: e, Payload: b})
	}
	return out
}

// write writes bodies, settles all that follows and returns what their attempts
// are settled as.
func (s *suite) write(t *testing.T, store *store, bodies ...[]byte) []graph.Standing {
	t.Helper()
	events := s.decode(t, bodies...)
	written, err := store.Write(t.Context(), store.log.append(events...))
	if err != nil {
		t.Fatalf("writing: %v", err)
	}
	settle(t, store)
	var attempts []fact.Attempt
	for _, e := range events {
		attempts = append(attempts, e.Attempt)
	}
	standings, err := store.Standings(t.Context(), attempts)
	if err != nil {
		t.Fatalf("reading standings: %v", err)
	}
	for i := range written {
		// Its run may be another one since: of a parent that the same batch told of.
		if !standings[i].Settled || written[i].Settled && standings[i].Attempt != written[i].Attempt {
			t.Errorf("Write said that event %d stands as %v, then it stood as %v", i, written[i], standings[i])
		}
	}
	return standings
}

func settle(t *testing.T, store graph.Store) {
	t.Helper()
	for range 100_000 {
		more, err := store.Settle(t.Context())
		if err != nil {
			t.Fatalf("settling: %v", err)
		}
		if !more {
			return
		}
	}
	t.Fatal("settling does not end")
}

// fold returns the snapshot that the bodies must give.
func (s *suite) fold(t *testing.T, bodies [][]byte) string {
	t.Helper()
	var events []*fact.Event
	for _, e := range s.decode(t, bodies...) {
		events = append(events, e.Event)
	}
	var b bytes.Buffer
	if err := lineage.Fold(s.decoder.Version(), events).WriteSnapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func snapshot(t *testing.T, store graph.Reader) string {
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

func (s *suite) standings(t *testing.T) {
	store := s.open(t)
	first := s.write(t, store, run("j", "r1", "START", 1, nominal))[0]
	second := s.write(t, store, run("j", "r2", "START", 2, nominal))[0]
	if first.Run.IsZero() || first.Run != second.Run {
		t.Errorf("two tries of one slot are runs %s and %s, want one", first.Run, second.Run)
	}
	if first.Attempt == second.Attempt {
		t.Error("two tries of one slot are one attempt")
	}
	if !first.Settled || !second.Settled {
		t.Error("an attempt is not settled though nothing is pending")
	}
	r, err := store.Run(t.Context(), first.Run)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Members) != 2 || r.Members[0].Key != second.Attempt {
		t.Errorf("run %s has %d attempts, newest %s; want 2, newest %s", r.ID, len(r.Members), r.Members[0].Key, second.Attempt)
	}
	unknown, err := store.Standings(t.Context(), []fact.Attempt{{RunID: "nobody", Map: fact.NoMap}})
	if err != nil || len(unknown) != 1 || !unknown[0].Run.IsZero() || !unknown[0].Attempt.IsZero() {
		t.Errorf("an attempt never heard of stands as %v (%v)", unknown, err)
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

// manyBodies returns the bodies of ten random streams.
func manyBodies(seed uint64) (bodies [][]byte) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 10 {
		bodies = append(bodies, lineagetest.Stream(rng, 40)...)
	}
	return bodies
}

// concurrentWriters write the same events in different orders, each in a lane of
// its own.
func (s *suite) concurrentWriters(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 0))
	bodies := manyBodies(11)
	store := s.open(t)
	all := store.log.append(s.decode(t, bodies...)...).Deliveries
	var wg sync.WaitGroup
	for lane := range 8 {
		mine := slices.Clone(all)
		rng.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		wg.Go(func() {
			for len(mine) > 0 {
				n := min(7, len(mine))
				if _, err := store.Write(context.Background(), graph.Batch{Log: logName, Lane: lane, Deliveries: mine[:n]}); err != nil {
					t.Errorf("lane %d: %v", lane, err)
					return
				}
				mine = mine[n:]
			}
		})
	}
	wg.Wait()
	equal(t, snapshot(t, store), s.fold(t, bodies))
}

func (s *suite) oneEventManyWriters(t *testing.T) {
	store := s.open(t)
	body := run("j", "r", "START", 1, "")
	batch := store.log.append(s.decode(t, body)...)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				if _, err := store.Write(context.Background(), batch); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	equal(t, snapshot(t, store), s.fold(t, [][]byte{body}))
	stats, err := store.Stats(t.Context())
	if err != nil || stats.Events != 1 || stats.Attempts != 1 || stats.Settling != 0 {
		t.Errorf("one event written 320 times is %+v (%v)", stats, err)
	}
	events, err := store.Events(t.Context(), graph.EventQuery{Paging: graph.Paging{Limit: 10}})
	if err != nil || len(events.Items) != 1 {
		t.Errorf("%d bodies are listed (%v), want one", len(events.Items), err)
	}
}

func (s *suite) readsWhileWriting(t *testing.T) {
	bodies := manyBodies(7)
	store := s.open(t)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { s.readAll(t, store, done) })
	}
	for _, e := range s.decode(t, bodies...) {
		if _, err := store.Write(t.Context(), store.log.append(e)); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
	equal(t, snapshot(t, store), s.fold(t, bodies))
}

// readAll reads everything there is until done. Whatever the moment, an answer
// holds together: its edges end at its nodes.
func (s *suite) readAll(t *testing.T, store graph.Reader, done <-chan struct{}) {
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
