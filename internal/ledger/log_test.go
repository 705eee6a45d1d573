package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
)

func sequences(t *testing.T, l *Ledger, from uint64, max int) (list []uint64, err error) {
	t.Helper()
	for r, err := range l.Read(from, max) {
		if err != nil {
			return list, err
		}
		list = append(list, r.Sequence)
	}
	return list, nil
}

func TestRead(t *testing.T) {
	l := open(t, t.TempDir(), small())
	if got, err := sequences(t, l, 0, 0); err != nil || len(got) != 0 || l.First() != 1 || l.Last() != 0 {
		t.Errorf("an empty log: %v, %v, %d to %d", got, err, l.First(), l.Last())
	}
	for n := range uint64(10) {
		accept(t, l, fresh(n), fresh(n))
	}
	check := func(when string) {
		t.Helper()
		for _, c := range []struct {
			from uint64
			max  int
			want string
		}{
			{0, 0, "[1 2 3 4 5 6 7 8 9 10]"}, {1, 3, "[1 2 3]"}, {0, 3, "[1 2 3]"}, {9, 5, "[9 10]"}, {10, 1, "[10]"},
			{11, 0, "[]"}, {11, 5, "[]"}, {1 << 40, 1, "[]"},
		} {
			if got, err := sequences(t, l, c.from, c.max); err != nil || fmt.Sprint(got) != c.want {
				t.Errorf("%s, from %d, at most %d: %v, %v, want %s", when, c.from, c.max, got, err, c.want)
			}
		}
	}
	check("open")
	l = reopen(t, l)
	check("reopened")
	for r, err := range l.Read(4, 1) {
		want := fresh(3)
		if err != nil || r.Body != want.Body || r.Outcome != fact.New ||
			!r.Received.Equal(want.Received) || string(r.Payload) != string(want.Payload) {
			t.Errorf("got %+v, %v", r, err)
		}
	}
}

func TestRecord(t *testing.T) {
	l := open(t, t.TempDir(), small())
	for n := range uint64(6) {
		accept(t, l, fresh(n))
	}
	if err := l.Truncate(3); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for sequence := uint64(3); sequence <= 6; sequence++ {
			want := fresh(sequence - 1)
			if r, err := l.Record(sequence); err != nil || r.Sequence != sequence || r.Body != want.Body || string(r.Payload) != string(want.Payload) {
				t.Errorf("record %d: %+v, %v", sequence, r, err)
			}
		}
		for sequence, want := range map[uint64]error{0: ErrNotFound, 1: ErrTruncated, 2: ErrTruncated, 7: ErrNotFound, 1 << 63: ErrNotFound} {
			if r, err := l.Record(sequence); !errors.Is(err, want) || r.Sequence != 0 || !strings.Contains(err.Error(), fmt.Sprint(sequence)) {
				t.Errorf("record %d: %+v, %v, want %v", sequence, r, err, want)
			}
		}
		l = reopen(t, l)
	}
}

