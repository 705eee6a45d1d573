package ledger

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
)

// What a group of so many new events writes beside payloads.
func BenchmarkRows(b *testing.B) {
	for _, entries := range []int{1, 3, 64} {
		b.Run(fmt.Sprintf("group=%d", entries), func(b *testing.B) {
			o := benchOptions()
			o.FS = vfs.NewMem() // the bytes are the same
			l := open(b, "ledger", o)
			accept(b, l, benchEntry(1<<40))
			rows, bytes, events := l.tally.rows.Load(), l.tally.rowBytes.Load(), uint64(0)
			group := make([]Entry, entries)
			for b.Loop() {
				for range 192 * 8 / entries {
					for i := range group {
						group[i] = benchEntry(events)
						events++
					}
					accept(b, l, group...)
				}
			}
			b.ReportMetric(float64(l.tally.rows.Load()-rows)/float64(events), "rows/event")
			// Log records are not counted as rows; what stands before their payloads is.
			b.ReportMetric(float64(l.tally.rowBytes.Load()-bytes)/float64(events), "rowB/event")
		})
	}
}

// benchKeys is how many keys the window holds: GRAPHD_LEDGER_KEYS, a million by
// default.
func benchKeys(b *testing.B) int {
	if text := os.Getenv("GRAPHD_LEDGER_KEYS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	return 1_000_000
}

// keyEntry is an entry that is cheap to make and to keep.
func keyEntry(n uint64) Entry {
	var e Entry
	r := rand.New(rand.NewPCG(n, 77))
	for _, id := range []*fact.ID{&e.Event, &e.Body} {
		for i := 0; i < len(id); i += 8 {
			binary.LittleEndian.PutUint64(id[i:], r.Uint64())
		}
	}
	e.Content, e.Drift = digest("content", n%300), digest("drift", n%700)
	e.EventTime, e.Received = fresh(0).EventTime, epoch.Add(time.Duration(n)*time.Millisecond)
	return e
}

// BenchmarkWindow fills a window that holds exactly its keys, so that it has all
// its generations, and looks up in it.
func BenchmarkWindow(b *testing.B) {
	keys := benchKeys(b)
	o := benchOptions()
	o.WindowBytes = int64(keys) * 56 * 17 / 16
	o.FilterBytes = 1 << 30
	l := open(b, b.TempDir(), o)
	batch := make([]Entry, 1000)
	fill := func(from, to int) {
		for at := from; at < to; at += len(batch) {
			for i := range batch {
				batch[i] = keyEntry(uint64(at + i))
			}
			accept(b, l, batch...)
		}
	}
	began := time.Now()
	fill(0, keys/2)
	b.Logf("%d events in %v", keys/2, time.Since(began).Round(time.Millisecond))
	if err := l.db.Compact(b.Context(), []byte{0}, []byte{0xff}, true); err != nil {
		b.Fatal(err)
	}
	waitForFilters(b, l)
	s := l.window.stats()
	disk, err := l.db.EstimateDiskUsage([]byte{windowFamily}, []byte{windowFamily + 1})
	if err != nil {
		b.Fatal(err)
	}
	size := func(b *testing.B) {
		b.ReportMetric(float64(disk)/float64(s.Keys), "diskB/key")
		b.ReportMetric(float64(s.Bytes)/float64(s.Keys), "rowB/key")
		b.ReportMetric(float64(s.FilterBytes)/float64(s.Keys), "filterB/key")
		b.ReportMetric(float64(s.Generations), "generations")
	}
	look := func(b *testing.B, from uint64, n int, want bool) {
		r := rand.New(rand.NewPCG(1, 1))
		ids := make([]fact.ID, 100_000)
		for i := range ids {
			ids[i] = keyEntry(from + r.Uint64N(uint64(n))).Body
		}
		rd := l.window.reader()
		defer rd.close()
		b.ResetTimer()
		for i := range b.N {
			if _, ok, err := rd.body(&ids[i%len(ids)]); err != nil || ok != want {
				b.Fatal(ok, err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
	}
	b.Run("hit", func(b *testing.B) { look(b, 0, keys/2, true); size(b) })
	b.Run("miss", func(b *testing.B) { look(b, 1<<50, 1<<40, false) })
	filters := map[*generation]*filter{}
	for _, g := range *l.window.generations.Load() {
		filters[g] = g.filter.Swap(nil)
	}
	b.Run("hitWithoutFilters", func(b *testing.B) { look(b, 0, keys/2, true) })
	b.Run("missWithoutFilters", func(b *testing.B) { look(b, 1<<50, 1<<40, false) })
	for g, f := range filters {
		g.filter.Store(f)
	}
	b.Run("fillFilters", func(b *testing.B) {
		for range b.N {
			for _, g := range *l.window.generations.Load() {
				if _, err := l.window.fill(newFilter(g.keys.Load()), g, nil); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(s.Keys)*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
	})
	b.Run("age", func(b *testing.B) {
		at := keys
		var slowest time.Duration
		dropped := 0
		for range b.N {
			oldest := l.window.stats().Oldest
			began := time.Now()
			fill(at, at+len(batch))
			at += len(batch)
			if took := time.Since(began); l.window.stats().Oldest != oldest {
				dropped++
				slowest = max(slowest, took)
			}
		}
		b.ReportMetric(float64(dropped), "dropped")
		b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-ms")
	})
}
