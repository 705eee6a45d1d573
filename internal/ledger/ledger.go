// Package ledger is graphd's durable log and its memory of what it has seen.
//
// Every delivery passes through Accept, which gives a verdict (new, retry,
// equivalent, redescribed, collision: docs/identity.md, What one delivery does)
// and appends the payload of everything but retries to a log. An acknowledged
// delivery is on disk. The projector reads the log and merges it into the graph;
// whoever loses the graph can build it again from the log.
//
// # What holds
//
//   - Accept returned nil: each entry of the call is on disk (fsynced) or is the
//     retry of a body that is. No crash, of the process or of the machine, takes
//     it back.
//   - Within the window, exactly one of any number of equal bodies is not a
//     retry, whoever sends them, at once or apart, before or after a crash.
//   - Verdicts follow the order of the log: as far as the window reaches back,
//     whoever replays the log through the rules gets the verdicts that were given.
//   - Totals counts whatever a group took in the same commit: it fits the log, after
//     a crash too. Counts, by producer and hour, may then lack what came in the last
//     200 ms. Retries that no group took are counted without a sync.
//   - Sequences begin at 1 and have no hole. What Read and Last show is on disk:
//     a sequence once seen never stands for another body.
//   - Memory is bounded by Options, whatever the log's and the window's sizes.
//
// # How
//
// One Pebble store in one directory, one writer goroutine. The writer takes a
// call, drains what else is queued, decides, writes one batch, syncs once and
// answers all: the size of a group adapts to the disk, and under load a group waits
// half a millisecond for more. Since there is one writer, look-up and insertion are
// one step and need no lock. Groups are small all the same, so what is written once
// a group counts: it is one row of state.
//
// The window is a list of generations, each a range of keys of its own, so that
// the oldest is forgotten with one range deletion. A filter in memory for each
// answers for nearly all unknown keys without a look-up; filters are made from
// the rows in the background after an opening, and until one is ready Pebble's
// own filters on disk stand in for it.
//
// # When the disk fails
//
// After the first failed write to the write-ahead log or the manifest nobody
// knows what is on disk. The ledger then stops for good: calls that wait and all
// later ones fail with ErrFailed, and the process should end and start again,
// which recovers. A directory that gets full makes Accept say ErrFull before
// that.
package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/disk"
)

// The errors that callers tell apart, with errors.Is.
var (
	// ErrFull: the disk budget is used up, or the disk nearly full. Nothing of the
	// call was kept. Truncate makes room; retries are answered all the same.
	ErrFull = errors.New("the ledger is full")
	// ErrClosed: the ledger was closed.
	ErrClosed = errors.New("the ledger is closed")
	// ErrFailed: the disk failed and the ledger stopped. What was acknowledged is
	// safe; anything else may or may not have been kept.
	ErrFailed = errors.New("the ledger stopped after an error of the disk")
	// ErrLocked: another process, or another Ledger of this one, has the directory.
	ErrLocked = errors.New("another graphd has it open: stop that one, or give this one a directory of its own")
	// ErrNewer: the directory was written by a newer graphd.
	ErrNewer = errors.New("the ledger was written by a newer graphd")
	// ErrTruncated: the record was removed by Truncate.
	ErrTruncated = errors.New("the log no longer reaches back so far")
	// ErrNotFound: no record has this sequence yet.
	ErrNotFound = errors.New("the log does not reach so far")
	// ErrCorrupt: what was read is not what was written.
	ErrCorrupt = errors.New("the ledger is corrupt")
)

// Ledger is an open ledger. All methods may be called at once, from any
// goroutine.
type Ledger struct {
	opt   Options
	dir   string
	fs    vfs.FS
	db    *pebble.DB
	lock  *pebble.Lock
	log   *slog.Logger
	id    string
	stop  *disk.Stop
	tally tally

	window *window
	recent *recent
	counts *counts
	dicts  *dictionaries
	learn  *learner
	space  *space
	state  state // the state row as written last; the writer's

	// durable is the greatest sequence that is on disk: what the writer has
	// committed but not synced must not be shown to anybody. first is the least
	// one that Truncate left.
	durable, first atomic.Uint64
	truncating     sync.Mutex
	progress       progress

	queue chan *call
	wake  chan struct{} // asks the writer to save counts
	wrote chan struct{} // closed when the writer has ended
	users users
	quit  chan struct{} // closed by Close: ends background work
	work  sync.WaitGroup
	close func() error // closes once; every call has its answer
}

// tally counts what happened since the ledger was opened.
type tally struct {
	hits, misses, recentHits, falseProbes atomic.Uint64
	groups, entries, backgroundErrors     atomic.Uint64
	rows, rowBytes                        atomic.Int64 // written, without payloads
	lastBackgroundError                   atomic.Pointer[string]
}

// queued bounds the calls that wait for the writer; more wait in Accept.
const queued = 1024

