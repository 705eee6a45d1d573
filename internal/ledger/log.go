package ledger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/graphd/graphd/internal/openlineage"
)

// Last returns the last sequence of the log, 0 if nothing was ever logged. The
// record is on disk.
func (l *Ledger) Last() uint64 { return l.durable.Load() }

// First returns the first sequence that the log still holds; Last()+1 if it
// holds none.
func (l *Ledger) First() uint64 { return l.first.Load() }

// Wait returns when the log has a record behind the sequence after: at once, if
// it has one. Errors: ErrClosed, ErrFailed, ctx's.
func (l *Ledger) Wait(ctx context.Context, after uint64) error {
	for {
		next, ended := l.progress.next()
		switch {
		case l.stop.Stopped():
			return l.stop.Err()
		case l.Last() > after:
			return nil
		case ended:
			return ErrClosed
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.stop.Failed():
		}
	}
}

// Read yields the records from the sequence from (0: from First) in their order,
// up to what is the last when it is called, and at most max of them if max is
// positive. Every record in between is yielded, or an error that names the one
// that could not be: the iteration ends with the first error.
//
// A payload belongs to whom it is given to. An iteration holds nothing of the
// store: it may take its time, use the ledger or close it, and meets ErrTruncated
// where Truncate has overtaken it. Errors: ErrTruncated, ErrCorrupt, ErrClosed,
// ErrFailed; wrapped.
func (l *Ledger) Read(from uint64, max int) iter.Seq2[LogRecord, error] {
	return func(yield func(LogRecord, error) bool) {
		if err := l.read(from, max, yield); err != nil {
			yield(LogRecord{}, fmt.Errorf("reading the log: %w", err))
		}
	}
}

// What Read takes from the store at once: so many records or, compressed, about
// so many bytes.
const (
	readRecords = 256
	readBytes   = 1 << 20
)

func (l *Ledger) read(from uint64, max int, yield func(LogRecord, error) bool) error {
	last := l.Last()
	if from == 0 {
		from = l.First()
	}
	if max > 0 {
		last = min(last, from+uint64(max)-1)
	}
	for {
		var records []*packedRecord
		// Even where there is nothing to read: a closed ledger says so.
		err := l.do(func() (err error) {
			records, err = l.readSome(from, last)
			return err
		})
		for _, packed := range records {
			if err := l.usable(); err != nil {
				return err
			}
			r, err := packed.unpack(l.dicts)
			if err != nil {
				return err
			}
			if !yield(r, nil) {
				return nil
			}
			from++
		}
		if err != nil || from > last {
			return err
		}
	}
}

// readSome returns the records from from on, up to last or less, and with an
// error those before it.
func (l *Ledger) readSome(from, last uint64) (records []*packedRecord, err error) {
	if from > last {
		return nil, nil
	}
	it, err := l.db.NewIter(&pebble.IterOptions{LowerBound: logKey(from), UpperBound: logKey(last + 1)})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	// Read after the iterator was made: whatever Truncate took from it, first is
	// past it.
	if first := l.First(); from < first {
		return nil, truncated(from, first)
	}
	bytes := 0
	valid := it.First()
	for sequence := from; sequence <= last && len(records) < readRecords && bytes < readBytes; sequence++ {
		if err := it.Error(); err != nil {
			return records, fmt.Errorf("log record %d: %w", sequence, err)
		}
		if !valid || binary.BigEndian.Uint64(it.Key()[1:]) != sequence {
			return records, missing(sequence)
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return records, fmt.Errorf("log record %d: %w", sequence, err)
		}
		r, err := openRecord(slices.Clone(value), sequence)
		if err != nil {
			return records, err
		}
		records, bytes = append(records, r), bytes+len(value)
		valid = it.Next()
	}
	return records, nil
}

func truncated(sequence, first uint64) error {
	return fmt.Errorf("log record %d: %w: it begins with %d", sequence, ErrTruncated, first)
}

func missing(sequence uint64) error {
	return fmt.Errorf("log record %d: %w: it is missing", sequence, ErrCorrupt)
}

