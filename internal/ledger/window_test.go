package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// waitForFilters returns when look-ups no longer need the disk.
func waitForFilters(t testing.TB, l *Ledger) {
	t.Helper()
	for range 2000 {
		if s := l.window.stats(); s.FiltersReady == s.Generations {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the filters are not made")
}

func TestWindowAges(t *testing.T) {
	o := small()
	o.WindowBytes = 256 << 10
	l := open(t, t.TempDir(), o)
	const n = 12_000
	var oldest time.Time
	for at := uint64(0); at < n; at += 60 {
		batch := make([]Entry, 60)
		for i := range batch {
			batch[i] = fresh(at + uint64(i))
		}
		accept(t, l, batch...)
		s := l.window.stats()
		if s.Bytes > o.WindowBytes || s.Generations > generationsKept+1 {
			t.Fatalf("after %d events the window takes %d bytes in %d generations", at, s.Bytes, s.Generations)
		}
		if s.Oldest.Before(oldest) {
			t.Fatalf("the window began at %v and now begins at %v", oldest, s.Oldest)
		}
		oldest = s.Oldest
		if at == n/2 {
			l = reopen(t, l)
			if again := l.window.stats(); again.Bytes != s.Bytes || again.Keys != s.Keys || again.Oldest != s.Oldest || again.Generations != s.Generations {
				t.Errorf("reopened: %+v, was %+v", again, s)
			}
		}
	}
	s := l.window.stats()
	if s.Bytes < o.WindowBytes*(generationsKept-2)/generationsKept {
		t.Errorf("the window holds only %d of %d bytes", s.Bytes, o.WindowBytes)
	}
	if rows := rowsOnDisk(t, l); rows != s.Keys {
		t.Errorf("%d rows are on disk, want %d", rows, s.Keys)
	}
	waitForFilters(t, l)
	// From here on nothing is kept: what the window holds is what is looked at.
	known, forgotten := 0, 0
	for i := range uint64(n) {
		e := fresh(i)
		var v Verdict
		look := l.window.reader()
		it := item{event: e.Event, body: e.Body, received: openlineage.InstantOf(e.Received), eventTime: e.EventTime}
		retry, err := l.retryOnDisk(look, &it, &v)
		look.close()
		if err != nil {
			t.Fatal(err)
		}
		inside := !e.Received.Before(s.Oldest)
		switch {
		case retry != inside:
			t.Fatalf("body %d, received %v: known is %v, the window begins at %v", i, e.Received, retry, s.Oldest)
		case retry:
			known++
		default:
			forgotten++
		}
	}
	t.Logf("%d known, %d forgotten, %d bytes a key", known, forgotten, s.Bytes/s.Keys)
	if v := accept(t, l, fresh(0), fresh(n-1)); v[0].Outcome != fact.New || v[1].Outcome != fact.Retry {
		t.Errorf("the oldest and the newest: %+v", v)
	}
}

func rowsOnDisk(t *testing.T, l *Ledger) (n int64) {
	t.Helper()
	it, err := l.db.NewIter(family(windowFamily))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		n++
	}
	return n
}

// Where there is no filter in memory, Pebble's are asked, on the last level too.
func TestMissesConsultFiltersOnDisk(t *testing.T) {
	o := small()
	o.FilterBytes = 1
	l := open(t, t.TempDir(), o)
	batch := make([]Entry, 2000)
	for i := range batch {
		batch[i] = fresh(uint64(i))
	}
	accept(t, l, batch...)
	if err := l.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	before := l.db.Metrics()
	if before.Levels[6].TablesSize == 0 {
		t.Fatal("nothing is on the last level")
	}
	look := l.window.reader()
	for n := range uint64(500) {
		id := digest("unknown", n)
		if _, ok, err := look.body(&id); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	look.close()
	if hits := l.db.Metrics().Filter.Hits - before.Filter.Hits; hits < 450 {
		t.Errorf("filters answered %d of 500 look-ups", hits)
	}
}

// An event that goes on being heard of is not forgotten while its bodies are
// known, and keeps when it was first seen.
func TestLongLivedEvent(t *testing.T) {
	o := small()
	o.WindowBytes = minWindow
	l := open(t, t.TempDir(), o)
	first := said(1<<30, 1, 1, 1<<30)
	accept(t, l, first)
	bodies := []Entry{first}
	for n := uint64(0); n < 6000; n += 20 {
		others := make([]Entry, 20)
		for i := range others {
			others[i] = fresh(n + uint64(i))
		}
		accept(t, l, others...)
		e := said(1<<30, 1, 1, 1<<30+1+n)
		bodies = append(bodies, e)
		if v := accept(t, l, e); v[0].Outcome != fact.Equivalent || !v[0].FirstSeen.Equal(first.Received) {
			t.Fatalf("after %d others: %+v", n, v[0])
		}
	}
	look := l.window.reader()
	defer look.close()
	for _, e := range bodies {
		if _, ok, err := look.body(&e.Body); err != nil {
			t.Fatal(err)
		} else if ok {
			if row, err := look.event(&e.Event); err != nil || row == nil {
				t.Fatalf("a body outlived its event: %v", err)
			}
		}
	}
}

func TestFilterKnowsItsKeys(t *testing.T) {
	const n = 50_000
	f := newFilter(n)
	r := rand.New(rand.NewPCG(1, 1))
	ids := make([]fact.ID, n)
	for i := range ids {
		ids[i] = digest("filter", r.Uint64())
		f.add(&ids[i])
	}
	for i := range ids {
		if !f.has(&ids[i]) {
			t.Fatal("a key is not known")
		}
	}
	wrong := 0
	for range n {
		if id := digest("other", r.Uint64()); f.has(&id) {
			wrong++
		}
	}
	t.Logf("%d of %d unknown keys pass", wrong, n)
	if wrong > n/80 {
		t.Errorf("%d of %d unknown keys pass", wrong, n)
	}
}

// With filters, without room for any, and before they are made: the same.
func TestWindowWithoutFilters(t *testing.T) {
	for _, bytes := range []int64{1, 600, 1 << 20} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			o := small()
			o.WindowBytes, o.FilterBytes = 128<<10, bytes
			l := open(t, t.TempDir(), o)
			batch := make([]Entry, 400)
			for i := range batch {
				batch[i] = fresh(uint64(i))
			}
			for i := range 5 {
				part := batch[i*80 : (i+1)*80]
				accept(t, l, part...)
			}
			for range 3 {
				for _, v := range accept(t, l, batch...) {
					if v.Outcome != fact.Retry {
						t.Fatalf("%+v", v)
					}
				}
				s := l.window.stats()
				if s.FilterBytes > bytes {
					t.Errorf("filters take %d bytes", s.FilterBytes)
				}
				l = reopen(t, l)
			}
			time.Sleep(20 * time.Millisecond)
			s := l.window.stats()
			t.Logf("%d generations, %d filters, %d bytes", s.Generations, s.FiltersReady, s.FilterBytes)
		})
	}
}
