package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// state is what changes with every group: one row, so that a group of few entries
// costs few rows.
type state struct {
	last uint64 // the last sequence of the log
	// What the current generation of the window is and holds; 0 if there is none.
	generation  uint32
	keys, bytes int64
	totals      [len(outcomes)]uint64 // deliveries by outcome, since ever
}

func (s *state) encode() []byte {
	b := appendUvarints(make([]byte, 0, 64), s.last, uint64(s.generation), uint64(s.keys), uint64(s.bytes))
	return appendUvarints(b, s.totals[1:]...)
}

// loadState reads the state row; there is none before the first group.
func loadState(db *pebble.DB) (s state, err error) {
	value, closer, err := db.Get(stateKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer closer.Close()
	d := decoder{rest: value}
	s.last, s.generation, s.keys, s.bytes = d.uvarint(), uint32(d.uvarint()), int64(d.uvarint()), int64(d.uvarint())
	d.totals(&s.totals)
	if d.bad {
		return state{}, fmt.Errorf("%w: the state row is unreadable", ErrCorrupt)
	}
	return s, nil
}

func (d *decoder) totals(totals *[len(outcomes)]uint64) {
	for i := range totals[1:] {
		totals[1+i] = d.uvarint()
	}
}

// saveState adds s with the totals of now to b, unless that is on disk already.
// The writer calls it, which stops for good if b then fails.
func (l *Ledger) saveState(b *pebble.Batch, s state) error {
	s.totals = l.counts.totalsNow()
	if s == l.state {
		return nil
	}
	l.state = s
	return b.Set(stateKey, s.encode(), nil)
}

// migrate brings layout 1 to layout 2. The last sequence and the totals had rows
// of their own then, and each group wrote the row of the current generation. Rows
// of events stay as they are: decodeEventRow reads both.
func (l *Ledger) migrate() error {
	var s state
	var err error
	if s.last, _, err = uvarintAt(l.db, stateKey); err != nil {
		return err
	}
	if err := migrateTotals(l.db, &s); err != nil {
		return err
	}
	if err := migrateGeneration(l.db, &s); err != nil {
		return err
	}
	b := l.db.NewBatch()
	defer b.Close()
	if err := b.Set(stateKey, s.encode(), nil); err != nil {
		return err
	}
	if err := b.Delete(totalsKey1, nil); err != nil {
		return err
	}
	if err := l.setVersion(b); err != nil {
		return err
	}
	return l.commit(b, pebble.Sync)
}

func migrateTotals(db *pebble.DB, s *state) error {
	value, closer, err := db.Get(totalsKey1)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	d := decoder{rest: value}
	if d.totals(&s.totals); d.bad {
		return fmt.Errorf("%w: the row of the totals is unreadable", ErrCorrupt)
	}
	return nil
}

func migrateGeneration(db *pebble.DB, s *state) error {
	it, err := db.NewIter(family(generationFamily))
	if err != nil {
		return err
	}
	defer it.Close()
	if it.Last() {
		g, err := decodeGeneration(it.Key(), it.Value())
		if err != nil {
			return err
		}
		s.generation, s.keys, s.bytes = g.id, g.keys.Load(), g.bytes.Load()
	}
	return it.Error()
}

// encodeGeneration makes the row of a generation that holds so many keys and
// bytes.
func (g *generation) encode(keys, bytes int64) []byte {
	return appendUvarints(appendInstant(nil, g.start), uint64(keys), uint64(bytes))
}

func decodeGeneration(key, value []byte) (*generation, error) {
	d := decoder{rest: value}
	g := &generation{start: d.instant()}
	g.keys.Store(int64(d.uvarint()))
	g.bytes.Store(int64(d.uvarint()))
	if d.bad || len(key) != 5 {
		return nil, fmt.Errorf("%w: the row of a generation is unreadable", ErrCorrupt)
	}
	g.id = binary.BigEndian.Uint32(key[1:])
	return g, nil
}
