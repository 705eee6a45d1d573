package ledger

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"github.com/graphd/graphd/internal/fact"
)

// windowChange is what one group does to the window.
type windowChange struct {
	current *generation
	begun   bool // with this group
	rows    []windowRow
	// next are the generations after it, newest first.
	next        []*generation
	dropped     []*generation
	keys, bytes int64 // that the current generation gains
}

type windowRow struct {
	kind  byte
	id    fact.ID
	value []byte
}

// change works out what a group's entries and events do. It begins a generation
// where the newest is full, and drops the oldest where the bound is passed.
func (w *window) change(added []*item, bodies map[fact.ID]uint64, events map[fact.ID]*eventRow) windowChange {
	list := *w.generations.Load()
	c := windowChange{next: list, rows: make([]windowRow, 0, 2*len(added))}
	if len(list) > 0 && list[0].bytes.Load() < w.generationBytes() {
		c.current = list[0]
	} else {
		c.current, c.begun = &generation{id: 1, start: added[0].received}, true
		if len(list) > 0 {
			c.current.id = list[0].id + 1
		}
		c.next = append([]*generation{c.current}, list...)
	}
	for _, it := range added {
		c.add(windowRow{bodyRow, it.body, binary.AppendUvarint(nil, bodies[it.body])}, 0)
	}
	for id, row := range events {
		if row == nil || !row.touched {
			continue
		}
		replaces := 0
		if row.generation == c.current.id {
			replaces = row.size
		}
		c.add(windowRow{eventKey, id, row.encode()}, replaces)
	}
	total := c.bytes
	for _, g := range c.next {
		total += g.bytes.Load()
	}
	for total > w.bound && len(c.next) > 1 {
		oldest := c.next[len(c.next)-1]
		total -= oldest.bytes.Load()
		c.next, c.dropped = c.next[:len(c.next)-1], append(c.dropped, oldest)
	}
	return c
}

// add takes a row in; replaces is the size of the row under its key, or 0.
func (c *windowChange) add(r windowRow, replaces int) {
	c.rows = append(c.rows, r)
	c.bytes += int64(windowKeyBytes + len(r.value) - replaces)
	if replaces == 0 {
		c.keys++
	}
}

// write adds the change to a batch.
func (c *windowChange) write(b *pebble.Batch) error {
	var key [windowKeyBytes]byte
	for i := range c.rows {
		r := &c.rows[i]
		setWindowKey(&key, c.current.id, r.kind, &r.id)
		if err := b.Set(key[:], r.value, nil); err != nil {
			return err
		}
	}
	for _, g := range c.dropped {
		if err := b.DeleteRange(windowStart(g.id), windowStart(g.id+1), nil); err != nil {
			return err
		}
		if err := b.Delete(generationKey(g.id), nil); err != nil {
			return err
		}
	}
	if !c.begun {
		return nil
	}
	// The row of the one before gets its last numbers; until then the state row
	// has them.
	if len(c.next) > 1 {
		g := c.next[1]
		if err := b.Set(generationKey(g.id), g.encode(g.keys.Load(), g.bytes.Load()), nil); err != nil {
			return err
		}
	}
	return b.Set(generationKey(c.current.id), c.current.encode(c.keys, c.bytes), nil)
}

// update makes s say what the current generation is and holds after the change.
func (c *windowChange) update(s *state) {
	s.generation, s.keys, s.bytes = c.current.id, c.current.keys.Load()+c.keys, c.current.bytes.Load()+c.bytes
}

// apply makes the change, which is on disk, visible. Keys come into the filter
// before anybody can miss them.
func (w *window) apply(c *windowChange) {
	if c.current.keys.Load() == 0 && w.giveFilter(c.current, newFilter(w.capacity()), c.next) {
		c.current.ready.Store(true)
	}
	if f := c.current.filter.Load(); f != nil {
		for i := range c.rows {
			f.add(&c.rows[i].id)
		}
	}
	c.current.keys.Add(c.keys)
	c.current.bytes.Add(c.bytes)
	w.generations.Store(&c.next)
}

// loadFilters makes the filters of the generations that were there when the
// ledger was opened, newest first. Until then look-ups go to disk.
func (l *Ledger) loadFilters() {
	w := l.window
	list := *w.generations.Load()
	for i, g := range list {
		f := g.filter.Load()
		if i > 0 {
			f = newFilter(g.keys.Load())
		}
		if f == nil {
			return
		}
		full, err := w.fill(f, g, l.quit)
		if err != nil {
			l.log.Error("a filter of the window was not made: look-ups are slower", "error", err)
			return
		}
		if !full || i > 0 && !w.giveFilter(g, f, *w.generations.Load()) {
			return
		}
		g.ready.Store(true)
	}
}

// fill adds the keys that g has on disk; it ends early when quit is closed.
func (w *window) fill(f *filter, g *generation, quit <-chan struct{}) (full bool, err error) {
	it, err := w.db.NewIter(&pebble.IterOptions{LowerBound: windowStart(g.id), UpperBound: windowStart(g.id + 1)})
	if err != nil {
		return false, err
	}
	defer it.Close()
	var id fact.ID
	n := 0
	for it.First(); it.Valid(); it.Next() {
		if n++; n%4096 == 0 {
			select {
			case <-quit:
				return false, nil
			default:
			}
		}
		copy(id[:], it.Key()[windowKeyBytes-len(id):])
		f.add(&id)
	}
	return true, it.Error()
}
