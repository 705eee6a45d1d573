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
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "layout is 3") {
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

// A directory of which something is damaged is refused, with one line, and nothing of
// it is removed or locked.
func TestCorruptDirectoryIsRefusedAndKept(t *testing.T) {
	made := open(t, t.TempDir(), small())
	for i := range uint64(200) {
		accept(t, made, fresh(i+1))
	}
	if err := errors.Join(made.db.Flush(), made.Close()); err != nil {
		t.Fatal(err)
	}
	change := func(pattern string, change func(path string) error) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			paths, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(paths) == 0 {
				t.Fatalf("no %s, %v", pattern, err)
			}
			for _, path := range paths {
				if err := change(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	flip := func(path string) error {
		text, err := os.ReadFile(path)
		if err == nil {
			text[60] ^= 0x55
			err = os.WriteFile(path, text, 0o600)
		}
		return err
	}
	for name, damage := range map[string]func(t *testing.T, dir string){
		"no marker":         change("marker.manifest.*", os.Remove),
		"no manifest":       change("MANIFEST-*", os.Remove),
		"an empty manifest": change("MANIFEST-*", func(path string) error { return os.Truncate(path, 0) }),
		"a manifest":        change("MANIFEST-*", flip),
		"no table":          change("*.sst", os.Remove),
		"a short table":     change("*.sst", func(path string) error { return os.Truncate(path, 100) }),
		"a table":           change("*.sst", flip),
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "ledger")
			if err := os.CopyFS(dir, os.DirFS(made.dir)); err != nil {
				t.Fatal(err)
			}
			damage(t, dir)
			tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := Open(dir, small()); !errors.Is(err, ErrCorrupt) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("got %v", err)
				}
			}
			for _, table := range tables {
				if _, err := os.Stat(table); err != nil {
					t.Errorf("a table was removed: %v", err)
				}
			}
		})
	}
}

// What cannot be read of an open ledger is told as that.
func TestCorruptRecordIsTold(t *testing.T) {
	o := small()
	o.CacheBytes = 1 // so that tables are read
	l := open(t, t.TempDir(), o)
	for i := range uint64(200) {
		accept(t, l, fresh(i+1))
	}
	if err := l.db.Flush(); err != nil {
		t.Fatal(err)
	}
	l = reopen(t, l)
	tables, err := filepath.Glob(filepath.Join(l.dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		text, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for at := 20; at < len(text)-100; at += 100 {
			text[at] ^= 0x55
		}
		if err := os.WriteFile(table, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Record(7); !errors.Is(err, ErrCorrupt) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a record: %v", err)
	}
	for _, err := range l.Read(1, 10) {
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("the log: %v", err)
		}
	}
}
