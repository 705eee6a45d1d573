package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/disk"
	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/graph/query"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/linesort"
	"github.com/graphd/graphd/internal/namesearch"
)

// The errors of Open that callers tell apart, with errors.Is.
var (
	// ErrLocked: another process, or another Store of this one, has the directory.
	ErrLocked = errors.New("the graph's directory is in use: is another graphd running on it?")
	// ErrNewer: the directory was written by a newer graphd.
	ErrNewer = errors.New("the graph was written by a newer graphd")
	// ErrVersion: its events have another identity version or other name rules, or it
	// has a layout that cannot be migrated. It has to be made anew from the log.
	ErrVersion = errors.New("the graph is of another version")
	// ErrForeign: it has what the log has not.
	ErrForeign = errors.New("the graph is of another log, or ahead of this one")
)

// Options of a store.
type Options struct {
	// Version is the identity version of the events that will be written, Names the
	// digest of the name rules that cut the names in them.
	Version, Names string
	// Log is the log that is written into it, Archive has its bodies.
	Log     Log
	Archive graph.Archive
	// CacheBytes bounds Pebble's cache of blocks, and each of its memtables, which
	// have 32 MiB at most; what the writer keeps read, and what all readers do, take half
	// of it each. Default 128 MiB.
	CacheBytes int64
	// Reserve is how much of the file system is left free: with less, Write says
	// ErrFull. Default 256 MiB; negative for none.
	Reserve int64
	// FS is the file system, by default the operating system's. Tests inject
	// faults through it.
	FS vfs.FS
	// Logger is told what Pebble has to say. Default: nobody.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.CacheBytes == 0 {
		o.CacheBytes = 128 << 20
	}
	if o.Reserve == 0 {
		o.Reserve = 256 << 20
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// pageBytes is what one half of the writer's cache of pages takes.
func (o Options) pageBytes() int { return int(o.CacheBytes / 4) }

// Store implements graph.Store.
type Store struct {
	opt   Options
	dir   string
	fs    vfs.FS // opt.FS, watched by stop
	stop  *disk.Stop
	db    *pebble.DB
	lock  *pebble.Lock
	began uint64 // see Began
	names *namesearch.Index
	cache *readCache
	// indexing is set until the names on disk are in the index.
	indexing atomic.Bool
	counts   atomic.Pointer[counts] // as committed last
	last     atomic.Uint64          // place in the log of the last event merged
	written  struct{ rows, bytes atomic.Int64 }

	// mu is held by the writer.
	mu sync.Mutex
	w  *writer

	corruption corruption

	users sync.WaitGroup
	close sync.RWMutex // held by whoever enters
	quit  chan struct{}
}

// Open opens the graph in dir, creating it if it does not exist. Errors:
// ErrLocked, ErrNewer, ErrVersion, ErrForeign, graph.ErrCorrupt, graph.ErrFailed, or
// the file system's, wrapped.
func Open(dir string, opt Options) (*Store, error) {
	opt = opt.withDefaults()
	s := &Store{opt: opt, dir: opt.FS.PathJoin(dir), names: namesearch.New(), cache: newReadCache(opt.CacheBytes / 2), quit: make(chan struct{})}
	s.corruption.found = make(chan struct{})
	s.stop = disk.NewStop(graph.ErrFailed, opt.Logger)
	s.fs = s.stop.Watch(opt.FS, s.dir)
	if err := s.stop.Open(s.open); err != nil {
		return nil, fmt.Errorf("opening the graph in %s: %w", dir, err)
	}
	s.indexing.Store(true)
	s.users.Go(s.index)
	return s, nil
}

func (s *Store) open() (err error) {
	if err := disk.MakeDir(s.fs, s.dir); err != nil {
		return err
	}
	if s.lock, err = disk.Lock(s.fs, s.dir, ErrLocked); err != nil {
		return err
	}
	if err = s.checkFiles(); err == nil {
		s.db, err = pebble.Open(s.dir, s.pebbleOptions())
	}
	if err != nil {
		return errors.Join(openError(err), s.lock.Close())
	}
	for _, step := range []func() error{s.checkVersion, s.checkCommits, s.newWriter, s.checkLog} {
		if err := step(); err != nil {
			return errors.Join(err, s.db.Close(), s.lock.Close())
		}
	}
	return nil
}

// formatVersion is pinned: a newer Pebble must not change files on disk before
// somebody decided so.
const formatVersion = pebble.FormatValueSeparation

const memTableBytes = 32 << 20

func (s *Store) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FS: s.fs, Lock: s.lock, Logger: s.stop, EventListener: s.listener(), MaxManifestFileSize: 8 << 20,
		FormatMajorVersion: formatVersion, MemTableSize: uint64(min(memTableBytes, s.opt.CacheBytes)), MemTableStopWritesThreshold: 4, CacheSize: s.opt.CacheBytes, MaxOpenFiles: 500,
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		L0CompactionThreshold:      4, L0StopWritesThreshold: 100, LBaseMaxBytes: 128 << 20,
	}
	o.Levels[0].FilterPolicy = bloom.FilterPolicy(10)
	o.Levels[0].EnsureL0Defaults()
	for i := 1; i < len(o.Levels); i++ {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].EnsureL1PlusDefaults(&o.Levels[i-1])
	}
	return o
}

