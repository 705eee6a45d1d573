package ledger

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestDirectoryIsLocked(t *testing.T) {
	mem := small()
	mem.FS = vfs.NewMem()
	for name, o := range map[string]Options{"on disk": small(), "in memory": mem} {
		t.Run(name, func(t *testing.T) {
			l := open(t, filepath.Join(t.TempDir(), "not", "there", "yet"), o)
			_, err := Open(l.dir, o)
			if want := "opening the ledger in " + l.dir + ": another graphd has it open: "; !errors.Is(err, ErrLocked) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v", err)
			}
			accept(t, l, fresh(1))
			reopen(t, l)
		})
	}
}

// A process of its own, since locks within one are told apart otherwise.
func TestDirectoryIsLockedByAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	end := startSender(t, dir, 0)
	defer end()
	if _, err := Open(dir, small()); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v", err)
	}
}

// What cannot be locked is not in use.
func TestDirectoryThatCannotBeLocked(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "LOCK"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, small()); err == nil || errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	o := small()
	o.FS = noLocks{vfs.NewMem()}
	if _, err := Open("ledger", o); !errors.Is(err, syscall.ENOLCK) || errors.Is(err, ErrLocked) {
		t.Errorf("got %v", err)
	}
}

// noLocks is a file system such as some network ones.
type noLocks struct{ vfs.FS }

func (noLocks) Lock(string) (io.Closer, error) { return nil, syscall.ENOLCK }

func TestNewerLayoutIsRefused(t *testing.T) {
	l := open(t, t.TempDir(), small())
	b := l.db.NewBatch()
	defer b.Close()
	_ = b.Set(versionKey, append(appendUvarints(nil, layout+1), l.id...), nil)
	put(t, l, b)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(l.dir, small())
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "layout is 2") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(l.dir, small()); !errors.Is(err, ErrNewer) {
		t.Errorf("a refused ledger is still locked: %v", err)
	}
}

// A directory that was copied in part is not taken for a new one, whether its
// records are in tables or in a write-ahead log.
func TestMissingMarkerIsNoticed(t *testing.T) {
	for _, flush := range []bool{true, false} {
		l := open(t, t.TempDir(), small())
		accept(t, l, fresh(1))
		if flush {
			if err := l.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		markers, err := filepath.Glob(filepath.Join(l.dir, "marker.manifest.*"))
		if err != nil || len(markers) != 1 {
			t.Fatal(markers, err)
		}
		if err := os.Rename(markers[0], filepath.Join(l.dir, "away")); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(l.dir, small()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("flushed %v: got %v", flush, err)
		}
		if err := os.Rename(filepath.Join(l.dir, "away"), markers[0]); err != nil {
			t.Fatal(err)
		}
		if l = open(t, l.dir, small()); l.Last() != 1 {
			t.Errorf("flushed %v: the log ends with %d", flush, l.Last())
		}
	}
}

func TestFormatIsPinned(t *testing.T) {
	l := open(t, t.TempDir(), small())
	if v := l.db.FormatMajorVersion(); v != pebble.FormatValueSeparation {
		t.Errorf("the format is %d", v)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{WindowBytes: 1}, {FilterBytes: -1}, {CacheBytes: -1}, {MaxProducers: -1}, {DiskBudget: 1}} {
		if l, err := Open(filepath.Join(t.TempDir(), "l"), o); err == nil {
			t.Errorf("%+v is taken", o)
			_ = l.Close()
		}
	}
}

func TestNotADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, small()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}

func TestLogID(t *testing.T) {
	l := open(t, t.TempDir(), small())
	id := l.LogID()
	if len(id) != 32 {
		t.Errorf("%q", id)
	}
	if l = reopen(t, l); l.LogID() != id {
		t.Errorf("it was %s and is %s", id, l.LogID())
	}
	if other := open(t, t.TempDir(), small()); other.LogID() == id {
		t.Error("two logs have one ID")
	}
}
