// Package disk is what graphd's stores on Pebble have in common: how they stop
// where the disk fails, and how they keep their directories.
//
// Start at Stop.
package disk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Stop turns an error of the disk that Pebble cannot survive into a store that
// has stopped.
//
// Pebble ends the process where it cannot write its manifest, create or close a
// write-ahead log; it does so in the middle of a lock, so nobody can catch it. A
// server wants to say why it ends, and to end in order. So the goroutine that
// met the error is held for ever, with whatever locks it has, and all who wait
// are told through Failed. Nothing may touch the store after that.
//
// A store gives it to Pebble as its Logger, and Watch's file system as its FS.
type Stop struct {
	failed        chan struct{}
	once          sync.Once
	kind, cause   error
	phase         atomic.Int32
	flushesFailed atomic.Int64 // since one succeeded
	log           *slog.Logger
}

// Which errors cannot be survived depends on the phase.
const (
	// Opening: only that of the directory's sync, at which Pebble panics. The others
	// are those of whoever opens.
	opening int32 = iota
	// Recovering, from the first table or write-ahead log that is made: what the old
	// write-ahead logs held is being written, in the background. Pebble tries it again
	// without end, and the opening would wait for it; and where an opening fails
	// after that, what goes on in the background meets a store that is half closed,
	// and panics. So every error is one.
	recovering
	// Opened: those of the write-ahead logs and of the directory.
	opened
)

// NewStop returns the stop of one store, which is being opened. Its errors are
// kind, wrapped with the cause; log is told of them and of what Pebble says.
func NewStop(kind error, log *slog.Logger) *Stop {
	return &Stop{failed: make(chan struct{}), kind: kind, log: log}
}

// Open runs open, in which the store is opened, and returns its error, or the
// disk's if Pebble does not return for it.
func (s *Stop) Open(open func() error) error {
	err := s.Wait(open)
	if err == nil {
		s.phase.Store(opened)
	}
	return err
}

// Opened reports whether Open has succeeded.
func (s *Stop) Opened() bool { return s.phase.Load() == opened }

// Wait runs op in a goroutine of its own and returns its error. If the disk fails
// meanwhile it does not wait for op: what met the error keeps the store's locks
// for ever, and op may run until it needs one. Who uses the store asks Stopped
// before.
func (s *Stop) Wait(op func() error) error {
	done := make(chan error, 1)
	go func() { done <- op() }()
	select {
	case err := <-done:
		return err
	case <-s.failed:
		return s.Err()
	}
}

// Failed is closed when the store has stopped.
func (s *Stop) Failed() <-chan struct{} { return s.failed }

// Stopped reports whether the store has.
func (s *Stop) Stopped() bool {
	select {
	case <-s.failed:
		return true
	default:
		return false
	}
}

// Err says that the store has stopped, and why; it waits until it has.
func (s *Stop) Err() error {
	<-s.failed
	return fmt.Errorf("%w: %w", s.kind, s.cause)
}

// Fail stops the store; the first cause is kept.
func (s *Stop) Fail(cause error) {
	s.once.Do(func() {
		s.cause = cause
		s.log.Error(s.kind.Error(), "error", Line(cause))
		close(s.failed)
	})
}

// hold stops the store and never returns.
func (s *Stop) hold(cause error) {
	s.Fail(cause)
	select {}
}

// maxFlushesFailed is how many flushes may fail one after the other, a tenth of
// a second or more each, before it is taken that none will succeed. No memtable
// is left by then under load, and all would wait for ever.
const maxFlushesFailed = 50

// Flushed takes the end of a flush, as an EventListener's FlushEnd.
func (s *Stop) Flushed(info pebble.FlushInfo) {
	if info.Err == nil {
		s.flushesFailed.Store(0)
	} else if s.flushesFailed.Add(1) >= maxFlushesFailed {
		s.Fail(fmt.Errorf("flushing %d times in vain: %w", maxFlushesFailed, info.Err))
	}
}

// Infof, Errorf and Fatalf make Stop a pebble.Logger.

// Infof takes what Pebble has to say.
func (s *Stop) Infof(format string, args ...any) {
	if s.log.Enabled(context.Background(), slog.LevelDebug) {
		s.log.Debug("pebble: " + fmt.Sprintf(format, plain(args)...))
	}
}

// Errorf takes what went wrong.
func (s *Stop) Errorf(format string, args ...any) {
	s.log.Error("pebble: " + fmt.Sprintf(format, plain(args)...))
}

// Fatalf stops the store and does not return, as Pebble expects.
func (s *Stop) Fatalf(format string, args ...any) { s.hold(fmt.Errorf(format, plain(args)...)) }

// plain takes the stacks out of errors, which Pebble's formats would print.
func plain(args []any) []any {
	args = slices.Clone(args)
	for i, a := range args {
		if err, ok := a.(error); ok {
			args[i] = Line(err)
		}
	}
	return args
}

// check passes err on, unless it cannot be survived. vital says that it is of a
// write-ahead log or of the directory.
func (s *Stop) check(err error, vital bool) error {
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return err
	}
	switch phase := s.phase.Load(); {
	case phase == recovering, phase == opened && vital:
		s.hold(err)
	case phase == opened:
		// Pebble does what failed again at once, without end.
		time.Sleep(pause)
	}
	return err
}

// pause is how long a background write that failed waits before Pebble hears of
// it. No lock is held meanwhile.
const pause = 100 * time.Millisecond
