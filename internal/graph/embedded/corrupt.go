package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/disk"
	"github.com/graphd/graphd/internal/graph"
)

// corruption is what was found to be wrong with a store, if anything was. From then
// on every call fails with it.
type corruption struct {
	once  sync.Once
	found chan struct{} // closed when err is set
	err   error         // graph.ErrCorrupt, wrapped
}

// Corrupt is closed when something of the store was found not to be what was
// written, by a call or in the background.
func (s *Store) Corrupt() <-chan struct{} { return s.corruption.found }

// Corruption says what was found; nil while Corrupt is open.
func (s *Store) Corruption() error {
	select {
	case <-s.corruption.found:
		return s.corruption.err
	default:
		return nil
	}
}

// condemned is a file in the directory of a store that was found to be corrupt, with
// the reason: where nobody reads the same place again, an opening finds no fault.
const condemned = "corrupt"

// condemn notes that the store is corrupt; the first reason is kept.
func (s *Store) condemn(err error) {
	s.corruption.once.Do(func() {
		s.corruption.err = err
		if bad := s.writeCondemned(err.Error()); bad != nil {
			s.opt.Logger.Warn("it could not be noted that the graph is corrupt", "dir", s.dir, "error", bad)
		}
		close(s.corruption.found)
	})
}

func (s *Store) writeCondemned(why string) error {
	f, err := s.opt.FS.Create(s.opt.FS.PathJoin(s.dir, condemned), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(why))
	return errors.Join(err, f.Sync(), f.Close(), disk.SyncDir(s.opt.FS, s.dir))
}

// checkFiles looks at the directory before Pebble does. Its errors are to be passed
// through openError.
func (s *Store) checkFiles() error {
	f, err := s.fs.Open(s.fs.PathJoin(s.dir, condemned))
	if errors.Is(err, os.ErrNotExist) {
		return disk.CheckFiles(s.fs, s.dir)
	}
	if err != nil {
		return err
	}
	const most = 1000
	why, err := io.ReadAll(io.LimitReader(f, most))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return fmt.Errorf("%w: it was found to be so before: %s", graph.ErrCorrupt, why)
}

// openError and readError are errors of Pebble, graph.ErrCorrupt where they say
// that what was read is not what was written.
func openError(err error) error { return corrupted(err, true) }
func readError(err error) error { return corrupted(err, false) }

func corrupted(err error, opening bool) error {
	if err == nil || errors.Is(err, graph.ErrCorrupt) || !disk.IsCorrupt(err, opening) {
		return err
	}
	return fmt.Errorf("%w: %s", graph.ErrCorrupt, disk.Line(err))
}

// listener hears of what goes wrong in the background.
func (s *Store) listener() *pebble.EventListener {
	return &pebble.EventListener{
		FlushEnd: s.stop.Flushed,
		BackgroundError: func(err error) {
			if err = readError(err); errors.Is(err, graph.ErrCorrupt) {
				s.condemn(fmt.Errorf("in the background: %w", err))
			} else if !errors.Is(err, pebble.ErrCancelledCompaction) {
				s.opt.Logger.Error("the graph's background work failed", "dir", s.dir, "error", disk.Line(err))
			}
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.condemn(fmt.Errorf("%w: %s: %s", graph.ErrCorrupt, info.Path, disk.Line(info.Details)))
		},
	}
}

// Why a graph is moved aside, as the name of its directory tells.
const (
	Aside   = "aside"   // of one that may be of use once more
	Corrupt = "corrupt" // of which one is kept
)

// MoveAside renames the directory of a graph that is not open, graph to
// graph.aside-20060102T150405Z, and returns its new name. Of corrupt ones, which can
// be made again and would fill the disk, those moved before are removed.
func MoveAside(fs vfs.FS, dir, why string, now time.Time) (string, error) {
	parent, prefix := fs.PathDir(dir), fs.PathBase(dir)+"."+why+"-"
	names, err := fs.List(parent)
	if err != nil {
		return "", err
	}
	if why == Corrupt {
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				if err := fs.RemoveAll(fs.PathJoin(parent, name)); err != nil {
					return "", err
				}
			}
		}
		names = nil
	}
	stamp := prefix + now.UTC().Format("20060102T150405Z")
	name := stamp
	for n := 2; slices.Contains(names, name); n++ {
		name = fmt.Sprintf("%s-%d", stamp, n)
	}
	name = fs.PathJoin(parent, name)
	if err := fs.Rename(dir, name); err != nil {
		return "", err
	}
	return name, disk.SyncDir(fs, parent)
}