// Open opens the ledger in dir, creating it and its parents if they do not exist.
//
// It locks dir: ErrLocked, with dir's name, if another ledger has it open. After
// a crash it recovers from the write-ahead logs, at most two memtables of 8 MB.
// Nothing is read that grows with the log or the window. Errors: ErrLocked,
// ErrNewer, ErrCorrupt, or the file system's, wrapped.
func Open(dir string, opt Options) (*Ledger, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("opening the ledger in %s: %w", dir, err)
	}
	// As Pebble spells the names in it, which disk.Stop looks at.
	dir = opt.FS.PathJoin(dir)
	l := &Ledger{
		opt: opt, dir: dir, log: opt.Logger, stop: disk.NewStop(ErrFailed, opt.Logger),
		queue: make(chan *call, queued), wake: make(chan struct{}, 1), wrote: make(chan struct{}), quit: make(chan struct{}),
	}
	l.close = sync.OnceValue(l.shut)
	l.fs = l.stop.Watch(opt.FS, dir)
	l.progress.init()
	if err := l.stop.Open(l.open); err != nil {
		return nil, fmt.Errorf("opening the ledger in %s: %w", dir, err)
	}
	go l.write()
	l.work.Go(l.loadFilters)
	l.work.Go(l.learnDictionaries)
	return l, nil
}

func (l *Ledger) open() error {
	if err := disk.MakeDir(l.fs, l.dir); err != nil {
		return err
	}
	lock, err := disk.Lock(l.fs, l.dir, ErrLocked)
	if err != nil {
		return err
	}
	l.lock = lock
	// Pebble would take some of what is corrupt for new, and remove the data.
	if err := disk.CheckFiles(l.fs, l.dir); err != nil {
		return errors.Join(corrupted(err, true), lock.Close())
	}
	if l.db, err = pebble.Open(l.dir, l.pebbleOptions()); err != nil {
		return errors.Join(corrupted(err, true), lock.Close())
	}
	if err := l.load(); err != nil {
		return errors.Join(corrupted(err, false), l.db.Close(), lock.Close())
	}
	return nil
}

// corrupted returns err as ErrCorrupt where it says that what was read, or is being
// opened, is not what was written.
func corrupted(err error, opening bool) error {
	if err == nil || errors.Is(err, ErrCorrupt) || !disk.IsCorrupt(err, opening) {
		return err
	}
	return fmt.Errorf("%w: %s", ErrCorrupt, disk.Line(err))
}

// load reads what the ledger keeps in memory. None of it grows with the log.
func (l *Ledger) load() error {
	if err := l.loadVersion(); err != nil {
		return err
	}
	s, err := loadState(l.db)
	if err != nil {
		return err
	}
	first, err := l.loadFirst(s.last)
	if err != nil {
		return err
	}
	l.state = s
	l.durable.Store(s.last)
	l.first.Store(first)
	if l.window, err = loadWindow(l.db, &l.opt, &l.tally, &s); err != nil {
		return err
	}
	if l.dicts, err = loadDictionaries(l.db); err != nil {
		return err
	}
	l.learn = newLearner(&l.opt)
	l.recent = newRecent(l.opt.RecentBytes)
	l.counts = newCounts(l.db, &l.opt, &s)
	l.counts.timer = time.AfterFunc(l.opt.countsWait, l.nudge)
	l.space = newSpace(l)
	return nil
}

// LogID names this log for good: positions in it are kept under its name.
func (l *Ledger) LogID() string { return l.id }

// Failed is closed when the ledger has stopped after an error of the disk.
func (l *Ledger) Failed() <-chan struct{} { return l.stop.Failed() }

// Close answers every call that is waiting, saves the counts and closes the
// store. Calls begun after it fail with ErrClosed, and an iteration over Read
// ends with ErrClosed at its next record. To close again is harmless: it waits
// for the first and returns what it did. A ledger that stopped after an error of
// the disk cannot be closed: Close returns ErrFailed and the lock stays until the
// process ends.
func (l *Ledger) Close() error { return l.close() }

func (l *Ledger) shut() error {
	l.users.close()
	close(l.quit)
	l.progress.wake(true)
	done := make(chan error, 1)
	go func() {
		l.users.wait()
		close(l.queue)
		<-l.wrote
		l.work.Wait()
		l.counts.timer.Stop()
		done <- errors.Join(l.saveCounts(true), l.db.Close(), l.lock.Close())
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("closing the ledger in %s: %w", l.dir, err)
		}
		return nil
	case <-l.stop.Failed():
		return l.stop.Err()
	}
}

// enter is called first by every method that touches the store; leave must
// follow unless it fails.
func (l *Ledger) enter() error {
	if l.stop.Stopped() {
		return l.stop.Err()
	}
	return l.users.enter()
}

// usable says why enter would fail, if it would.
func (l *Ledger) usable() error {
	err := l.enter()
	if err == nil {
		l.leave()
	}
	return err
}

func (l *Ledger) leave() { l.users.leave() }

// do runs op, which uses the store. If the disk fails meanwhile it does not wait
// for op: what met the error keeps the store's locks for ever (see disk.Stop).
func (l *Ledger) do(op func() error) error {
	if err := l.enter(); err != nil {
		return err
	}
	return l.stop.Wait(func() error {
		defer l.leave()
		return corrupted(op(), false)
	})
}

// users counts who uses the store, so that it is not closed under them. No lock
// is held while they do: a reader of the log may call Accept.
type users struct {
	mu     sync.Mutex
	n      int
	closed bool
	gone   chan struct{} // closed when closed is set and n is 0
}

func (u *users) enter() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return ErrClosed
	}
	u.n++
	return nil
}

func (u *users) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	if u.closed && u.n == 0 {
		close(u.gone)
	}
}

// close lets nobody in any more. It is called once.
func (u *users) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed, u.gone = true, make(chan struct{})
	if u.n == 0 {
		close(u.gone)
	}
}

func (u *users) wait() { <-u.gone }
