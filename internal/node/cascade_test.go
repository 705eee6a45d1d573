package node_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/node"
	"github.com/graphd/graphd/internal/openlineage"
)

// longest is the greatest of some durations.
type longest struct{ ns atomic.Int64 }

func (l *longest) since(start time.Time) {
	for took := int64(time.Since(start)); ; {
		old := l.ns.Load()
		if took <= old || l.ns.CompareAndSwap(old, took) {
			return
		}
	}
}

func (l *longest) get() time.Duration { return time.Duration(l.ns.Load()) }

// timedStore measures a store's transactions.
type timedStore struct {
	graph.Store
	write, settle *longest
	settles       *atomic.Int64
}

func (s *timedStore) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	defer s.write.since(time.Now())
	return s.Store.Write(ctx, b)
}

func (s *timedStore) Settle(ctx context.Context) (bool, error) {
	defer s.settle.since(time.Now())
	s.settles.Add(1)
	return s.Store.Settle(ctx)
}

var cascadeStart = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

// child is the nth child of a parent: a Dagster step, whose logical run is its place
// under the parent's. Some have lineage.
func child(n int) []byte {
	e := lineagetest.Event{
		Type: openlineage.Start, Time: cascadeStart.Add(time.Minute), Producer: lineagetest.DagsterProducer,
		Job: lineagetest.Job(fmt.Sprint("step", n)), Run: fmt.Sprint("s", n),
		RunFacets: lineagetest.Object{"parent": lineagetest.Parent(lineagetest.Job("P"), "p")},
	}
	if n%20 == 0 {
		e.Type = openlineage.Complete
		e.Inputs = []lineagetest.Dataset{{Name: lineagetest.Table(fmt.Sprint("in", n/20%50))}}
		e.Outputs = []lineagetest.Dataset{{Name: lineagetest.Table(fmt.Sprint("out", n/20%50))}}
	}
	return e.Body()
}

func parent(t openlineage.EventType, at time.Time, facets lineagetest.Object) []byte {
	e := lineagetest.Event{Type: t, Time: at, Job: lineagetest.Job("P"), Run: "p", RunFacets: facets}
	return e.Body()
}