// Failed is closed when the store has stopped after an error of the disk.
func (s *Store) Failed() <-chan struct{} { return s.stop.Failed() }

// Close implements graph.Store. It keeps what was written. A store that stopped
// after an error of the disk cannot be closed: its lock stays until the process
// ends. Of one that is corrupt nothing more is written.
func (s *Store) Close() error {
	if s.stop.Stopped() {
		return s.stop.Err()
	}
	return s.stop.Wait(s.shut)
}

func (s *Store) shut() error {
	s.close.Lock()
	defer s.close.Unlock()
	select {
	case <-s.quit:
		return nil
	default:
	}
	close(s.quit)
	s.users.Wait()
	var err error
	if s.Corruption() == nil {
		err = errors.Join(s.writing(func(w *writer) error { return w.commit(true) }), s.db.Flush())
	}
	if err = errors.Join(err, s.w.rows.close(), s.db.Close(), s.lock.Close()); err != nil {
		return fmt.Errorf("closing the graph in %s: %w", s.dir, err)
	}
	return nil
}

// view returns the graph of this moment, and what gives its files back.
func (s *Store) view() (*query.View, func() error) {
	c, commit := s.counts.Load(), s.cache.commit.Load() // before the snapshot, which may have more
	snapshot := s.db.NewSnapshot()
	r := &rows{db: snapshot, pages: &pageCache{limit: readerPages}, cache: s.cache, commit: commit, counts: c}
	st := lineage.NewStored(s.opt.Version, r)
	st.Details = &details{Table: st.Details, rows: r, archive: s.opt.Archive}
	done := func() error { return errors.Join(r.close(), snapshot.Close()) }
	return &query.View{State: st, Archive: s.opt.Archive, Names: s.names, Indexing: s.indexing.Load()}, done
}

// answer runs one read over the graph of one moment.
func answer[T any](ctx context.Context, s *Store, f func(*query.View) (T, error)) (T, error) {
	return do(ctx, s, func() (T, error) {
		v, done := s.view()
		var out T
		err := guard(func() (err error) {
			out, err = f(v)
			return err
		})
		if bad := done(); bad != nil { // the answer may rest on what was not read
			return out, bad
		}
		return out, err
	})
}

// Lineage implements graph.Reader.
func (s *Store) Lineage(ctx context.Context, q graph.LineageQuery) (*graph.Lineage, error) {
	return answer(ctx, s, func(v *query.View) (*graph.Lineage, error) { return v.Lineage(q) })
}

// Datasets implements graph.Reader.
func (s *Store) Datasets(ctx context.Context, q graph.EntityQuery) (graph.Page[graph.Entity], error) {
	return answer(ctx, s, func(v *query.View) (graph.Page[graph.Entity], error) { return v.Entities(fact.DatasetEntity, q) })
}

