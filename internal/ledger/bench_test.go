package ledger

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
)

// body3k makes a body of about 3 KB such as a scheduler sends: a few hundred
// jobs, each run with its own ID, times and dataset names.
func body3k(n uint64) []byte {
	r := rand.New(rand.NewPCG(n%300, 5)) // what is the job's
	var b strings.Builder
	b.Grow(3300)
	run := digest("run", n).String()
	fmt.Fprintf(&b, `{"eventTime":"2025-03-%02dT%02d:%02d:%02d.%06d+00:00","eventType":"COMPLETE","job":{"facets":{"jobType":{"_producer":"https://github.com/apache/airflow/tree/providers-openlineage/2.7.0","_schemaURL":"https://openlineage.io/spec/facets/2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet","integration":"AIRFLOW","jobType":"TASK","processingType":"BATCH"}},"name":"dag_%x.task_%x","namespace":"prod"},"outputs":[`,
		1+n/86400%28, n/3600%24, n/60%60, n%60, r.IntN(1e6), r.Uint32(), r.Uint32())
	for o := range 2 {
		fmt.Fprintf(&b, `{"facets":{"schema":{"_producer":"https://github.com/apache/airflow/tree/providers-openlineage/2.7.0","_schemaURL":"https://openlineage.io/spec/facets/1-1-1/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet","fields":[`)
		for f := range 12 {
			fmt.Fprintf(&b, `{"name":"column_%x","type":"VARCHAR"},`, r.Uint32()>>uint(f))
		}
		fmt.Fprintf(&b, `{"name":"id","type":"INTEGER"}]}},"name":"warehouse.schema_%x.table_%x","namespace":"postgres://db-%d:5432"},`, r.Uint32()>>20, r.Uint32(), o)
	}
	fmt.Fprintf(&b, `{}],"producer":"https://github.com/apache/airflow/tree/providers-openlineage/2.7.0","run":{"facets":{"nominalTime":{"nominalStartTime":"2025-03-%02dT%02d:00:00+00:00"},"parent":{"job":{"name":"dag_%x","namespace":"prod"},"run":{"runId":"%s"}},"airflow":{"taskInstance":{"try_number":1,"duration":%d.%d,"log_url":"http://airflow/dags/dag/runs/%s"}}},"runId":"%s"},"schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"}`,
		1+n/86400%28, n/3600%24, r.Uint32(), run[:32], n%1000, n%997, run[8:20], run[:36])
	return []byte(b.String())
}

func benchEntry(n uint64) Entry {
	e := fresh(n)
	e.Content, e.Drift = digest("content", n%300), digest("drift", n%700)
	e.Payload = body3k(n)
	e.Raw = DigestRaw(e.Payload)
	return e
}

func benchOptions() Options { return Options{DiskReserve: -1, Now: func() time.Time { return epoch }} }

// Durable new events, from so many callers at once, one each. The bodies are
// made before.
func BenchmarkAccept(b *testing.B) {
	bodies := make([]Entry, 4096)
	for i := range bodies {
		bodies[i] = benchEntry(uint64(i))
	}
	for _, callers := range []int{1, 16, 128, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l := open(b, b.TempDir(), benchOptions())
			for n := range uint64(400) { // past learning
				accept(b, l, benchEntry(1<<40+n))
			}
			before, groups := l.db.Metrics(), l.tally.groups.Load()
			var next atomic.Uint64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for n := next.Add(1); n <= uint64(b.N); n = next.Add(1) {
						e, key := bodies[n%uint64(len(bodies))], keyEntry(n)
						e.Event, e.Body = key.Event, key.Body
						copy(e.Raw[:], key.Body[:])
						if _, err := l.Accept(b.Context(), []Entry{e}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			after := l.db.Metrics()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(b.N)/float64(l.tally.groups.Load()-groups), "events/group")
			b.ReportMetric(float64(after.WAL.BytesWritten-before.WAL.BytesWritten)/float64(b.N), "walB/event")
			was, is := before.Total(), after.Total()
			b.ReportMetric(float64(is.TableBytesFlushed+is.TableBytesCompacted-was.TableBytesFlushed-was.TableBytesCompacted)/float64(b.N), "tableB/event")
		})
	}
}

