package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

func countsOf(t *testing.T, l *Ledger, since time.Time) (list []string) {
	t.Helper()
	counts, err := l.Counts(since)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		list = append(list, fmt.Sprintf("%s %s %s %s %d", c.Hour.Format("02T15"), c.Producer, c.Kind, c.Outcome, c.N))
	}
	return list
}

func by(producer string, at time.Time, n uint64) Entry {
	e := said(n, 0, 0, n)
	e.Producer, e.Received = producer, at
	return e
}

func TestCounts(t *testing.T) {
	hour := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	o := small()
	o.Now = func() time.Time { return hour.Add(70 * time.Minute) }
	l := open(t, t.TempDir(), o)
	accept(t, l, by("a", hour, 1), by("a", hour, 1), by("b", hour.Add(time.Minute), 2))
	accept(t, l, by("a", hour.Add(time.Hour), 1))
	if _, ok := l.SeenRaw(fresh(2).Raw); !ok { // by b, which sent it first
		t.Fatal("not seen")
	}
	dataset := by("a", hour.Add(61*time.Minute), 3)
	dataset.Kind = openlineage.DatasetEvent
	accept(t, l, dataset)
	want := []string{
		"01T12 a run new 1", "01T12 a run retry 1", "01T12 b run new 1",
		"01T13 a dataset new 1", "01T13 a run retry 1", "01T13 b run retry 1",
	}
	for i := range 3 {
		if got := countsOf(t, l, hour); !slices.Equal(got, want) {
			t.Errorf("opening %d: %q", i, got)
		}
		l = reopen(t, l)
	}
	// A new process adds to what is there.
	accept(t, l, by("a", hour, 1), by("b", hour.Add(time.Hour), 1))
	want[1], want[5] = "01T12 a run retry 2", "01T13 b run retry 2"
	if got := countsOf(t, l, hour.Add(time.Minute)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := countsOf(t, l, hour.Add(time.Hour)); !slices.Equal(got, want[3:]) {
		t.Errorf("of the second hour: %q", got)
	}
	if l = reopen(t, l); !slices.Equal(countsOf(t, l, hour), want) {
		t.Errorf("reopened: %q", countsOf(t, l, hour))
	}
}

func TestTotals(t *testing.T) {
	now := epoch
	o := small()
	o.Now = func() time.Time { return now }
	l := open(t, t.TempDir(), o)
	if got := l.Totals(); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
	want := map[fact.Outcome]uint64{}
	for life := range uint64(3) {
		n := life * 10
		accept(t, l, said(n, 1, 1, n), said(n, 1, 1, n), said(n, 1, 1, n+1), said(n, 1, 2, n+2), said(n, 2, 1, n+3))
		accept(t, l, said(n, 1, 1, n))
		if _, ok := l.SeenRaw(said(n, 1, 1, n).Raw); !ok {
			t.Fatal("not seen")
		}
		for o, by := range map[fact.Outcome]uint64{fact.New: 1, fact.Retry: 3, fact.Equivalent: 1, fact.Redescribed: 1, fact.Collision: 1} {
			want[o] += by
		}
		if got := l.Totals(); !maps.Equal(got, want) {
			t.Errorf("life %d: %v, want %v", life, got, want)
		}
		now = now.Add(2 * countsKept * time.Hour) // the hours go, the totals stay
		l = reopen(t, l)
		if got := l.Totals(); !maps.Equal(got, want) {
			t.Errorf("life %d, reopened: %v, want %v", life, got, want)
		}
	}
}

// A count that cannot be read costs no delivery.
func TestUnreadableCounts(t *testing.T) {
	o := small()
	o.Now = func() time.Time { return epoch }
	l := open(t, t.TempDir(), o)
	e := fresh(1)
	accept(t, l, e)
	l = reopen(t, l) // they are saved
	key := countKey{kindCode(e.Kind), outcomeCode(fact.New), e.Producer}
	b := l.db.NewBatch()
	defer b.Close()
	_ = b.Set(key.row(hourOf(openlineage.InstantOf(e.Received))), nil, nil)
	put(t, l, b)
	l = reopen(t, l)
	if v := accept(t, l, fresh(2), e); v[0].Outcome != fact.New || v[1].Outcome != fact.Retry {
		t.Errorf("%+v", v)
	}
	if got := countsOf(t, l, e.Received); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// tableGate holds the reading of tables back while gate is locked.
type tableGate struct {
	vfs.FS
	gate    sync.RWMutex
	reading atomic.Bool
}

type tableGateFile struct {
	vfs.File
	fs *tableGate
}

func (g *tableGate) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.Open(name, o...)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return &tableGateFile{f, g}, nil
}

func (f *tableGateFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.reading.Store(true)
	f.fs.gate.RLock()
	defer f.fs.gate.RUnlock()
	return f.File.ReadAt(p, off)
}

// Who reads counts of months from a slow disk is no burden to those who send.
func TestReadingCountsHoldsNobodyUp(t *testing.T) {
	fs := &tableGate{FS: vfs.NewMem()}
	o := small()
	o.FS, o.CacheBytes, o.Now = fs, 1, func() time.Time { return epoch }
	l := open(t, "ledger", o)
	e := fresh(1)
	accept(t, l, e)
	l = reopen(t, l) // they are saved
	accept(t, l, e)
	if err := l.db.Flush(); err != nil {
		t.Fatal(err)
	}
	fs.reading.Store(false)
	fs.gate.Lock()
	var reader, sender sync.WaitGroup
	reader.Go(func() { countsOf(t, l, time.Time{}) })
	for range 5000 {
		if fs.reading.Load() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if !fs.reading.Load() {
		t.Error("the counts are not read from a table")
	}
	answered := make(chan bool)
	sender.Go(func() {
		_, ok := l.SeenRaw(e.Raw)
		answered <- ok
	})
	select {
	case ok := <-answered:
		if !ok {
			t.Error("not seen")
		}
		fs.gate.Unlock()
	case <-time.After(10 * time.Second):
		t.Error("SeenRaw waits for the disk")
		fs.gate.Unlock()
		<-answered
	}
	reader.Wait()
	sender.Wait()
}

// The counts of an hour that a new process has not read yet are bounded too.
func TestCountsAreBounded(t *testing.T) {
	hour := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	o := small()
	o.MaxProducers, o.Now = 3, func() time.Time { return hour }
	l := open(t, t.TempDir(), o)
	for round := range 3 {
		for i := range uint64(10) {
			accept(t, l, by(fmt.Sprintf("p%d", (i+uint64(round)*2)%10), hour, i))
		}
		l = reopen(t, l)
	}
	counts, err := l.Counts(hour)
	if err != nil {
		t.Fatal(err)
	}
	names, sum := map[string]bool{}, uint64(0)
	for _, c := range counts {
		names[c.Producer], sum = true, sum+c.N
	}
	if len(names) != 4 || !names[otherProducers] || sum != 30 {
		t.Errorf("%d deliveries of %v", sum, names)
	}
	long := strings.Repeat("é", 300)
	accept(t, l, by(long, hour.Add(time.Hour), 100))
	if got := countsOf(t, l, hour.Add(time.Hour)); len(got) != 1 || len(got[0]) > 250 || !strings.Contains(got[0], "é run") {
		t.Errorf("%q", got)
	}
}

func TestOldCountsGo(t *testing.T) {
	now := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	o := small()
	o.Now = func() time.Time { return now }
	l := open(t, t.TempDir(), o)
	for i := range uint64(8) { // more hours than are kept in memory
		accept(t, l, by("a", now.Add(time.Duration(i)*time.Hour), i))
	}
	if got := countsOf(t, l, time.Time{}); len(got) != 8 {
		t.Errorf("%q", got)
	}
	now = now.Add(countsKept*time.Hour + 6*time.Hour)
	accept(t, l, by("a", now, 100))
	l = reopen(t, l)
	if got := countsOf(t, l, time.Time{}); len(got) != 3 {
		t.Errorf("%d days later: %q", countsKept/24, got)
	}
}

// Retries alone are saved too, though nothing is synced for them.
func TestCountsOfRetriesAreSaved(t *testing.T) {
	l := open(t, t.TempDir(), small())
	e := fresh(1)
	accept(t, l, e)
	for range 2 * countsUnsaved {
		if _, ok := l.SeenRaw(e.Raw); !ok {
			t.Fatal("not seen")
		}
	}
	saved := func() bool {
		l.counts.mu.Lock()
		defer l.counts.mu.Unlock()
		return l.counts.unsaved < countsUnsaved
	}
	for range 1000 {
		if saved() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if !saved() {
		t.Error("they wait for ever")
	}
	s, err := l.Stats()
	if err != nil || s.RecentHits != 2*countsUnsaved || s.Hits != 0 || s.Misses != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	n := uint64(0)
	counts, err := l.Counts(time.Time{})
	for _, c := range counts {
		if c.Outcome == fact.Retry {
			n += c.N
		}
	}
	if err != nil || n != 2*countsUnsaved {
		t.Errorf("%d retries are counted, %v", n, err)
	}
}
