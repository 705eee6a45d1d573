package lineage

import (
	"iter"
	"strings"

	"github.com/tidwall/btree"
)

// Rows is what a driver keeps beneath a State: for each table, rows of bytes
// ordered bytewise by key. What it returns is of one moment, or of the last
// commit of the State's own changes.
//
// A driver that fails to read notes the error, returns nothing from then on, and
// commits and answers nothing of that State.
type Rows interface {
	// Get returns a row, nil if there is none. It stays as it is; nobody writes to
	// it.
	Get(t TableID, key string) []byte
	// Scan yields the rows with from <= key < to, "" for no bound, ascending or
	// backward. A value is valid until the next step. Other rows may be read
	// meanwhile.
	Scan(t TableID, from, to string, backward bool) iter.Seq2[string, []byte]
	// Len counts the rows of a table, at least roughly.
	Len(t TableID) int
	// Fail tells the driver that a row is not what was written.
	Fail(err error)
}

// storedTable is a Table over Rows: what was changed since the last flush, over
// what the driver has.
type storedTable[V any] struct {
	id     TableID
	rows   Rows
	codec  codec[V]
	values *values
	// numbered is how many IDs keys begin with that the driver has as numbers.
	numbered int
	dirty    changed[V]
	// late has the rows of PutLater that wait.
	late  changed[V]
	clean *cache[V] // as the driver has them; nil for none
	// lasts has the greatest keys of some prefixes of lastOf bytes, "" for none: a
	// key-only index that grows at its end is asked for it with every event.
	lastOf int
	lasts  lately[string, string]
}

type change[V any] struct {
	row     V
	deleted bool
}

// changed is the changes of a table by key: in order where the table is scanned
// while there are changes, else only by hash, since keys are long and alike.
type changed[V any] struct {
	hashed map[string]change[V]
	tree   *btree.Map[string, change[V]]
}

func (c *changed[V]) get(key string) (change[V], bool) {
	if c.tree != nil {
		return c.tree.Get(key)
	}
	v, ok := c.hashed[key]
	return v, ok
}

func (c *changed[V]) set(key string, v change[V]) {
	if c.tree != nil {
		c.tree.Set(key, v)
		return
	}
	if c.hashed == nil {
		c.hashed = map[string]change[V]{}
	}
	c.hashed[key] = v
}

func (c *changed[V]) delete(key string) {
	if c.tree != nil {
		c.tree.Delete(key)
	} else {
		delete(c.hashed, key)
	}
}

func (c *changed[V]) len() int {
	if c.tree != nil {
		return c.tree.Len()
	}
	return len(c.hashed)
}

// ordered returns the changes in order, and keeps them so from now on.
func (c *changed[V]) ordered() *btree.Map[string, change[V]] {
	if c.tree == nil {
		c.tree = &btree.Map[string, change[V]]{}
		for key, v := range c.hashed {
			c.tree.Set(key, v)
		}
		c.hashed = nil
	}
	return c.tree
}

type flusher interface {
	flush(all bool, changes Changes)
}

func (t *storedTable[V]) Get(key string) (row V, ok bool) {
	if c, changed := t.dirty.get(key); changed {
		return c.row, !c.deleted
	}
	if c, changed := t.late.get(key); changed {
		return c.row, true
	}
	if row, ok = t.clean.get(key); ok {
		return row, true
	}
	text := t.text(key)
	if text == nil {
		return row, false
	}
	row = t.decode(key, text)
	t.clean.put(key, row, len(text))
	return row, true
}

func (t *storedTable[V]) Put(key string, row V) {
	if t.lastOf > 0 {
		if last, ok := t.lasts.get(key[:t.lastOf]); ok && key > last {
			t.lasts.put(key[:t.lastOf], key)
		}
	}
	t.dirty.set(key, change[V]{row: row})
	t.late.delete(key)
}

func (t *storedTable[V]) PutLater(key string, row V) {
	if _, changed := t.dirty.get(key); changed {
		t.dirty.set(key, change[V]{row: row})
	} else {
		t.late.set(key, change[V]{row: row})
	}
}

// Delete notes a deletion only where the driver has the row, so that what comes
// and goes between two flushes leaves no trace.
func (t *storedTable[V]) Delete(key string) {
	if t.lastOf > 0 {
		if last, _ := t.lasts.get(key[:t.lastOf]); last == key {
			t.lasts.remove(last[:t.lastOf])
		}
	}
	t.late.delete(key)
	_, cached := t.clean.get(key)
	if cached || t.text(key) != nil {
		t.dirty.set(key, change[V]{deleted: true})
	} else {
		t.dirty.delete(key)
	}
}

// text returns what the driver has under a key, nil if nothing.
func (t *storedTable[V]) text(key string) []byte {
	if t.numbered > 0 {
		short, ok := t.values.numbers.short(key, t.numbered, false)
		if !ok {
			return nil
		}
		key = short
	}
	return t.rows.Get(t.id, key)
}

// texts scans what the driver has.
func (t *storedTable[V]) texts(from, to string, backward bool) iter.Seq2[string, []byte] {
	lead := t.numbered * idLen
	switch {
	case lead == 0:
		return t.rows.Scan(t.id, from, to, backward)
	case from == "" && to == "": // in no order, for whoever wants all
		return func(yield func(string, []byte) bool) {
			for short, text := range t.rows.Scan(t.id, "", "", false) {
				if !yield(t.values.numbers.long(short, t.numbered), text) {
					return
				}
			}
		}
	}
	return func(yield func(string, []byte) bool) {
		ids := from[:lead]
		short, ok := t.values.numbers.short(ids, t.numbered, false)
		if !ok {
			return
		}
		end, _ := prefixEnd(short)
		if strings.HasPrefix(to, ids) {
			end = short + to[lead:]
		}
		for key, text := range t.rows.Scan(t.id, short+from[lead:], end, backward) {
			if !yield(ids+key[len(short):], text) {
				return
			}
		}
	}
}

