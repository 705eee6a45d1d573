package ledger

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// generationsKept is into how many parts the window is cut: it always reaches
// back over at least all but one of them.
const generationsKept = 16

// window is what the ledger remembers of past deliveries: rows of bodies and of
// events, in generations. Rows are written into the newest generation only; one
// that is found in an older one stays there, unless it changes. An event's row is
// never in an older generation than its bodies' rows.
//
// The writer changes it, others read it at the same time.
type window struct {
	db          *pebble.DB
	bound       int64
	filterBound int64
	tally       *tally
	// generations, newest first. A slice once stored is not changed.
	generations atomic.Pointer[[]*generation]
	filters     sync.Mutex // held while filters are given out
}

// generation is one part of the window. The writer changes the counts of the
// newest.
type generation struct {
	id          uint32
	start       openlineage.Instant // when the first delivery in it was received
	keys, bytes atomic.Int64
	// filter holds every key once ready is set; nil where there is no room for it
	// and until it is made.
	filter atomic.Pointer[filter]
	ready  atomic.Bool
}

// generationBytes is the size at which a generation is closed.
func (w *window) generationBytes() int64 { return w.bound / generationsKept }

// capacity is about how many keys a full generation holds: 33 bytes for a body,
// 77 for an event with one body.
func (w *window) capacity() int64 { return w.generationBytes() / 48 }

// loadWindow reads the generations; s has the numbers of the newest.
func loadWindow(db *pebble.DB, opt *Options, t *tally, s *state) (*window, error) {
	w := &window{db: db, bound: opt.WindowBytes, filterBound: opt.FilterBytes, tally: t}
	it, err := db.NewIter(family(generationFamily))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var list []*generation
	for it.First(); it.Valid(); it.Next() {
		g, err := decodeGeneration(it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	if err := it.Error(); err != nil {
		return nil, err
	}
	slices.Reverse(list)
	newest := uint32(0)
	if len(list) > 0 {
		newest = list[0].id
	}
	if newest != s.generation {
		return nil, fmt.Errorf("%w: the newest generation of the window is %d and should be %d", ErrCorrupt, newest, s.generation)
	}
	if len(list) > 0 {
		list[0].keys.Store(s.keys)
		list[0].bytes.Store(s.bytes)
		// The writer adds its keys from now on, loadFilters those on disk.
		w.giveFilter(list[0], newFilter(w.capacity()), list)
	}
	w.generations.Store(&list)
	return w, nil
}

// giveFilter gives g the filter f if there is room for it: beside those of list,
// whose older ones go first. It reports whether g has it.
func (w *window) giveFilter(g *generation, f *filter, list []*generation) bool {
	w.filters.Lock()
	defer w.filters.Unlock()
	used := f.bytes()
	for _, other := range list {
		held := other.filter.Load()
		if held == nil || other == g {
			continue
		}
		if used += held.bytes(); used > w.filterBound && other.id < g.id {
			other.filter.Store(nil)
			used -= held.bytes()
		}
	}
	if used > w.filterBound {
		return false
	}
	g.filter.Store(f)
	return true
}

// reader looks rows up, as of its first look-up on disk. It is for one goroutine.
type reader struct {
	w           *window
	generations []*generation
	it          *pebble.Iterator
	key         [windowKeyBytes]byte
}

func (w *window) reader() *reader { return &reader{w: w, generations: *w.generations.Load()} }

// close gives the store's files back; closing twice is harmless.
func (r *reader) close() {
	if r.it != nil {
		_ = r.it.Close() // errors were returned by find
		r.it = nil
	}
}

// body returns the sequence of a body.
func (r *reader) body(id *fact.ID) (sequence uint64, ok bool, err error) {
	value, _, err := r.find(bodyRow, id)
	if err != nil || value == nil {
		return 0, false, err
	}
	d := decoder{rest: value}
	if sequence = d.uvarint(); d.bad {
		return 0, false, fmt.Errorf("%w: the row of a body is unreadable", ErrCorrupt)
	}
	return sequence, true, nil
}

// event returns the newest row of an event, nil if there is none.
func (r *reader) event(id *fact.ID) (*eventRow, error) {
	value, generation, err := r.find(eventKey, id)
	if err != nil || value == nil {
		return nil, err
	}
	return decodeEventRow(value, generation)
}

// find returns the newest row, valid until the next call; nil if there is none.
func (r *reader) find(kind byte, id *fact.ID) (value []byte, generation uint32, err error) {
	for _, g := range r.generations {
		f := g.filter.Load()
		filtered := f != nil && g.ready.Load()
		if filtered && !f.has(id) {
			continue
		}
		if r.it == nil {
			// Pebble does not consult the filters of its last level, where most rows
			// are, unless told to, and Get cannot be told.
			o := family(windowFamily)
			o.UseL6Filters = true
			if r.it, err = r.w.db.NewIter(o); err != nil {
				return nil, 0, err
			}
		}
		setWindowKey(&r.key, g.id, kind, id)
		found := r.it.SeekPrefixGE(r.key[:])
		if err := r.it.Error(); err != nil {
			return nil, 0, fmt.Errorf("looking up in the window: %w", err)
		}
		if found {
			value, err := r.it.ValueAndErr()
			return value, g.id, err
		}
		if filtered {
			r.w.tally.falseProbes.Add(1)
		}
	}
	return nil, 0, nil
}
