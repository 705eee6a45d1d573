package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
)

var errInjected = errors.New("injected")

// faultFS fails one operation: the at-th one, before it is done or after. With
// sticky set, all later ones fail too.
type faultFS struct {
	vfs.FS
	*faults
}

type faults struct {
	n      atomic.Int64
	at     int64
	after  bool
	sticky bool
	what   atomic.Pointer[string]
}

// do runs one operation, or not.
func (f *faults) do(what string, op func() error) error {
	n := f.n.Add(1)
	if n != f.at && !(f.sticky && n > f.at && f.at > 0) {
		return op()
	}
	if n == f.at {
		f.what.Store(&what)
	}
	if f.after {
		if err := op(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", what, errInjected)
}

func (f *faultFS) file(what, name string, open func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	err := f.do(what+" "+name, func() (err error) { file, err = open(); return err })
	if err != nil {
		return nil, err
	}
	return &faultFile{File: file, faults: f.faults, name: name}, nil
}

func (f *faultFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file("create", name, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *faultFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	return f.file("open", name, func() (vfs.File, error) { return f.FS.Open(name, o...) })
}

func (f *faultFS) OpenDir(name string) (vfs.File, error) {
	return f.file("opendir", name, func() (vfs.File, error) { return f.FS.OpenDir(name) })
}

func (f *faultFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file("reuse", name, func() (vfs.File, error) { return f.FS.ReuseForWrite(old, name, c) })
}

func (f *faultFS) Remove(name string) error {
	return f.do("remove "+name, func() error { return f.FS.Remove(name) })
}

func (f *faultFS) Rename(old, name string) error {
	return f.do("rename "+name, func() error { return f.FS.Rename(old, name) })
}

func (f *faultFS) MkdirAll(name string, m os.FileMode) error {
	return f.do("mkdir "+name, func() error { return f.FS.MkdirAll(name, m) })
}

func (f *faultFS) List(name string) (list []string, err error) {
	err = f.do("list "+name, func() (err error) { list, err = f.FS.List(name); return err })
	return list, err
}

func (f *faultFS) Stat(name string) (info vfs.FileInfo, err error) {
	err = f.do("stat "+name, func() (err error) { info, err = f.FS.Stat(name); return err })
	return info, err
}

func (f *faultFS) Unwrap() vfs.FS { return f.FS }

type faultFile struct {
	vfs.File
	*faults
	name string
}

func (f *faultFile) Write(p []byte) (n int, err error) {
	err = f.do("write "+f.name, func() (err error) { n, err = f.File.Write(p); return err })
	return n, err
}

func (f *faultFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.do("readat "+f.name, func() (err error) { n, err = f.File.ReadAt(p, off); return err })
	return n, err
}

func (f *faultFile) Sync() error     { return f.do("sync "+f.name, f.File.Sync) }
func (f *faultFile) SyncData() error { return f.do("syncdata "+f.name, f.File.SyncData) }
func (f *faultFile) Close() error    { return f.do("close "+f.name, f.File.Close) }

// faultOptions make everything happen within few operations.
func faultOptions(fs vfs.FS) Options {
	o := small()
	o.FS, o.memTable, o.WindowBytes = fs, 32<<10, minWindow
	o.CacheBytes, o.RecentBytes, o.FilterBytes = 256<<10, 1<<12, 1<<14
	o.learnFrom, o.learnEvery = 16, 1<<16
	return o
}

// faultWork is what a ledger goes through: an opening of one with a past, senders
// at once, flushes and compactions, generations that go, closing.
func faultWork(fs vfs.FS, entries []Entry, s *sent) error {
	l, err := Open("ledger", faultOptions(fs))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		part := entries[i*len(entries)/len(errs) : (i+1)*len(entries)/len(errs)]
		wg.Go(func() {
			for len(part) > 0 && errs[i] == nil {
				n := min(len(part), 25)
				verdicts, err := l.Accept(ctx, part[:n])
				if err != nil {
					errs[i] = err
					continue
				}
				s.acknowledge(part[:n], verdicts)
				part = part[n:]
			}
		})
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), l.Close())
}

// faultEntries are the deliveries of a case: a past, and what is sent while the
// disk fails.
func faultEntries() (past, now []Entry) {
	entries := stream(rand.New(rand.NewPCG(5, 5)), 700)
	for i := range entries {
		entries[i].Payload = append(entries[i].Payload, strings.Repeat(entries[i].Body.String(), 3)...)
	}
	return entries[:300], entries[300:]
}

// Every operation on the disk fails, before its effect and after it, for once and
// for good. Accept says an error or keeps its word; after a crash and an opening
// on a sound disk all promises hold.
//
// Under -short every seventh one does.
func TestFaults(t *testing.T) {
	earlier, entries := faultEntries()
	past := vfs.NewCrashableMem()
	before := newSent(append(slices.Clone(earlier), entries...))
	if err := faultWork(past, earlier, before); err != nil {
		t.Fatal(err)
	}
	// Without a fault, to know how many operations there are.
	count := &faultFS{FS: past.CrashClone(vfs.CrashCloneCfg{}), faults: &faults{}}
	if err := faultWork(count, entries, newSent(entries)); err != nil {
		t.Fatal(err)
	}
	total, step := count.n.Load(), int64(1)
	if testing.Short() {
		step = 7
	}
	for _, mode := range []struct {
		name          string
		after, sticky bool
	}{{"before", false, false}, {"after", true, false}, {"for good", false, true}} {
		t.Run(mode.name, func(t *testing.T) {
			var stopped, ended, survived atomic.Int64
			var wg sync.WaitGroup
			var next atomic.Int64
			for range faultWorkers {
				wg.Go(func() {
					for at := 1 + (next.Add(1)-1)*step; at <= total && !t.Failed(); at = 1 + (next.Add(1)-1)*step {
						f := &faults{at: at, after: mode.after, sticky: mode.sticky}
						s := &sent{entries: before.entries, verdicts: before.acknowledged()}
						n := &survived
						switch err, wrong := faultCase(past, f, entries, s); {
						case wrong != nil:
							t.Error(wrong)
						case errors.Is(err, ErrFailed):
							n = &stopped
						case err != nil:
							n = &ended
						}
						n.Add(1)
					}
				})
			}
			wg.Wait()
			t.Logf("of %d operations each %d. failed: the ledger stopped %d times, did not open or ended with an error %d times, went on %d times",
				total, step, stopped.Load(), ended.Load(), survived.Load())
		})
	}
}

// faultWorkers is how many cases go on at once: they mostly wait.
const faultWorkers = 6

// faultCase sends entries to a copy of past, on which f happens, then opens what
// a crash leaves of it. It returns what the sender was told, and what is wrong.
func faultCase(past *vfs.MemFS, f *faults, entries []Entry, s *sent) (told, wrong error) {
	disk := past.CrashClone(vfs.CrashCloneCfg{})
	told = faultWork(&faultFS{FS: disk, faults: f}, entries, s)
	what := "nothing"
	if w := f.what.Load(); w != nil {
		what = *w
	}
	if told != nil && what == "nothing" {
		return told, fmt.Errorf("no fault, but %w", told)
	}
	l, err := Open("ledger", faultOptions(disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(uint64(f.at), 9))})))
	if err == nil {
		err = errors.Join(s.checkLog(l), l.Close())
	}
	if err != nil {
		return told, fmt.Errorf("operation %d (%s) failed, the sender was told %v, then: %w", f.at, what, told, err)
	}
	return told, nil
}

// checkLog is check without verdicts, which depend on what a small window holds.
func (s *sent) checkLog(l *Ledger) error {
	at := map[uint64]fact.ID{}
	var records []LogRecord
	for r, err := range l.Read(0, 0) {
		if err != nil {
			return err
		}
		e := s.entries[r.Body]
		if e == nil || string(e.Payload) != string(r.Payload) || r.Sequence != uint64(len(at)+1) {
			return fmt.Errorf("record %d was never sent", r.Sequence)
		}
		at[r.Sequence] = r.Body
		records = append(records, r)
	}
	if err := totalsFit(l, records); err != nil {
		return err
	}
	for body, v := range s.verdicts {
		if at[v.Sequence] != body {
			return fmt.Errorf("%s, acknowledged with sequence %d, is gone", body, v.Sequence)
		}
	}
	return nil
}
