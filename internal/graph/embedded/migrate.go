package embedded

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/graphd/graphd/internal/graph"
)

// layout is the version of the layout that this package writes.
const layout = 4

// migrations bring a directory from the layout of their place to the next one, each
// in one transaction. From where there is none the graph has to be made anew from
// the log: rows of layout 1 may be missing, and up to layout 3 a graph did not say
// which log it followed, and how far.
var migrations = [layout]func(*pebble.Batch) error{}

// checkVersion reads the version row, or writes it where the graph is new, and
// migrates what is older.
func (s *Store) checkVersion() error {
	value, closer, err := s.db.Get([]byte{versionFamily})
	if errors.Is(err, pebble.ErrNotFound) {
		if err := s.checkEmpty(); err != nil {
			return err
		}
		b := s.db.NewIndexedBatch()
		if err := s.setLog(b); err != nil {
			return errors.Join(err, b.Close())
		}
		return s.setVersion(b)
	}
	if err != nil {
		return readError(err)
	}
	written, n := binary.Uvarint(value)
	rules := ""
	if n > 0 {
		rules = string(value[n:])
	}
	if err := closer.Close(); err != nil {
		return err
	}
	switch {
	case n <= 0 || written == 0:
		return fmt.Errorf("%w: its version cannot be read", graph.ErrCorrupt)
	case written > layout:
		return fmt.Errorf("%w: its layout is %d, this one reads up to %d", ErrNewer, written, layout)
	case rules != s.rules():
		return fmt.Errorf("%w: it has %q, this graphd has %q", ErrVersion, rules, s.rules())
	}
	for ; written < layout; written++ {
		if migrations[written] == nil {
			return fmt.Errorf("%w: layout %d, which cannot be brought to %d", ErrVersion, written, layout)
		}
		b := s.db.NewIndexedBatch()
		if err := migrations[written](b); err != nil {
			return errors.Join(fmt.Errorf("migrating from layout %d: %w", written, err), b.Close())
		}
		if err := s.setVersion(b); err != nil {
			return err
		}
	}
	return nil
}

// checkEmpty looks at a graph that has no version, which is written before anything
// else.
func (s *Store) checkEmpty() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return readError(err)
	}
	if it.First() {
		err = fmt.Errorf("%w: there are rows, and no version", graph.ErrCorrupt)
	}
	return cmp.Or(err, readError(it.Error()), readError(it.Close()))
}

// rules names what the rows depend on beside the events.
func (s *Store) rules() string { return s.opt.Version + " " + s.opt.Names }

func (s *Store) setVersion(b *pebble.Batch) error {
	defer b.Close()
	if err := b.Set([]byte{versionFamily}, append(binary.AppendUvarint(nil, layout), s.rules()...), nil); err != nil {
		return err
	}
	return b.Commit(pebble.Sync)
}
