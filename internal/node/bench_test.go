package node_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/node"
)

// BenchmarkAccept takes events of 3 KB in, 100 at a time, until the graph on disk
// has settled, and reports what one writes beside its payload.
func BenchmarkAccept(b *testing.B) {
	n, err := node.Open(node.Options{Store: node.Embedded, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	const at = 100
	for i := 0; b.Loop(); i += at {
		bodies := make([][]byte, at)
		for j := range bodies {
			bodies[j] = lineagetest.LoadEvent(i + j)
		}
		if _, err := n.Pipeline.AcceptAll(ctx, bodies, 0); err != nil {
			b.Fatal(err)
		}
	}
	if err := n.Graph.Settled(ctx); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	stats, err := n.Store.Stats(ctx)
	if err != nil {
		b.Fatal(err)
	}
	events := float64(b.N * at)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/events/1000, "µs/event")
	b.ReportMetric(float64(stats.Rows)/events, "rows/event")
	b.ReportMetric(float64(stats.RowBytes)/events, "bytes/event")
	end, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := n.Close(end); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAcceptOne takes events of 3 KB in, one a call, 32 calls at once that wait
// for the graph as a client of the HTTP API does.
func BenchmarkAcceptOne(b *testing.B) {
	n, err := node.Open(node.Options{Store: node.Embedded, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	var next atomic.Int64
	b.SetParallelism(32 / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			body := lineagetest.LoadEvent(int(next.Add(1)) - 1)
			if _, err := n.Pipeline.Accept(ctx, body, ingest.DefaultWait); err != nil {
				b.Error(err)
			}
		}
	})
	b.StopTimer()
	end, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := n.Close(end); err != nil {
		b.Fatal(err)
	}
}
