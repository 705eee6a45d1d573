package ledger

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// After an error of the disk nothing is promised any more, and everybody is told.
func TestFailedLedger(t *testing.T) {
	f := &faults{sticky: true}
	o := small()
	o.FS = &faultFS{FS: vfs.NewMem(), faults: f}
	l, err := Open("ledger", o)
	if err != nil {
		t.Fatal(err)
	}
	accept(t, l, fresh(1))
	f.at = f.n.Load() + 1
	_, err = l.Accept(context.Background(), []Entry{fresh(2)})
	if !errors.Is(err, ErrFailed) || !errors.Is(err, errInjected) {
		t.Fatalf("got %v", err)
	}
	<-l.Failed()
	_, err1 := l.Accept(t.Context(), []Entry{fresh(1)})
	_, err2 := l.Stats()
	_, err3 := sequences(t, l, 0, 0)
	_, err4 := l.Record(1)
	_, err5 := l.Counts(time.Time{})
	for i, err := range []error{err1, err2, err3, err4, err5, l.Wait(t.Context(), 5), l.Truncate(1), l.Close()} {
		if !errors.Is(err, ErrFailed) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, ok := l.SeenRaw(fresh(1).Raw); ok {
		t.Error("SeenRaw answers")
	}
}

// Whoever is inside the store when it fails is told too: what met the error keeps
// the store's locks for ever. Here reads and syncs hang instead.
func TestNobodyWaitsForAFailedStore(t *testing.T) {
	tables := &tableGate{FS: vfs.NewMem()}
	logs := &gateFS{FS: tables}
	o := small()
	o.FS, o.FilterBytes, o.CacheBytes = logs, 1, 1
	l, err := Open("ledger", o)
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(3) {
		accept(t, l, fresh(n))
	}
	if err := l.Close(); err != nil { // which saves the counts
		t.Fatal(err)
	}
	if l, err = Open("ledger", o); err != nil {
		t.Fatal(err)
	}
	if err := l.db.Flush(); err != nil {
		t.Fatal(err)
	}
	tables.gate.Lock()
	logs.gate.Lock()
	defer tables.gate.Unlock()
	defer logs.gate.Unlock()
	errs := make(chan error, 5)
	go func() {
		_, err := l.Accept(context.Background(), []Entry{fresh(1)})
		errs <- err
	}()
	go func() {
		_, err := l.Record(2)
		errs <- err
	}()
	go func() {
		_, err := sequences(t, l, 0, 0)
		errs <- err
	}()
	go func() {
		_, err := l.Counts(time.Time{})
		errs <- err
	}()
	time.Sleep(50 * time.Millisecond)     // all are inside by now
	go func() { errs <- l.Truncate(2) }() // behind the readers, which it would overtake
	time.Sleep(50 * time.Millisecond)
	l.stop.Fail(errInjected)
	for range cap(errs) {
		select {
		case err := <-errs:
			if !errors.Is(err, ErrFailed) {
				t.Errorf("got %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("somebody waits")
		}
	}
	if err := l.Close(); !errors.Is(err, ErrFailed) {
		t.Errorf("closing: %v", err)
	}
}

// noTables lets no table be made any more once on is set.
type noTables struct {
	vfs.FS
	on atomic.Bool
}

func (f *noTables) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if f.on.Load() && strings.HasSuffix(name, ".sst") {
		return nil, errInjected
	}
	return f.FS.Create(name, c)
}

// The write-ahead log can be written and tables cannot: no memtable is left after
// a while, and nobody may wait for ever.
func TestFlushesThatNeverSucceed(t *testing.T) {
	fs := &noTables{FS: vfs.NewMem()}
	o := small()
	o.FS = fs
	l, err := Open("ledger", o)
	if err != nil {
		t.Fatal(err)
	}
	accept(t, l, fresh(0))
	fs.on.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for n := uint64(1); err == nil; n++ {
		_, err = l.Accept(ctx, []Entry{bulky(n)})
	}
	if !errors.Is(err, ErrFailed) || !errors.Is(err, errInjected) {
		t.Errorf("got %v", err)
	}
}

// A table that cannot be made now and then is no reason to stop.
func TestFlushesThatSucceedLater(t *testing.T) {
	fs := &noTables{FS: vfs.NewMem()}
	o := small()
	o.FS = fs
	l := open(t, "ledger", o)
	fs.on.Store(true)
	accept(t, l, bulky(1), bulky(2), bulky(3))
	for range 1000 {
		if s, err := l.Stats(); err != nil {
			t.Fatal(err)
		} else if s.BackgroundErrors > 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	fs.on.Store(false)
	if err := l.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if s, err := l.Stats(); err != nil || s.BackgroundErrors < 2 || !strings.Contains(s.LastBackgroundError, "injected") {
		t.Errorf("%+v, %v", s, err)
	}
	accept(t, l, bulky(4))
}