// More than is taken from the store at once, by number and by bytes.
func TestReadInSteps(t *testing.T) {
	l := open(t, t.TempDir(), small())
	batch := make([]Entry, 2*readRecords+10)
	for i := range batch {
		batch[i] = fresh(uint64(i))
	}
	for i := range 30 {
		batch[readRecords+i] = bulky(uint64(readRecords + i))
	}
	accept(t, l, batch...)
	for _, c := range []struct {
		from uint64
		max  int
	}{{1, 0}, {1, readRecords}, {1, readRecords + 1}, {readRecords, 40}, {readRecords + 1, readRecords}, {7, 2 * readRecords}} {
		want := min(c.from+uint64(c.max)-1, l.Last())
		if c.max == 0 {
			want = l.Last()
		}
		at := c.from
		for r, err := range l.Read(c.from, c.max) {
			if err != nil || r.Sequence != at || string(r.Payload) != string(batch[at-1].Payload) {
				t.Fatalf("from %d, at most %d: record %d at %d, %v", c.from, c.max, r.Sequence, at, err)
			}
			at++
		}
		if at != want+1 {
			t.Errorf("from %d, at most %d: ended before %d", c.from, c.max, at)
		}
	}
	for r, err := range l.Read(1, 0) { // overtaken
		if r.Sequence == 1 {
			if err := l.Truncate(l.Last()); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil && !errors.Is(err, ErrTruncated) {
			t.Error(err)
		}
	}
}

func TestTruncate(t *testing.T) {
	l := open(t, t.TempDir(), small())
	for n := range uint64(10) {
		accept(t, l, fresh(n))
	}
	for _, before := range []uint64{0, 1} {
		if err := l.Truncate(before); err != nil || l.First() != 1 {
			t.Fatalf("truncating before %d: %v, %d", before, err, l.First())
		}
	}
	if err := l.Truncate(4); err != nil {
		t.Fatal(err)
	}
	check := func(first, last uint64) {
		t.Helper()
		if l.First() != first || l.Last() != last {
			t.Errorf("the log is %d to %d, want %d to %d", l.First(), l.Last(), first, last)
		}
		got, err := sequences(t, l, 0, 2)
		if err != nil || len(got) != int(min(2, last+1-first)) || len(got) > 0 && got[0] != first {
			t.Errorf("from the first: %v, %v", got, err)
		}
		if _, err := sequences(t, l, first-1, 0); !errors.Is(err, ErrTruncated) {
			t.Errorf("from before the first: %v", err)
		}
	}
	check(4, 10)
	l = reopen(t, l)
	check(4, 10)
	if err := l.Truncate(1000); err != nil {
		t.Fatal(err)
	}
	check(11, 10)
	l = reopen(t, l)
	check(11, 10)
	if v := accept(t, l, fresh(3), fresh(11)); v[0].Outcome != fact.Retry || v[0].Sequence != 4 || v[1].Sequence != 11 {
		t.Errorf("after it: %+v", v)
	}
	check(11, 11)
}

// A reader beside Truncate and Accept sees every record, or is told that it is
// too late.
func TestTruncateWhileReading(t *testing.T) {
	l := open(t, t.TempDir(), small())
	accept(t, l, fresh(0))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for n := uint64(1); n < 600; n++ {
			if _, err := l.Accept(context.Background(), []Entry{fresh(n)}); err != nil {
				t.Error(err)
			}
			if n%5 == 0 {
				if err := l.Truncate(n - 3); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for {
		select {
		case <-done:
			wg.Wait()
			return
		default:
		}
		var last uint64
		for r, err := range l.Read(l.First(), 0) {
			if errors.Is(err, ErrTruncated) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if last != 0 && r.Sequence != last+1 {
				t.Fatalf("%d after %d", r.Sequence, last)
			}
			last = r.Sequence
		}
	}
}

func put(t *testing.T, l *Ledger, b *pebble.Batch) {
	t.Helper()
	if err := b.Commit(pebble.Sync); err != nil {
		t.Fatal(err)
	}
}

// TestRecordOfFormat1: logs that were written before the digests of event and
// content were left out.
func TestRecordOfFormat1(t *testing.T) {
	l := open(t, t.TempDir(), small())
	want := fresh(1)
	accept(t, l, want)
	value, closer, err := l.db.Get(logKey(1))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(value, want.Body[:])
	old := slices.Concat(value[:at], want.Event[:], want.Content[:], value[at:])
	_ = closer.Close()
	old[crcBytes] = 1
	seal(old, 1, fact.New)
	b := l.db.NewBatch()
	defer b.Close()
	if err := b.Set(logKey(1), old, nil); err != nil {
		t.Fatal(err)
	}
	put(t, l, b)
	r, err := l.Record(1)
	if err != nil || r.Body != want.Body || r.Outcome != fact.New || !r.Received.Equal(want.Received) || string(r.Payload) != string(want.Payload) {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestCorruptRecord(t *testing.T) {
	l := open(t, t.TempDir(), small())
	for n := range uint64(5) {
		accept(t, l, fresh(n))
	}
	value, closer, err := l.db.Get(logKey(3))
	if err != nil {
		t.Fatal(err)
	}
	record := append([]byte(nil), value...)
	_ = closer.Close()
	fails := func(what string, value []byte) {
		t.Helper()
		b := l.db.NewBatch()
		defer b.Close()
		if value == nil {
			_ = b.Delete(logKey(3), nil)
		} else {
			_ = b.Set(logKey(3), value, nil)
		}
		put(t, l, b)
		if _, err := l.Record(3); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "record 3") {
			t.Errorf("%s: looked up: %v", what, err)
		}
		got, err := sequences(t, l, 1, 0)
		if fmt.Sprint(got) != "[1 2]" || !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "record 3") {
			t.Errorf("%s: read %v, then %v", what, got, err)
		}
	}
	for i := range record {
		broken := append([]byte(nil), record...)
		broken[i] ^= 1 << (i % 8)
		fails(fmt.Sprintf("byte %d of %d", i, len(record)), broken)
	}
	fails("cut", record[:len(record)-1])
	fails("nearly empty", record[:2])
	other, closer, err := l.db.Get(logKey(4))
	if err != nil {
		t.Fatal(err)
	}
	fails("another one's place", append([]byte(nil), other...))
	_ = closer.Close()
	fails("missing", nil)
}

// The log's end is known twice.
func TestLogCutShort(t *testing.T) {
	l := open(t, t.TempDir(), small())
	accept(t, l, fresh(1), fresh(2))
	b := l.db.NewBatch()
	defer b.Close()
	_ = b.Delete(logKey(2), nil)
	put(t, l, b)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(l.dir, small()); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), l.dir) {
		t.Errorf("got %v", err)
	}
}

func TestWait(t *testing.T) {
	l := open(t, t.TempDir(), small())
	accept(t, l, fresh(1))
	if err := l.Wait(t.Context(), 0); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := l.Wait(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := l.Wait(t.Context(), 1); err != nil || l.Last() < 2 {
				t.Errorf("woken with %v at %d", err, l.Last())
			}
		})
	}
	accept(t, l, fresh(2))
	wg.Wait()
	wg.Go(func() {
		if err := l.Wait(context.Background(), 5); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// gateFS holds the syncs of write-ahead logs back while gate is locked.
type gateFS struct {
	vfs.FS
	gate sync.Mutex
}

type gateFile struct {
	vfs.File
	fs *gateFS
}

func (g *gateFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return &gateFile{f, g}, nil
}

func (f *gateFile) SyncData() error {
	f.fs.gate.Lock()
	defer f.fs.gate.Unlock()
	return f.File.SyncData()
}

func TestNothingIsShownBeforeItIsOnDisk(t *testing.T) {
	for name, filterBytes := range map[string]int64{"filters": 1 << 20, "no filters": 1} {
		t.Run(name, func(t *testing.T) {
			fs := &gateFS{FS: vfs.NewMem()}
			o := small()
			o.FS, o.FilterBytes = fs, filterBytes
			l := open(t, "ledger", o)
			accept(t, l, fresh(0))
			fs.gate.Lock()
			answers := make(chan Verdict, 2)
			send := func() {
				if v, err := l.Accept(context.Background(), []Entry{fresh(1)}); err != nil {
					t.Error(err)
				} else {
					answers <- v[0]
				}
			}
			go send()
			time.Sleep(30 * time.Millisecond) // committed by now, but not synced
			go send()
			l.showsOnlyTheFirst(t)
			select {
			case v := <-answers:
				t.Errorf("it was acknowledged: %+v", v)
			default:
			}
			fs.gate.Unlock()
			a, b := <-answers, <-answers
			if a.Outcome == b.Outcome || a.Sequence != 2 || b.Sequence != 2 {
				t.Errorf("then: %+v and %+v", a, b)
			}
		})
	}
}

func (l *Ledger) showsOnlyTheFirst(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := l.Wait(ctx, 1); err == nil {
		t.Error("the log grew")
	}
	if got, err := sequences(t, l, 0, 0); err != nil || len(got) != 1 || l.Last() != 1 {
		t.Errorf("the log shows %v up to %d, %v", got, l.Last(), err)
	}
	if _, ok := l.SeenRaw(fresh(1).Raw); ok {
		t.Error("SeenRaw knows it")
	}
}
