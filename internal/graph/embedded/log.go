package embedded

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
)

// Log is the log that a store follows, as it is when the store is opened.
type Log struct {
	// ID names the log for good; "" for a store that follows none in particular, and
	// is not held to any.
	ID string
	// Last is the last place of the log.
	Last uint64
}

// merged is what the graph has at a commit.
type merged struct {
	commit   uint64 // its number, from 1
	sequence uint64 // the greatest place in the log of all events merged, 0 for none
	body     mark   // of that event
}

// mark is the beginning of a Body's ID: enough to tell whether a place of the log
// holds another body than the one that was merged.
type mark [8]byte

func markOf(e *fact.Event) (m mark) {
	copy(m[:], e.Body[:])
	return m
}

// Commits whose rows are kept; the older ones are removed now and then. They are
// more than the memtables hold: each takes more than 512 bytes there.
const keptCommits, trimEvery = 1 << 18, 1 << 16

func commitKey(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{commitFamily}, n) }

// note takes an event that was merged.
func (m *merged) note(d graph.Delivery) {
	if d.Sequence > m.sequence {
		m.sequence, m.body = d.Sequence, markOf(d.Event)
	}
}

// add puts the next commit into its batch.
func (m *merged) add(b *pebble.Batch) error {
	m.commit++
	err := b.Set(commitKey(m.commit), append(binary.AppendUvarint(nil, m.sequence), m.body[:]...), nil)
	if err == nil && m.commit > keptCommits && m.commit%trimEvery == 0 {
		err = trim(b, m.commit-keptCommits)
	}
	return err
}

// trim removes the commits before first.
func trim(b *pebble.Batch, first uint64) error {
	if err := b.DeleteRange(commitKey(0), commitKey(first), nil); err != nil {
		return err
	}
	return b.Set([]byte{firstCommitFamily}, binary.AppendUvarint(nil, first), nil)
}

// load reads the last commit.
func (m *merged) load(db pebble.Reader) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{commitFamily}, UpperBound: []byte{commitFamily + 1}})
	if err != nil {
		return readError(err)
	}
	*m = merged{}
	if it.Last() {
		err = m.read(it)
	}
	return cmp.Or(err, readError(it.Error()), readError(it.Close()))
}

func (m *merged) read(it *pebble.Iterator) error {
	key, value := it.Key(), it.Value()
	sequence, n := binary.Uvarint(value)
	if len(key) != 9 || n <= 0 || len(value) != n+len(m.body) {
		return fmt.Errorf("%w: the row of a commit cannot be read", graph.ErrCorrupt)
	}
	m.commit, m.sequence, m.body = binary.BigEndian.Uint64(key[1:]), sequence, mark(value[n:])
	return nil
}

// checkCommits looks for commits that are gone, though later ones are there: where
// the end of a manifest is lost, Pebble goes back to what was before, and a
// write-ahead log of after that is read all the same. All but the last are removed.
func (s *Store) checkCommits() error {
	first, err := s.number([]byte{firstCommitFamily}) // 0 if none was removed
	if err != nil {
		return err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{commitFamily}, UpperBound: []byte{commitFamily + 1}})
	if err != nil {
		return readError(err)
	}
	m, next := merged{}, max(first, 1)
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if err = m.read(it); err == nil && m.commit != next {
			err = fmt.Errorf("%w: there is commit %d, and commit %d is gone", graph.ErrCorrupt, m.commit, next)
		}
		next++
	}
	if err = cmp.Or(err, readError(it.Error()), readError(it.Close())); err != nil {
		return err
	}
	if m.commit == 0 && first > 0 {
		return fmt.Errorf("%w: commit %d is gone", graph.ErrCorrupt, first)
	}
	if m.commit <= max(first, 1) {
		return nil
	}
	b := s.db.NewBatch()
	defer b.Close()
	if err := trim(b, m.commit); err != nil {
		return err
	}
	return b.Commit(pebble.NoSync)
}

// setLog puts the log's row into a batch.
func (s *Store) setLog(b *pebble.Batch) error {
	s.began = s.opt.Log.Last
	return b.Set([]byte{logFamily}, append(binary.AppendUvarint(nil, s.began), s.opt.Log.ID...), nil)
}

// checkLog compares what was merged with the log: ErrForeign where that is another
// one, or has lost something of it.
func (s *Store) checkLog() error {
	value, closer, err := s.db.Get([]byte{logFamily})
	if err != nil {
		return fmt.Errorf("%w: its log: %w", graph.ErrCorrupt, err)
	}
	began, n := binary.Uvarint(value)
	id := string(value[max(n, 0):])
	if err := closer.Close(); err != nil {
		return err
	}
	s.began = began
	log, has := s.opt.Log, s.w.merged
	switch {
	case log.ID == "":
		return nil
	case has.sequence == 0 && id != log.ID:
		b := s.db.NewBatch()
		defer b.Close()
		if err := s.setLog(b); err != nil {
			return err
		}
		return b.Commit(pebble.Sync)
	case id != log.ID:
		return fmt.Errorf("%w: its log is %q, and this one is %q", ErrForeign, id, log.ID)
	case has.sequence > log.Last:
		return fmt.Errorf("%w: it has record %d, and the log ends with %d", ErrForeign, has.sequence, log.Last)
	case has.sequence == 0:
		return nil
	}
	// A log that lost its end may have got another one since. Where the record cannot
	// be read nothing is known: whoever needs it tells of that.
	e, err := s.opt.Archive.Event(has.sequence)
	if err == nil && markOf(e.Event) != has.body {
		return fmt.Errorf("%w: record %d of the log is not the one that was merged", ErrForeign, has.sequence)
	}
	return nil
}

// Began returns where the log ended when the graph was begun: with less merged it is
// still being made. 0 where the log was empty.
func (s *Store) Began() uint64 { return s.began }