// Jobs implements graph.Reader.
func (s *Store) Jobs(ctx context.Context, q graph.EntityQuery) (graph.Page[graph.Entity], error) {
	return answer(ctx, s, func(v *query.View) (graph.Page[graph.Entity], error) { return v.Entities(fact.JobEntity, q) })
}

// Dataset implements graph.Reader.
func (s *Store) Dataset(ctx context.Context, id fact.ID) (*graph.Dataset, error) {
	return answer(ctx, s, func(v *query.View) (*graph.Dataset, error) { return v.Dataset(id) })
}

// Job implements graph.Reader.
func (s *Store) Job(ctx context.Context, id fact.ID) (*graph.Job, error) {
	return answer(ctx, s, func(v *query.View) (*graph.Job, error) { return v.Job(id) })
}

// Search implements graph.Reader.
func (s *Store) Search(ctx context.Context, q graph.SearchQuery) (graph.Found, error) {
	return answer(ctx, s, func(v *query.View) (graph.Found, error) { return v.Search(q), nil })
}

// Runs implements graph.Reader.
func (s *Store) Runs(ctx context.Context, q graph.RunQuery) (graph.Page[*lineage.RunRow], error) {
	return answer(ctx, s, func(v *query.View) (graph.Page[*lineage.RunRow], error) { return v.Runs(q) })
}

// Run implements graph.Reader.
func (s *Store) Run(ctx context.Context, id lineage.RunID) (*graph.Run, error) {
	return answer(ctx, s, func(v *query.View) (*graph.Run, error) { return v.Run(id) })
}

// Standings implements graph.Reader.
func (s *Store) Standings(ctx context.Context, attempts []fact.Attempt) ([]graph.Standing, error) {
	return answer(ctx, s, func(v *query.View) ([]graph.Standing, error) { return v.Standings(attempts), nil })
}

// Events implements graph.Reader.
func (s *Store) Events(ctx context.Context, q graph.EventQuery) (graph.Page[graph.LoggedEvent], error) {
	return answer(ctx, s, func(v *query.View) (graph.Page[graph.LoggedEvent], error) { return v.Events(q, s.last.Load()) })
}

// Event implements graph.Reader.
func (s *Store) Event(ctx context.Context, id fact.ID) ([]graph.LoggedEvent, error) {
	return answer(ctx, s, func(v *query.View) ([]graph.LoggedEvent, error) { return v.Event(id) })
}

// Stats implements graph.Reader.
func (s *Store) Stats(ctx context.Context) (graph.Stats, error) {
	return answer(ctx, s, func(v *query.View) (graph.Stats, error) {
		stats := v.Stats()
		m := s.db.Metrics()
		stats.Bytes, stats.Debt = int64(m.DiskSpaceUsage()), int64(m.Compact.EstimatedDebt)
		stats.Rows, stats.RowBytes = s.written.rows.Load(), s.written.bytes.Load()
		return stats, nil
	})
}

// Snapshot implements graph.Reader.
func (s *Store) Snapshot(ctx context.Context, w io.Writer) error {
	mine := &lent{w: w}
	defer mine.giveBack()
	_, err := do(ctx, s, func() (struct{}, error) {
		v, done, err := s.settled(ctx)
		if err != nil {
			return struct{}{}, fmt.Errorf("waiting for the graph to settle: %w", err)
		}
		sorter := &linesort.Sorter{}
		err = guard(func() error { return v.State.WriteSnapshot(mine, sorter) })
		return struct{}{}, errors.Join(err, sorter.Close(), done())
	})
	return err
}

// lent is a caller's writer, which nobody writes to once it is given back.
type lent struct {
	mu sync.Mutex
	w  io.Writer // nil once it is
}

// Write implements io.Writer.
func (l *lent) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		return 0, io.ErrClosedPipe
	}
	return l.w.Write(p)
}

func (l *lent) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w = nil
}

// settled returns the graph of a moment at which nothing is pending, with every
// row that the writer has.
func (s *Store) settled(ctx context.Context) (v *query.View, done func() error, err error) {
	for v == nil {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		err := s.writing(func(w *writer) error {
			more, err := w.settle(true)
			if err == nil && !more {
				v, done = s.view()
			}
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return v, done, nil
}