// Record returns one record, with one look-up. Errors: ErrNotFound where the log
// does not reach so far yet, ErrTruncated, ErrCorrupt, ErrClosed, ErrFailed;
// wrapped.
func (l *Ledger) Record(sequence uint64) (LogRecord, error) {
	var packed *packedRecord
	err := l.do(func() (err error) {
		packed, err = l.record(sequence)
		return err
	})
	if err != nil {
		return LogRecord{}, fmt.Errorf("reading the log: %w", err)
	}
	r, err := packed.unpack(l.dicts)
	if err != nil {
		return LogRecord{}, fmt.Errorf("reading the log: %w", err)
	}
	return r, nil
}

func (l *Ledger) record(sequence uint64) (*packedRecord, error) {
	if last := l.Last(); sequence == 0 || sequence > last {
		return nil, fmt.Errorf("log record %d: %w: it ends with %d", sequence, ErrNotFound, last)
	}
	value, closer, err := l.db.Get(logKey(sequence))
	if err == nil {
		value = slices.Clone(value)
		err = closer.Close()
	}
	// After the look-up, as in readSome.
	if first := l.First(); sequence < first {
		return nil, truncated(sequence, first)
	}
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, missing(sequence)
	}
	if err != nil {
		return nil, fmt.Errorf("log record %d: %w", sequence, err)
	}
	return openRecord(value, sequence)
}

// receivedAt returns when the record at sequence was received, zero if the log
// does not hold it (any more, or not yet).
func (l *Ledger) receivedAt(sequence uint64) (openlineage.Instant, error) {
	r, err := l.record(sequence)
	if errors.Is(err, ErrTruncated) || errors.Is(err, ErrNotFound) {
		return openlineage.Instant{}, nil
	}
	if err != nil {
		return openlineage.Instant{}, err
	}
	return openlineage.InstantOf(r.Received), nil
}

// Truncate removes the records before the sequence before; the one at before is
// kept. It costs next to nothing, and the space comes back in the background.
// Whatever reads the log must be past it. The dedupe window is not touched: the
// retry of a removed body stays a retry. Errors: ErrClosed, ErrFailed.
func (l *Ledger) Truncate(before uint64) error {
	return l.do(func() error { return l.truncate(before) })
}

func (l *Ledger) truncate(before uint64) error {
	l.truncating.Lock()
	defer l.truncating.Unlock()
	before = min(before, l.Last()+1)
	if before <= l.First() {
		return nil
	}
	b := l.db.NewBatch()
	defer b.Close()
	if err := b.DeleteRange(logKey(0), logKey(before), nil); err != nil {
		return err
	}
	if err := b.Set(firstKey, appendUvarints(nil, before), nil); err != nil {
		return err
	}
	// First, so that no reader takes what is gone for lost.
	l.first.Store(before)
	if err := l.commit(b, pebble.Sync); err != nil {
		return fmt.Errorf("truncating the log before record %d: %w", before, err)
	}
	return nil
}

// loadFirst reads the first sequence, and looks whether the log ends with last.
func (l *Ledger) loadFirst(last uint64) (first uint64, err error) {
	first, truncated, err := uvarintAt(l.db, firstKey)
	if err != nil {
		return 0, err
	}
	if !truncated {
		first = 1
	}
	it, err := l.db.NewIter(family(logFamily))
	if err != nil {
		return 0, err
	}
	defer it.Close()
	found := first - 1
	if it.Last() {
		found = binary.BigEndian.Uint64(it.Key()[1:])
	}
	if err := it.Error(); err != nil {
		return 0, err
	}
	if found != last {
		return 0, fmt.Errorf("%w: the log ends with record %d and should with %d", ErrCorrupt, found, last)
	}
	return first, nil
}

// progress wakes those who wait for the log to grow.
type progress struct {
	mu    sync.Mutex
	grown chan struct{}
	ended bool
}

func (p *progress) init() { p.grown = make(chan struct{}) }

// next returns a channel that is closed when the log grows or ends.
func (p *progress) next() (grown <-chan struct{}, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grown, p.ended
}

func (p *progress) wake(end bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.grown)
	p.grown, p.ended = make(chan struct{}), p.ended || end
}