func (t *storedTable[V]) decode(key string, text []byte) V {
	d := decoder{rest: text, values: t.values}
	row := t.codec.get(&d, key)
	if d.bad {
		t.values.unreadable(t.id, key)
	}
	return row
}

func (t *storedTable[V]) Scan(prefix, start string) iter.Seq2[string, V] {
	end, _ := prefixEnd(prefix)
	return t.scan(max(prefix, start), end, false)
}

func (t *storedTable[V]) ScanBack(prefix string) iter.Seq2[string, V] {
	end, _ := prefixEnd(prefix)
	return t.scan(prefix, end, true)
}

func (t *storedTable[V]) ScanBefore(prefix, end string) iter.Seq2[string, V] {
	if e, _ := prefixEnd(prefix); end == "" || e != "" && e < end {
		end = e
	}
	return t.scan(prefix, end, true)
}

// Last implements Table.
func (t *storedTable[V]) Last(prefix string) (key string, ok bool) {
	kept := len(prefix) == t.lastOf
	if kept {
		if key, ok = t.lasts.get(prefix); ok {
			return key, key != ""
		}
	}
	key, _, ok = first(t.ScanBack(prefix))
	if kept {
		t.lasts.put(prefix, key)
	}
	return key, ok
}

// scan merges what was changed into what the driver has.
func (t *storedTable[V]) scan(from, to string, backward bool) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if t.late.len() > 0 { // a scan of this table is rare
			for key, c := range t.late.hashed {
				t.dirty.set(key, c)
			}
			t.late = changed[V]{}
		}
		if t.dirty.len() == 0 {
			for key, text := range t.texts(from, to, backward) {
				if !yield(key, t.decode(key, text)) {
					return
				}
			}
			return
		}
		changed := t.dirty.ordered().Iter()
		more := false // changed stands at one within the bounds
		within := func(there bool) {
			more = there && (backward && changed.Key() >= from || !backward && (to == "" || changed.Key() < to))
		}
		next := changed.Next
		switch {
		case !backward:
			within(changed.Seek(from))
		case to != "" && changed.Seek(to):
			next = changed.Prev
			within(next())
		default:
			next = changed.Prev
			within(changed.Last())
		}
		// before yields the changes that come before a row of the driver.
		before := func(end string, bounded bool) bool {
			for more && (!bounded || changed.Key() < end != backward && changed.Key() != end) {
				if c := changed.Value(); !c.deleted && !yield(changed.Key(), c.row) {
					return false
				}
				within(next())
			}
			return true
		}
		for k, text := range t.texts(from, to, backward) {
			if !before(k, true) {
				return
			}
			if more && changed.Key() == k { // the change stands for it
				if c := changed.Value(); !c.deleted && !yield(k, c.row) {
					return
				}
				within(next())
				continue
			}
			if !yield(k, t.decode(k, text)) {
				return
			}
		}
		before("", false)
	}
}

func (t *storedTable[V]) Len() int { return t.rows.Len(t.id) }

func (t *storedTable[V]) flush(all bool, changes Changes) {
	e := encoder{values: t.values, buf: []byte{}}
	put := func(key string, c change[V]) bool {
		short := key
		if t.numbered > 0 {
			short, _ = t.values.numbers.short(key, t.numbered, true)
		}
		if c.deleted {
			t.clean.remove(key)
			changes(t.id, short, nil)
			return true
		}
		e.buf = e.buf[:0]
		t.codec.put(&e, c.row)
		t.clean.put(key, c.row, len(e.buf))
		changes(t.id, short, e.buf)
		return true
	}
	t.dirty.flush(put)
	if all {
		t.late.flush(put)
	}
}

// flush gives all changes to put, and forgets them.
func (c *changed[V]) flush(put func(string, change[V]) bool) {
	if c.tree != nil && c.tree.Len() > 0 {
		c.tree.Scan(put)
		c.tree = &btree.Map[string, change[V]]{}
	}
	for key, v := range c.hashed {
		put(key, v)
	}
	clear(c.hashed)
}

// cache keeps rows that were used lately: at most two halves of cacheBytes, of
// which the older is dropped when the newer is full.
type cache[V any] struct {
	young, old map[string]V
	bytes      int
}

// What one half of a cache holds: text of rows, and what a row takes beside it.
const (
	cacheBytes  = 1 << 20
	rowOverhead = 128
)

func (c *cache[V]) get(key string) (row V, ok bool) {
	if c == nil {
		return row, false
	}
	if row, ok = c.young[key]; ok {
		return row, true
	}
	row, ok = c.old[key]
	return row, ok
}

// put keeps a row whose text has so many bytes.
func (c *cache[V]) put(key string, row V, bytes int) {
	if c == nil {
		return
	}
	key = strings.Clone(key) // it may be a part of something long
	if c.bytes += bytes + len(key) + rowOverhead; c.bytes > cacheBytes || c.young == nil {
		c.old, c.young, c.bytes = c.young, map[string]V{}, bytes+len(key)+rowOverhead
	}
	delete(c.old, key)
	c.young[key] = row
}

func (c *cache[V]) remove(key string) {
	if c == nil {
		return
	}
	delete(c.young, key)
	delete(c.old, key)
}
