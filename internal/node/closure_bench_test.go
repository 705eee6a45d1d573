package node_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/node"
	"github.com/graphd/graphd/internal/openlineage"
)

const (
	// closureDatasets are in the graph, in trees of closureNodes, each dataset but the
	// leaves made of two others.
	closureDatasets = 100_000
	closureNodes    = 1_023
)

func treeName(tree, i int) string { return fmt.Sprintf("warehouse.tree_%03d.table_%04d", tree, i) }

// treeRun is the COMPLETE of the job that makes dataset i of a tree.
func treeRun(tree, i int) []byte {
	name := func(i int) string { return fmt.Sprintf(`{"namespace":"db","name":%q}`, treeName(tree, i)) }
	return fmt.Appendf(nil, `{"eventType":"COMPLETE","eventTime":"2026-11-01T00:00:00Z","producer":"https://example.com/p","schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",`+
		`"run":{"runId":"%08x-0000-7000-8000-%012x"},"job":{"namespace":"jobs","name":"make %s"},"inputs":[%s,%s],"outputs":[%s]}`,
		tree, i, treeName(tree, i), name(2*i+1), name(2*i+2), name(i))
}

// BenchmarkClosure reads the ancestry of a dataset, 1,023 datasets and 511
// derivations, in a graph of 100,000 datasets, with a thousand other events a second
// coming in and without.
func BenchmarkClosure(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(200)) // as graphd serve has it
	n, err := node.Open(node.Options{Store: node.Embedded, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	trees := closureDatasets / closureNodes
	var bodies [][]byte
	for tree := range trees {
		for i := range closureNodes / 2 {
			bodies = append(bodies, treeRun(tree, i))
		}
	}
	for batch := range slices.Chunk(bodies, 500) {
		if _, err := n.Pipeline.AcceptAll(ctx, batch, 0); err != nil {
			b.Fatal(err)
		}
	}
	if err := n.Graph.Settled(ctx); err != nil {
		b.Fatal(err)
	}
	walk := func(b *testing.B) {
		var times []time.Duration
		for i := 0; b.Loop(); i++ {
			begin := time.Now()
			root := fact.DatasetKey(openlineage.Name{Namespace: "db", Name: treeName(i%trees, 0)})
			a, err := n.Store.Lineage(ctx, graph.LineageQuery{
				Root: graph.Root{Dataset: root}, Walk: lineage.Walk{Direction: lineage.Up, Depth: 100, MaxNodes: 10_000},
			})
			if err != nil || len(a.Datasets) != closureNodes {
				b.Fatalf("%d datasets (%v), want %d", len(a.Datasets), err, closureNodes)
			}
			times = append(times, time.Since(begin))
		}
		slices.Sort(times)
		b.ReportMetric(times[len(times)/2].Seconds()*1000, "p50-ms")
		b.ReportMetric(times[len(times)*99/100].Seconds()*1000, "p99-ms")
	}
	b.Run("quiet", walk)
	b.Run("1000 events a second", func(b *testing.B) {
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan int)
		go func() {
			sent := 0
			defer func() { done <- sent }()
			for tick := time.Tick(20 * time.Millisecond); ctx.Err() == nil; <-tick {
				bodies := make([][]byte, 20)
				for i := range bodies {
					bodies[i] = lineagetest.LoadEvent(sent)
					sent++
				}
				if _, err := n.Pipeline.AcceptAll(ctx, bodies, 0); err != nil && ctx.Err() == nil {
					b.Error(err)
				}
			}
		}()
		begin := time.Now()
		walk(b)
		took := time.Since(begin)
		cancel()
		b.ReportMetric(float64(<-done)/took.Seconds(), "events/s")
	})
	b.Run("search", func(b *testing.B) {
		var times []time.Duration
		for i := 0; b.Loop(); i++ {
			begin := time.Now()
			found, err := n.Store.Search(ctx, graph.SearchQuery{Text: strings.ToUpper(treeName(i%trees, i%closureNodes)[10:]), Limit: 20})
			if err != nil || len(found.Hits) == 0 {
				b.Fatalf("%d hits (%v)", len(found.Hits), err)
			}
			times = append(times, time.Since(begin))
		}
		slices.Sort(times)
		b.ReportMetric(times[len(times)/2].Seconds()*1000, "p50-ms")
		b.ReportMetric(times[len(times)*99/100].Seconds()*1000, "p99-ms")
	})
	end, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := n.Close(end); err != nil {
		b.Fatal(err)
	}
}
