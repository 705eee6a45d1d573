package lineage

import (
	"iter"
	"strings"

	"github.com/tidwall/btree"
)

// Table is one ordered set of rows of a State, read and written by Settle. A
// State has its tables in memory (NewMemory) or over a driver's Rows (NewStored).
//
// Rows are ordered bytewise by key. A row put is seen by every later read of
// the same State. Scans see the table as it was when they began; a caller does
// not write to the table that it scans.
type Table[V any] interface {
	Get(key string) (V, bool)
	Put(key string, row V)
	// PutLater is Put of a row that may be lost in a crash together with everything
	// that the same log has said since: it need not be on disk before the log's
	// position is. A row that changes with every event is written once for many.
	PutLater(key string, row V)
	Delete(key string)
	// Scan yields the rows whose key begins with prefix, from the first one whose
	// key is at least start ("" for all), ascending.
	Scan(prefix, start string) iter.Seq2[string, V]
	// ScanBack yields the rows whose key begins with prefix, descending.
	ScanBack(prefix string) iter.Seq2[string, V]
	// ScanBefore is ScanBack over the keys smaller than end.
	ScanBefore(prefix, end string) iter.Seq2[string, V]
	// Last returns the greatest key that begins with prefix.
	Last(prefix string) (key string, ok bool)
	// Len counts the rows, at least roughly.
	Len() int
}

// memoryTable is a Table in memory.
type memoryTable[V any] struct{ rows btree.Map[string, V] }

func (t *memoryTable[V]) Get(key string) (V, bool)   { return t.rows.Get(key) }
func (t *memoryTable[V]) Put(key string, row V)      { t.rows.Set(key, row) }
func (t *memoryTable[V]) PutLater(key string, row V) { t.rows.Set(key, row) }
func (t *memoryTable[V]) Delete(key string)          { t.rows.Delete(key) }

func (t *memoryTable[V]) Scan(prefix, start string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		t.rows.Ascend(max(prefix, start), func(key string, row V) bool {
			return strings.HasPrefix(key, prefix) && yield(key, row)
		})
	}
}

func (t *memoryTable[V]) ScanBack(prefix string) iter.Seq2[string, V] {
	end, _ := prefixEnd(prefix)
	return t.ScanBefore(prefix, end)
}

// ScanBefore takes an end of "" for no end.
func (t *memoryTable[V]) ScanBefore(prefix, end string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		step := func(key string, row V) bool {
			if key == end && end != "" {
				return true
			}
			return strings.HasPrefix(key, prefix) && yield(key, row)
		}
		if end == "" {
			t.rows.Reverse(step)
		} else {
			t.rows.Descend(end, step)
		}
	}
}

// Last implements Table.
func (t *memoryTable[V]) Last(prefix string) (key string, ok bool) {
	key, _, ok = first(t.ScanBack(prefix))
	return key, ok
}

func (t *memoryTable[V]) Len() int { return t.rows.Len() }

// prefixEnd returns the smallest string greater than every string with prefix;
// false if there is none.
func prefixEnd(prefix string) (string, bool) {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			b[i]++
			return string(b[:i+1]), true
		}
	}
	return "", false
}

// first returns the first row of a scan.
func first[V any](rows iter.Seq2[string, V]) (key string, row V, ok bool) {
	for k, v := range rows {
		return k, v, true
	}
	return key, row, false
}

// count adds n to a counted row and deletes it at zero. It reports whether the
// row appeared or vanished.
func count(t Table[int], key string, n int) (toggled bool) {
	old, _ := t.Get(key)
	switch now := old + n; {
	case now < 0:
		panic("lineage: a support was withdrawn that was never given")
	case now == 0:
		t.Delete(key)
		return old != 0
	default:
		t.Put(key, now)
		return old == 0
	}
}
