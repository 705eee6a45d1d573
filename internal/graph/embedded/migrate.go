package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// layout is the version of the layout that this package writes.
const layout = 3

// migrations bring a directory from the layout of their place to the next one, each
// in one transaction. From where there is none the graph has to be made anew from
// the log: rows of layout 1 may be missing.
var migrations = [layout]func(*pebble.Batch) error{}

// checkVersion reads the version row, or writes it where the graph is new, and
// migrates what is older.
func (s *Store) checkVersion() error {
	value, closer, err := s.db.Get([]byte{versionFamily})
	if errors.Is(err, pebble.ErrNotFound) {
		return s.setVersion(s.db.NewIndexedBatch())
	}
	if err != nil {
		return err
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
		return errors.New("its version cannot be read")
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

// rules names what the rows depend on beside the events.
func (s *Store) rules() string { return s.opt.Version + " " + s.opt.Names }

func (s *Store) setVersion(b *pebble.Batch) error {
	defer b.Close()
	if err := b.Set([]byte{versionFamily}, append(binary.AppendUvarint(nil, layout), s.rules()...), nil); err != nil {
		return err
	}
	return b.Commit(pebble.Sync)
}
