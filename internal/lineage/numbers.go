package lineage

import (
	"encoding/binary"
	"fmt"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// numbers give what many rows name a short name: a job, a dataset, a value that is
// kept once has an ID of 24 bytes, which does not compress, and from its first
// mention a number of one to four. Numbers are a store's own: no answer and no
// snapshot shows one, and two stores of the same events may number them
// differently.
type numbers struct {
	rows Rows
	last uint64
	read bool // last is what the driver has, and what was given since
	// fresh are those given since the last flush.
	fresh   map[fact.ID]uint64
	byID    lately[fact.ID, uint64]
	ids     lately[uint64, fact.ID]
	jobs    lately[openlineage.Name, uint64]
	jobName lately[uint64, openlineage.Name]
}

// of returns the number of an ID, 0 if it has none.
func (n *numbers) of(id fact.ID) uint64 {
	if number, ok := n.byID.get(id); ok {
		return number
	}
	if number, ok := n.fresh[id]; ok {
		return number
	}
	text := n.rows.Get(NumbersTable, string(id[:]))
	if text == nil {
		return 0
	}
	number, size := binary.Uvarint(text)
	if size <= 0 || number == 0 {
		n.rows.Fail(fmt.Errorf("the number of %x cannot be read", id))
		return 0
	}
	n.byID.put(id, number)
	return number
}

// give returns the number of an ID, and whether it has only got it now.
func (n *numbers) give(id fact.ID) (number uint64, fresh bool) {
	if number := n.of(id); number != 0 {
		return number, false
	}
	if !n.read {
		n.read = true
		if text := n.rows.Get(NumbersTable, ""); text != nil {
			n.last, _ = binary.Uvarint(text)
		}
	}
	n.last++
	if n.fresh == nil {
		n.fresh = map[fact.ID]uint64{}
	}
	n.fresh[id] = n.last
	n.byID.put(id, n.last)
	n.ids.put(n.last, id)
	return n.last, true
}

// id returns the ID that has a number.
func (n *numbers) id(number uint64) (id fact.ID, ok bool) {
	if id, ok := n.ids.get(number); ok {
		return id, true
	}
	for id, fresh := range n.fresh { // forgotten already: hardly ever
		if fresh == number {
			return id, true
		}
	}
	text := n.rows.Get(NumberedTable, numberKey(number))
	if len(text) != idLen {
		return id, false
	}
	id = fact.ID(text)
	n.ids.put(number, id)
	return id, true
}

func numberKey(number uint64) string { return string(binary.AppendUvarint(nil, number)) }

func (n *numbers) flush(changes Changes) {
	if len(n.fresh) == 0 {
		return
	}
	var text []byte
	for id, number := range n.fresh {
		text = binary.AppendUvarint(text[:0], number)
		changes(NumbersTable, string(id[:]), text)
		changes(NumberedTable, string(text), id[:])
	}
	changes(NumbersTable, "", binary.AppendUvarint(text[:0], n.last))
	clear(n.fresh)
}

// short replaces the IDs that a key begins with by their numbers, 0 for the zero
// ID; ok is false where one has none, unless give, and where the key is of no row.
func (n *numbers) short(key string, ids int, give bool) (short string, ok bool) {
	if len(key) < ids*idLen {
		return "", false
	}
	buf := make([]byte, 0, 64)
	for range ids {
		id, number := idAt(key, 0), uint64(0)
		switch {
		case id.IsZero():
		case give:
			number, _ = n.give(id)
		default:
			if number = n.of(id); number == 0 {
				return "", false
			}
		}
		buf, key = binary.AppendUvarint(buf, number), key[idLen:]
	}
	return string(append(buf, key...)), true
}

// long is the inverse of short.
func (n *numbers) long(short string, ids int) string {
	key := make(keyBuilder, 0, ids*idLen+len(short))
	for range ids {
		number, size := binary.Uvarint([]byte(short))
		id, ok := fact.ID{}, number == 0
		if !ok {
			id, ok = n.id(number)
		}
		if size <= 0 || !ok {
			n.rows.Fail(fmt.Errorf("a key refers to what is not there: %x", short))
			return ""
		}
		key, short = key.id(id), short[size:]
	}
	return string(append(key, short...))
}

// lately keeps what was used last, of bounded number: two halves, of which the
// older is dropped when the newer is full. Nothing in it is a pointer that its
// types have not, so that the garbage collector need not look at IDs.
type lately[K comparable, V any] struct {
	young, old map[K]V
}

// latelyKept is how much one half keeps.
const latelyKept = 1 << 16

func (l *lately[K, V]) get(key K) (v V, ok bool) {
	if v, ok = l.young[key]; ok {
		return v, true
	}
	if v, ok = l.old[key]; ok {
		l.put(key, v)
	}
	return v, ok
}

func (l *lately[K, V]) remove(key K) {
	delete(l.young, key)
	delete(l.old, key)
}

func (l *lately[K, V]) put(key K, v V) {
	if l.young == nil || len(l.young) >= latelyKept {
		l.old, l.young = l.young, map[K]V{}
	}
	l.young[key] = v
}
