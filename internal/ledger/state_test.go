package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
)

// totalsFit says that what is counted as kept is what the log ever took.
func totalsFit(l *Ledger, records []LogRecord) error {
	want := map[fact.Outcome]uint64{}
	for i := range records {
		want[records[i].Outcome]++
	}
	got := l.Totals()
	delete(got, fact.Retry)
	if !maps.Equal(got, want) {
		return fmt.Errorf("the totals are %v and the log holds %v", got, want)
	}
	return nil
}

// crash is the disk as it is after a loss of power in which all that was not
// synced is lost.
func crash(fs *vfs.MemFS) *vfs.MemFS { return fs.CrashClone(vfs.CrashCloneCfg{}) }

// What a group took is counted in the totals when it is acknowledged, retries too,
// though the counts by hour and producer are saved later.
func TestTotalsAfterACrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := small()
	o.FS = fs
	l := open(t, "ledger", o)
	want := map[fact.Outcome]uint64{}
	for n := range uint64(25) {
		call := []Entry{said(n, 1, 1, 10*n), said(n, 1, 1, 10*n), said(n, 1, 1, 10*n+1), said(n, 1, 2, 10*n+2), said(n, 2, 1, 10*n+3), said(0, 1, 1, 0)}
		for _, v := range accept(t, l, call...) {
			want[v.Outcome]++
		}
		o.FS = crash(fs)
		after := open(t, "ledger", o)
		if got := after.Totals(); !maps.Equal(got, want) {
			t.Fatalf("after call %d and a crash: %v, want %v", n, got, want)
		}
		if err := totalsFit(after, readAll(t, after)); err != nil {
			t.Fatal(err)
		}
		if got, want := after.window.stats(), l.window.stats(); got.Keys != want.Keys || got.Bytes != want.Bytes || got.Oldest != want.Oldest {
			t.Fatalf("after call %d and a crash the window is %+v, was %+v", n, got, want)
		}
		if rows := rowsOnDisk(t, after); rows != after.window.stats().Keys {
			t.Fatalf("%d rows are on disk, want %d", rows, after.window.stats().Keys)
		}
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Nobody comes any more: the counts get saved all the same, and are synced.
func TestCountsNeedNoFurtherGroup(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := small()
	// In the year 1 no counts are old. A deletion of old ones would soon be flushed.
	o.FS, o.Now = fs, func() time.Time { return time.Time{} }
	l := open(t, "ledger", o)
	accept(t, l, fresh(1), fresh(1), fresh(2))
	want := countsOf(t, l, time.Time{})
	var got []string
	for range 1000 {
		o.FS = crash(fs)
		after := open(t, "ledger", o)
		got = countsOf(t, after, time.Time{})
		if err := after.Close(); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(got, want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("after a crash: %q, want %q", got, want)
}

// A group of retries is not synced, unless it takes along counts of what was new.
func TestCountsTakenAlongByRetries(t *testing.T) {
	fs := vfs.NewCrashableMem()
	o := small()
	o.FS, o.Now, o.countsWait = fs, func() time.Time { return time.Time{} }, time.Hour
	l := open(t, "ledger", o) // nobody wakes its writer, which is this test
	for _, c := range []struct {
		due  bool
		want int
	}{{false, 0}, {true, 2}} {
		rowsOf(t, l, fresh(1))
		if c.due {
			l.counts.mu.Lock()
			l.counts.waiting = l.counts.waiting.Add(-time.Hour)
			l.counts.mu.Unlock()
		}
		rowsOf(t, l, fresh(1))
		o.FS = crash(fs)
		if got := countsOf(t, open(t, "ledger", o), time.Time{}); len(got) != c.want {
			t.Errorf("due is %v, after a crash: %q", c.due, got)
		}
	}
}

// rowsOf is how many rows a group writes with a call, and their bytes.
func rowsOf(t *testing.T, l *Ledger, entries ...Entry) (rows, bytes int64) {
	t.Helper()
	c, err := l.prepare(entries)
	if err != nil {
		t.Fatal(err)
	}
	rows, bytes = l.tally.rows.Load(), l.tally.rowBytes.Load()
	l.commitGroup([]*call{c})
	if c.err != nil {
		t.Fatal(c.err)
	}
	return l.tally.rows.Load() - rows, l.tally.rowBytes.Load() - bytes
}

// Beside the rows of the window a group writes one row, until counts are due.
func TestRowsOfAGroup(t *testing.T) {
	o := small()
	o.countsWait, o.learnFrom = time.Hour, 1<<20
	l := open(t, t.TempDir(), o) // nobody wakes its writer, which is this test
	if rows, _ := rowsOf(t, l, fresh(0)); rows != 4 {
		t.Errorf("the first group writes %d rows, want 4: one begins a generation", rows)
	}
	n := uint64(1)
	for _, entries := range []int{1, 3, 64} {
		list := make([]Entry, entries)
		for i := range list {
			list[i] = fresh(n)
			n++
		}
		rows, bytes := rowsOf(t, l, list...)
		if want := int64(2*entries + 1); rows != want {
			t.Errorf("a group of %d writes %d rows, want %d", entries, rows, want)
		}
		if bytes < int64(entries*(100+recordHead)) || bytes > int64(entries*(120+recordHead)+40) {
			t.Errorf("a group of %d writes %d bytes beside payloads", entries, bytes)
		}
	}
	l.counts.mu.Lock()
	l.counts.waiting = l.counts.waiting.Add(-time.Hour)
	l.counts.mu.Unlock()
	// Three producers, each with one outcome, and the deletion of old ones.
	if rows, _ := rowsOf(t, l, fresh(n)); rows != 2+1+3+1 {
		t.Errorf("where counts are due a group writes %d rows, want 7", rows)
	}
	if rows, _ := rowsOf(t, l, fresh(n+1)); rows != 3 {
		t.Errorf("the next one writes %d rows, want 3", rows)
	}
	// The state row has the totals already.
	before := l.tally.rows.Load()
	if err := l.saveCounts(false); err != nil {
		t.Fatal(err)
	}
	if rows := l.tally.rows.Load() - before; rows != 1 {
		t.Errorf("where no group comes one count is saved in %d rows", rows)
	}
}

// toLayout1 makes l's rows what layout 1 wrote.
func toLayout1(t *testing.T, l *Ledger) {
	t.Helper()
	l = reopen(t, l) // all is saved
	b := l.db.NewBatch()
	defer b.Close()
	_ = b.Set(versionKey, append(appendUvarints(nil, 1), l.id...), nil)
	_ = b.Set(stateKey, appendUvarints(nil, l.state.last), nil)
	_ = b.Set(totalsKey1, appendUvarints(nil, l.state.totals[1:]...), nil)
	bytes := map[uint32]int64{}
	it, err := l.db.NewIter(family(windowFamily))
	if err != nil {
		t.Fatal(err)
	}
	for it.First(); it.Valid(); it.Next() {
		generation, value := binary.BigEndian.Uint32(it.Key()[1:]), it.Value()
		if it.Key()[5] == eventKey {
			row, err := decodeEventRow(value, generation)
			if err != nil {
				t.Fatal(err)
			}
			value = row.encode1()
			_ = b.Set(it.Key(), value, nil)
		}
		bytes[generation] += int64(len(it.Key()) + len(value))
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	for _, g := range *l.window.generations.Load() {
		_ = b.Set(generationKey(g.id), g.encode(g.keys.Load(), bytes[g.id]), nil)
	}
	put(t, l, b)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// encode1 is what layout 1 wrote.
func (r *eventRow) encode1() []byte {
	b := appendInstant(appendInstant(nil, r.firstSeen), r.firstEventTime)
	for _, c := range r.contents {
		b = appendUvarints(append(b, c.content[:]...), uint64(len(c.drifts)))
		for _, d := range c.drifts {
			b = binary.LittleEndian.AppendUint64(b, d)
		}
	}
	return b
}

func TestMigration(t *testing.T) {
	o := small()
	o.WindowBytes = 1 << 20 // several generations, none of which goes
	o.Now = func() time.Time { return epoch }
	l := open(t, t.TempDir(), o)
	entries := stream(rand.New(rand.NewPCG(8, 8)), 6000)
	s := newSent(entries)
	sendAll(t, l, s, entries, 2, 8)
	id, totals, counts, window := l.LogID(), l.Totals(), countsOf(t, l, time.Time{}), l.window.stats()
	if window.Generations < 3 {
		t.Fatalf("there are %d generations", window.Generations)
	}
	toLayout1(t, l)
	for opening := range 2 {
		l = open(t, l.dir, o)
		if l.LogID() != id || !maps.Equal(l.Totals(), totals) || !slices.Equal(countsOf(t, l, time.Time{}), counts) {
			t.Errorf("opening %d: log %s, totals %v, want %s, %v", opening, l.LogID(), l.Totals(), id, totals)
		}
		got := l.window.stats()
		if got.Keys != window.Keys || got.Generations != window.Generations || got.Oldest != window.Oldest || got.Bytes <= window.Bytes {
			t.Errorf("opening %d: the window is %+v, was %+v with smaller rows", opening, got, window)
		}
		if _, _, err := l.db.Get(totalsKey1); !errors.Is(err, pebble.ErrNotFound) {
			t.Errorf("opening %d: the row of the totals is still there: %v", opening, err)
		}
		if written, ok, err := uvarintAt(l.db, versionKey); written != layout || !ok || err != nil {
			t.Errorf("opening %d: layout %d, %v", opening, written, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	l = open(t, l.dir, o)
	s.checkRetries(t, l)
	s.check(t, l, s.acknowledged())
	if err := totalsFit(l, readAll(t, l)); err != nil {
		t.Error(err)
	}
}

// A ledger of layout 1 that never took anything has none of the rows.
func TestMigrationOfNothing(t *testing.T) {
	l := open(t, t.TempDir(), small())
	b := l.db.NewBatch()
	defer b.Close()
	_ = b.Set(versionKey, append(appendUvarints(nil, 1), l.id...), nil)
	put(t, l, b)
	l = reopen(t, l)
	if len(l.Totals()) != 0 || l.Last() != 0 {
		t.Errorf("%v, last %d", l.Totals(), l.Last())
	}
	accept(t, l, fresh(1))
	if l = reopen(t, l); l.Last() != 1 {
		t.Errorf("the log ends with %d", l.Last())
	}
}

// Each operation of an opening that migrates fails, before it and after: the next
// opening finds the one layout or the other, and all that was there.
func TestFaultsOfMigration(t *testing.T) {
	sound := vfs.NewCrashableMem()
	o := small()
	o.FS = sound
	l := open(t, "ledger", o)
	accept(t, l, said(1, 1, 1, 1), said(1, 1, 1, 2), said(1, 2, 1, 3), fresh(4))
	want := l.Totals()
	toLayout1(t, l)
	for _, after := range []bool{false, true} {
		for at := int64(1); ; at++ {
			disk := crash(sound)
			f := &faults{at: at, after: after}
			o.FS = &faultFS{FS: disk, faults: f}
			if l, err := Open("ledger", o); err == nil {
				_ = l.Close() // what fails in it is not what is looked at
			}
			if f.what.Load() == nil {
				if at < 10 {
					t.Errorf("an opening has only %d operations", at)
				}
				break
			}
			o.FS = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(uint64(at), 9))})
			l, err := Open("ledger", o)
			if err != nil {
				t.Fatalf("after operation %d (%s): %v", at, *f.what.Load(), err)
			}
			if l.Last() != 4 || !maps.Equal(l.Totals(), want) || accept(t, l, fresh(4))[0].Outcome != fact.Retry {
				t.Errorf("after operation %d (%s): last %d, totals %v", at, *f.what.Load(), l.Last(), l.Totals())
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestUnreadableState(t *testing.T) {
	for name, change := range map[string]func(s *state) []byte{
		"cut":                func(s *state) []byte { return s.encode()[:5] },
		"another generation": func(s *state) []byte { s.generation++; return s.encode() },
		"another end":        func(s *state) []byte { s.last++; return s.encode() },
	} {
		l := open(t, t.TempDir(), small())
		accept(t, l, fresh(1))
		l = reopen(t, l)
		s := l.state
		b := l.db.NewBatch()
		_ = b.Set(stateKey, change(&s), nil)
		put(t, l, b)
		if err := errors.Join(b.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(l.dir, small()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