// A parent with very many children changes its slot, and all of them their runs.
// Meanwhile no transaction takes long, events are acknowledged and visible at once,
// and reads hold together and say that something is settling, until nothing is.
func TestAParentWithManyChildrenMoves(t *testing.T) {
	children := rounds(100_000, 5_000, 5_000)
	var write, settle longest
	var settles atomic.Int64
	n, err := node.Open(node.Options{Store: node.Embedded, Dir: t.TempDir(), Decoder: decoder(), Wrap: func(s graph.Store) graph.Store {
		return &timedStore{s, &write, &settle, &settles}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*alive)
	defer cancel()
	defer func() {
		if err := n.Close(ended()); err != nil {
			t.Error(err)
		}
	}()
	began := time.Now()
	first := parent(openlineage.Start, cascadeStart, nil)
	if _, err := n.Pipeline.Accept(ctx, first, 0); err != nil {
		t.Fatal(err)
	}
	const at = 500
	var senders sync.WaitGroup
	for i := range 2 {
		senders.Go(func() {
			for from := i * at; from < children; from += 2 * at {
				bodies := make([][]byte, at)
				for j := range bodies {
					bodies[j] = child(from + j)
				}
				if _, err := n.Pipeline.AcceptAll(ctx, bodies, 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	if err := settled(ctx, n); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d children: %s; the longest Write took %s, the longest Settle %s", children, time.Since(began), write.get(), settle.get())

	began = time.Now()
	settlesBefore := settles.Load()
	moved := parent(openlineage.Complete, cascadeStart.Add(time.Hour), lineagetest.Object{"nominalTime": lineagetest.NominalTime("2026-11-01T00:00:00Z")})
	if _, err := n.Pipeline.Accept(ctx, moved, alive); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	var took time.Duration
	go func() { err := settled(ctx, n); took = time.Since(began); done <- err }()
	c := cascade{n: n}
	for len(done) == 0 && !t.Failed() {
		c.step(ctx, t)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Logf("the cascade took %s in %d transactions, the longest Write %s, the longest Settle %s; meanwhile %d events were acknowledged, %d of them settled while others settled, the longest wait for one %s; %d reads, %d while something settled, the longest %s",
		took, settles.Load()-settlesBefore, write.get(), settle.get(), c.sent, c.ahead, c.accept.get(), c.reads, c.settling, c.read.get())
	if slow := max(write.get(), settle.get()); slow > 5*time.Second {
		t.Errorf("a transaction took %s", slow)
	}
	if c.ahead == 0 || c.settling == 0 {
		t.Errorf("of %d events %d were settled while others settled, and %d of %d reads say that something settles", c.sent, c.ahead, c.settling, c.reads)
	}
	a, err := n.Store.Lineage(ctx, c.query())
	if err != nil || a.Settling != 0 {
		t.Errorf("at the end %+v, %v", a, err)
	}
	c.checkChildren(ctx, t, children, first, moved)
}

// cascade is what goes on while children move.
type cascade struct {
	n                            *node.Node
	sent, ahead, reads, settling int
	accept, read                 longest
}

// step sends an event of which nobody has heard, and reads.
func (c *cascade) step(ctx context.Context, t *testing.T) {
	e := lineagetest.Event{
		Type: openlineage.Complete, Time: cascadeStart.Add(time.Duration(c.sent) * time.Second), Job: lineagetest.Job(fmt.Sprint("fresh", c.sent)), Run: fmt.Sprint("fresh", c.sent),
		Inputs: []lineagetest.Dataset{{Name: lineagetest.Table("out7")}}, Outputs: []lineagetest.Dataset{{Name: lineagetest.Table(fmt.Sprint("fresh", c.sent))}},
	}
	c.sent++
	start := time.Now()
	receipt, err := c.n.Pipeline.Accept(ctx, e.Body(), alive)
	if err != nil {
		t.Error(err)
		return
	}
	c.accept.since(start)
	if receipt.Status != ingest.InGraph {
		t.Errorf("after %s the receipt says %s", time.Since(start), receipt.Status)
	}
	start = time.Now()
	a, err := c.n.Store.Lineage(ctx, c.query())
	c.read.since(start)
	c.reads++
	if err != nil {
		t.Error(err)
		return
	}
	if err := holdsTogether(a); err != nil {
		t.Error(err)
	}
	if a.Settling > 0 {
		c.settling++
		c.ahead++ // the event was there before this was read
	}
	start = time.Now()
	_, dataset := c.n.Store.Dataset(ctx, fact.DatasetKey(lineagetest.Table("out8")))
	runs, err := c.n.Store.Runs(ctx, graph.RunQuery{Paging: graph.Paging{Limit: 20}})
	c.read.since(start)
	c.reads += 2
	if err := errors.Join(dataset, err); err != nil || len(runs.Items) != 20 {
		t.Errorf("%d runs, %v", len(runs.Items), err)
	}
	if len(a.Datasets) < 2 || len(a.Derivations) == 0 {
		t.Errorf("the walk has %d datasets and %d derivations: what was current is gone", len(a.Datasets), len(a.Derivations))
	}
}

// query walks up from a dataset that some children write.
func (c *cascade) query() graph.LineageQuery {
	return graph.LineageQuery{
		Root: graph.Root{Dataset: fact.DatasetKey(lineagetest.Table("out7"))},
		Walk: lineage.Walk{Direction: lineage.Up, Depth: 5, MaxNodes: 500},
	}
}

// holdsTogether reports an edge of an answer that leads out of it.
func holdsTogether(a *graph.Lineage) error {
	datasets, derivations := map[fact.ID]bool{}, map[fact.ID]bool{}
	for _, d := range a.Datasets {
		datasets[d.ID] = true
	}
	for _, d := range a.Derivations {
		derivations[d.ID] = true
	}
	for _, e := range a.Edges {
		if !datasets[e.Dataset] || !derivations[e.Derivation] {
			return fmt.Errorf("an edge between dataset %s and derivation %s leaves the answer", e.Dataset, e.Derivation)
		}
	}
	return nil
}

// checkChildren compares the runs of some children with those that Fold gives: a
// child's is a function of its own events and its parent's.
func (c *cascade) checkChildren(ctx context.Context, t *testing.T, children int, parents ...[]byte) {
	t.Helper()
	const sample = 500
	bodies := parents
	for i := range sample {
		bodies = append(bodies, child(i*children/sample))
	}
	w := newTraffic(bodies)
	var attempts []fact.Attempt
	var want []lineage.RunID
	for _, a := range lineage.Fold(w.version, w.events).Attempts {
		attempts, want = append(attempts, a.Attempt), append(want, a.Run)
	}
	got, err := c.n.Store.Standings(ctx, attempts)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range got {
		if !s.Settled || s.Run != want[i] {
			t.Fatalf("%v stands as %+v, want run %s", attempts[i], s, want[i])
		}
	}
}
