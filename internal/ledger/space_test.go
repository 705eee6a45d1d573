package ledger

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
)

// bulky is an entry whose payload does not compress.
func bulky(n uint64) Entry {
	e := fresh(n)
	r := rand.New(rand.NewPCG(n, 9))
	e.Payload = make([]byte, 50_000)
	for i := range e.Payload {
		e.Payload[i] = byte(r.Uint32())
	}
	return e
}

func TestDiskBudget(t *testing.T) {
	o := small()
	o.DiskBudget = 4 << 20
	l := open(t, t.TempDir(), o)
	n := uint64(0)
	var err error
	for ; n < 400; n++ {
		if _, err = l.Accept(t.Context(), []Entry{bulky(n)}); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "of a budget of 4194304") || n < 20 {
		t.Fatalf("after %d entries: %v", n, err)
	}
	if _, err := l.Accept(t.Context(), []Entry{bulky(0), bulky(n + 1), bulky(1)}); !errors.Is(err, ErrFull) {
		t.Errorf("some of them retries: %v", err)
	}
	if l.Last() != n {
		t.Errorf("the log ends with %d, want %d", l.Last(), n)
	}
	for _, v := range accept(t, l, bulky(0), bulky(n-1)) {
		if v.Outcome != fact.Retry {
			t.Errorf("a retry while it is full: %+v", v)
		}
	}
	// Compactions take more for a while.
	s, err := l.Stats()
	for range 500 {
		if err != nil || s.DiskBytes <= uint64(o.DiskBudget)*3/2 {
			break
		}
		time.Sleep(10 * time.Millisecond)
		s, err = l.Stats()
	}
	if err != nil || s.DiskBytes > uint64(o.DiskBudget)*3/2 || s.LogBytes == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := l.Truncate(n); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if _, err = l.Accept(t.Context(), []Entry{bulky(n)}); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Errorf("after truncation: %v", err)
	}
}

// In memory nobody knows what is free: that is not full. The budget bounds it.
func TestDiskBudgetInMemory(t *testing.T) {
	o := small()
	o.FS, o.DiskReserve, o.DiskBudget = vfs.NewMem(), 0, 4<<20
	l := open(t, "ledger", o)
	n := uint64(0)
	var err error
	for ; n < 400 && err == nil; n++ {
		_, err = l.Accept(t.Context(), []Entry{bulky(n)})
	}
	if !errors.Is(err, ErrFull) || strings.Contains(err.Error(), "free") || n < 20 {
		t.Fatalf("after %d entries: %v", n, err)
	}
	if err := l.Truncate(l.Last() + 1); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if _, err = l.Accept(t.Context(), []Entry{bulky(n)}); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("after truncation: %v", err)
}

// Calls of one group share the room.
func TestRoomIsSharedByAGroup(t *testing.T) {
	l := open(t, t.TempDir(), small())
	calls := make([]*call, 3)
	for i := range calls {
		var err error
		if calls[i], err = l.prepare([]Entry{bulky(uint64(i))}); err != nil {
			t.Fatal(err)
		}
	}
	g := l.newGroup()
	defer g.close()
	g.room = int64(calls[0].bytes + calls[1].bytes)
	if err := g.run(calls); err != nil {
		t.Fatal(err)
	}
	if calls[0].err != nil || calls[1].err != nil || !errors.Is(calls[2].err, ErrFull) || l.Last() != 2 {
		t.Errorf("%v, %v, %v, last %d", calls[0].err, calls[1].err, calls[2].err, l.Last())
	}
}

// usageFS says how full the disk is.
type usageFS struct {
	vfs.FS
	available atomic.Uint64
}

func (f *usageFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.available.Load()}, nil
}

func TestDiskReserve(t *testing.T) {
	fs := &usageFS{FS: vfs.NewMem()}
	fs.available.Store(1 << 30)
	o := small()
	o.FS, o.DiskReserve = fs, 1<<20
	l := open(t, "ledger", o)
	accept(t, l, fresh(1))
	fs.available.Store(1<<20 + 100)
	time.Sleep(spaceInterval)
	if _, err := l.Accept(t.Context(), []Entry{fresh(2)}); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "are free on the disk") {
		t.Errorf("got %v", err)
	}
	fs.available.Store(1 << 30)
	time.Sleep(spaceInterval)
	accept(t, l, fresh(2))
}
