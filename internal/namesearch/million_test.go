package namesearch

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
)

var (
	subjects = []string{"orders", "customers", "payments", "clickstream", "inventory", "shipments", "returns", "sessions", "invoices", "products", "prices", "refunds", "leads", "accounts", "ledger", "devices", "events", "campaigns", "tickets", "subscriptions"}
	layers   = []string{"raw", "staging", "intermediate", "marts", "reporting", "snapshot", "archive", "quality"}
	suffixes = []string{"daily", "hourly", "tmp", "v2", "agg", "dim", "fact", "backfill", "delta", "export"}
	places   = []string{"s3://analytics-lake", "postgres://warehouse.internal:5432", "snowflake://acme-eu", "bigquery", "kafka://events.internal:9092", "airflow-prod", "airflow-staging", "dbt-cloud"}
)

// catalogued is the nth name of a large catalogue: words that recur, numbers,
// one name in eight in capitals and one in sixteen with a random key in it.
func catalogued(r *rand.Rand, n int) Entry {
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	subject := pick(subjects)
	name := fmt.Sprintf("warehouse/%s/%s_%s/%s_%s_%s_%07d", pick(layers), subject, pick(subjects), subject, pick(layers), pick(suffixes), n)
	switch n % 16 {
	case 0, 1:
		name = fmt.Sprintf("ANALYTICS.%s_DB.PUBLIC.FCT_%d_AND_SOME_MORE_OF_A_LONGER_NAME", "SALES", n)
	case 2:
		name = fmt.Sprintf("warehouse/exports/%s/%016x%08x", subject, r.Uint64(), r.Uint32())
	}
	kind := fact.DatasetEntity
	if n%5 == 0 {
		kind = fact.JobEntity
	}
	return entry(kind, pick(places), name)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMillion fills an index with a million names and asks it:
//
//	go test -run '^$' -bench Million -benchtime 1x ./internal/namesearch
//
// Random names, in letters of either case, share no trigrams: the most memory
// that names of this length take.
func BenchmarkMillion(b *testing.B) {
	b.Run("catalogued", func(b *testing.B) { million(b, catalogued) })
	b.Run("random", func(b *testing.B) {
		million(b, func(r *rand.Rand, n int) Entry {
			e, name := catalogued(r, n), make([]byte, 60)
			for i := range name {
				name[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"[r.IntN(64)]
			}
			e.Name.Name = string(name)
			return e
		})
	})
}

func million(b *testing.B, name func(r *rand.Rand, n int) Entry) {
	const million = 1_000_000
	r := rand.New(rand.NewPCG(1, 1))
	entries, length := make([]Entry, million), 0
	for i := range entries {
		entries[i] = name(r, i)
		length += len(entries[i].Name.Name)
	}
	for b.Loop() {
		before, began := heap(), time.Now()
		x := New()
		for _, e := range entries {
			x.Add(e)
		}
		b.ReportMetric(time.Since(began).Seconds(), "build-s")
		b.ReportMetric(float64(heap()-before)/million, "heap-B/name")
		b.ReportMetric(float64(length)/million, "B/name")
		ask(b, x, "rare", func(n int) string { return entries[n*997].Name.Name[40:] })
		ask(b, x, "common", func(n int) string { return subjects[n%20][1:] })
		ask(b, x, "prefix", func(n int) string { return "warehouse/" + layers[n%8] + "/" + subjects[n%20] })
		ask(b, x, "short", func(n int) string { return subjects[n%20][:1+n%2] })
		ask(b, x, "words", func(n int) string { return "snowflake " + subjects[n%20] + " " + suffixes[n%10] })
		ask(b, x, "namespace", func(n int) string { return places[n%8][:6] })
		ask(b, x, "none", func(n int) string { return fmt.Sprintf("zebra%d", n) })
		// Each word is in most blocks, no name has both.
		ask(b, x, "apart", func(n int) string { return "analytics. " + subjects[n%20] })
		runtime.KeepAlive(x)
	}
	runtime.KeepAlive(entries)
}

// ask reports the median and the 99th percentile of some queries.
func ask(b *testing.B, x *Index, name string, text func(n int) string) {
	var took []time.Duration
	for n := range 100 {
		began := time.Now()
		x.Search(Query{Text: text(n), Limit: 20})
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[50].Microseconds()), name+"-p50-µs")
	b.ReportMetric(float64(took[99].Microseconds()), name+"-p99-µs")
}