// Retries of bodies received not long ago.
func BenchmarkRetries(b *testing.B) {
	l := open(b, b.TempDir(), benchOptions())
	const known = 20_000
	entries := make([]Entry, known)
	for i := range entries {
		entries[i] = benchEntry(uint64(i))
	}
	for i := 0; i < known; i += 500 {
		accept(b, l, entries[i:i+500]...)
	}
	waitForFilters(b, l)
	var missed atomic.Int64
	b.Run("Accept", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for pb.Next() {
				i := r.IntN(known)
				if v, err := l.Accept(b.Context(), entries[i:i+1]); err != nil || v[0].Outcome != fact.Retry {
					b.Fatalf("%+v, %v", v, err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "retries/s")
	})
	b.Run("SeenRaw", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for pb.Next() {
				if _, ok := l.SeenRaw(entries[r.IntN(known)].Raw); !ok {
					missed.Add(1)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "retries/s")
	})
	b.Run("SeenRawWithDigest", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewPCG(rand.Uint64(), 1))
			for pb.Next() {
				if _, ok := l.SeenRaw(DigestRaw(entries[r.IntN(known)].Payload)); !ok {
					missed.Add(1)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "retries/s")
	})
	b.Logf("SeenRaw did not know %d", missed.Load())
}

// What a call costs that the writer must decide, without the disk's part.
func BenchmarkDecide(b *testing.B) {
	l := open(b, b.TempDir(), benchOptions())
	accept(b, l, benchEntry(1<<40))
	entries := make([]Entry, 512)
	for i := range entries {
		entries[i] = benchEntry(uint64(i))
	}
	b.Run("prepare", func(b *testing.B) {
		for i := range b.N {
			if _, err := l.prepare(entries[i%512 : i%512+1]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("group", func(b *testing.B) {
		for i := 0; i < b.N; i += len(entries) {
			b.StopTimer()
			c, err := l.prepare(entries)
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			g := l.newGroup()
			if err := g.take(c); err != nil {
				b.Fatal(err)
			}
			change := g.window.change(g.added, g.bodies, g.events)
			if err := change.write(g.batch); err != nil {
				b.Fatal(err)
			}
			g.close()
		}
	})
}

const fillDir = "GRAPHD_TEST_LEDGER_FILL_DIR"

// stallFS does not let tables be written any more once stalled is set.
type stallFS struct {
	vfs.FS
	stalled atomic.Bool
}

func (f *stallFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") && f.stalled.Load() {
		select {}
	}
	return f.FS.Create(name, c)
}

// fillUntilKilled leaves write-ahead logs behind that are as full as they get:
// nothing is flushed, until no memtable takes anything.
func fillUntilKilled(dir string) error {
	fs := &stallFS{FS: vfs.Default}
	l, err := Open(dir, Options{DiskReserve: -1, FS: fs, Now: func() time.Time { return epoch }})
	if err != nil {
		return err
	}
	batch := make([]Entry, 128)
	for n := uint64(0); ; {
		for i := range batch {
			batch[i] = benchEntry(n)
			n++
		}
		fs.stalled.Store(n > 60_000)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err := l.Accept(ctx, batch)
		cancel()
		if err != nil {
			fmt.Printf("%d bodies, %v\n", n, err)
			time.Sleep(time.Hour) // to be killed
		}
	}
}

// Opening after kill -9.
func BenchmarkOpenAfterKill(b *testing.B) {
	for range b.N {
		b.StopTimer()
		dir := b.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), fillDir+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			b.Fatal(err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
		size := int64(0)
		for _, name := range logs {
			if info, err := os.Stat(name); err == nil {
				size += info.Size()
			}
		}
		b.Logf("%d logs of %d MB in all; %s", len(logs), size>>20, strings.TrimSpace(line))
		runtime.GC()
		b.StartTimer()
		l, err := Open(dir, Options{DiskReserve: -1})
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// The reader of the log.
func BenchmarkRead(b *testing.B) {
	l := open(b, b.TempDir(), benchOptions())
	batch := make([]Entry, 500)
	for at := uint64(0); at < 20_000; at += 500 {
		for i := range batch {
			batch[i] = benchEntry(at + uint64(i))
		}
		accept(b, l, batch...)
	}
	if err := l.db.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for n := 0; n < b.N; {
		for r, err := range l.Read(1, b.N-n) {
			if err != nil || len(r.Payload) < 1000 {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
