package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/graph/query"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/namesearch"
	"github.com/graphd/graphd/internal/openlineage"
)

const (
	// settleAtOnce bounds the Todos done in one transaction, beside those of the
	// events that are merged in it.
	settleAtOnce = 200
	// The rows that may wait are written, and with them the positions, when the
	// oldest has waited so long, or so many events have been merged since.
	longestWait, waitingEvents = time.Minute, 131_072
)

// writer is the one that changes the graph: the State with what is not committed
// yet. Store.mu guards it.
type writer struct {
	s     *Store
	rows  *rows
	state *lineage.State
	// sequence is the place in the log of the event that is being merged.
	sequence  uint64
	merged    merged // as of the last commit and since
	counts    counts
	positions map[lane]uint64
	moved     map[lane]bool // since they were written
	since     time.Time     // when they were written
	events    int           // merged since
	scratch   []byte
	key       []byte
}

type lane struct {
	log    string
	number int
}

// newWriter begins from what is committed, and forgets everything else.
func (s *Store) newWriter() error {
	w := &writer{
		s: s, rows: &rows{db: s.db, pages: &pageCache{limit: s.opt.pageBytes()}}, positions: map[lane]uint64{}, moved: map[lane]bool{},
		since: time.Now(),
	}
	w.rows.counts = &w.counts
	w.state = lineage.NewStored(s.opt.Version, w.rows)
	w.state.Details = &details{Table: w.state.Details, rows: w.rows, archive: s.opt.Archive, w: w}
	w.state.NewName = func(kind fact.EntityKind, id fact.ID, name openlineage.Name) {
		s.names.Add(namesearch.Entry{Kind: kind, ID: id, Name: name})
	}
	if err := w.load(); err != nil {
		return err
	}
	if s.w != nil {
		err := s.w.rows.close()
		s.opt.Logger.Warn("the graph begins again from what is on disk", "error", err)
	}
	s.w = w
	c := w.counts
	s.counts.Store(&c)
	return nil
}

// writing runs f with the writer. One that could not read something knows nothing any
// more, and begins again from what is on disk.
func (s *Store) writing(f func(*writer) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w.rows.err != nil { // it could not begin again
		if err := s.newWriter(); err != nil {
			return err
		}
	}
	w := s.w
	err := guard(func() error { return f(w) })
	if err != nil && s.w == w && w.rows.err != nil {
		err = errors.Join(err, s.newWriter())
	}
	return err
}

// load reads counts, positions and what was merged.
func (w *writer) load() error {
	if err := w.merged.load(w.s.db); err != nil {
		return err
	}
	w.s.last.Store(max(w.s.last.Load(), w.merged.sequence))
	it, err := w.s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{countFamily}, UpperBound: []byte{positionFamily + 1}})
	if err != nil {
		return readError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		switch {
		case key[0] == countFamily && len(key) == 2 && int(key[1]) < len(w.counts):
			n, _ := binary.Varint(it.Value())
			w.counts[key[1]] = n
		case key[0] == positionFamily && len(key) > 9:
			n, _ := binary.Uvarint(it.Value())
			w.positions[lane{string(key[9:]), int(binary.BigEndian.Uint64(key[1:]))}] = n
		}
	}
	return cmp.Or(readError(it.Error()), readError(it.Close()))
}

// Write implements graph.Writer.
func (s *Store) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	standings, err := do(ctx, s, func() ([]graph.Standing, error) {
		var standings []graph.Standing
		err := s.writing(func(w *writer) (err error) {
			standings, err = w.write(b)
			return err
		})
		return standings, err
	})
	if err != nil {
		return nil, fmt.Errorf("writing %d events: %w", len(b.Deliveries), err)
	}
	return standings, nil
}

// Settle implements graph.Writer.
func (s *Store) Settle(ctx context.Context) (more bool, err error) {
	more, err = do(ctx, s, func() (more bool, err error) {
		err = s.writing(func(w *writer) (err error) {
			more, err = w.settle(false)
			return err
		})
		return more, err
	})
	if err != nil {
		return false, fmt.Errorf("settling: %w", err)
	}
	return more, nil
}

// Position implements graph.Writer.
func (s *Store) Position(ctx context.Context, log string, number int) (uint64, error) {
	position, err := do(ctx, s, func() (uint64, error) {
		return s.number(positionKey(nil, lane{log, number}))
	})
	if err != nil {
		return 0, fmt.Errorf("reading a position: %w", err)
	}
	return position, nil
}

// number reads a row that is one number, 0 if there is none.
func (s *Store) number(key []byte) (uint64, error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, readError(err)
	}
	n, _ := binary.Uvarint(value)
	return n, closer.Close()
}

func positionKey(dst []byte, l lane) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, positionFamily), uint64(l.number))
	return append(dst, l.log...)
}

func (w *writer) write(b graph.Batch) ([]graph.Standing, error) {
	if err := w.s.room(); err != nil {
		return nil, err
	}
	for _, d := range b.Deliveries {
		w.sequence = d.Sequence
		w.state.Merge(d.Event)
		if d.Sequence > 0 {
			w.state.Log(d.Event, d.Sequence)
			w.merged.note(d)
		}
	}
	w.sequence = 0
	if l := (lane{b.Log, b.Lane}); b.Through > w.positions[l] {
		w.positions[l] = b.Through
		w.moved[l] = true
	}
	w.events += len(b.Deliveries)
	// What an event leads to is mostly done in three steps: its attempt, those under
	// it, and the generations that they are in.
	for range 3 {
		if w.state.Settle(len(b.Deliveries)+settleAtOnce) == 0 {
			break
		}
	}
	standings := query.Standings(w.state, b.Deliveries)
	if err := w.commit(w.waited()); err != nil {
		return nil, err
	}
	w.s.last.Store(max(w.s.last.Load(), w.merged.sequence))
	return standings, nil
}

// settle does a part of what is pending. Where nothing is, or if whole, it writes
// the rows that wait.
func (w *writer) settle(whole bool) (more bool, err error) {
	done := w.state.Settle(settleAtOnce)
	more = w.state.Pending(1) > 0
	whole = whole && !more || w.waited()
	if done == 0 && !whole {
		return more, w.rows.err
	}
	return more, w.commit(whole)
}

// waited reports whether the rows that wait should be written.
func (w *writer) waited() bool {
	return len(w.moved) > 0 && (w.events >= waitingEvents || time.Since(w.since) >= longestWait)
}

// commit writes what was changed; whole says that this is everything. After an
// error the writer has to begin again from what is on disk.
func (w *writer) commit(whole bool) (err error) {
	b := w.s.db.NewBatch()
	defer b.Close()
	defer func() {
		if err != nil {
			w.rows.note(err) // so that writing begins again
		}
	}()
	before := w.counts
	if err := w.flush(b, whole); err != nil {
		return err
	}
	for _, t := range counted {
		if w.counts[t] != before[t] {
			if err := b.Set([]byte{countFamily, byte(t)}, binary.AppendVarint(nil, w.counts[t]), nil); err != nil {
				return err
			}
		}
	}
	if whole {
		for l := range w.moved {
			if err := b.Set(positionKey(nil, l), binary.AppendUvarint(nil, w.positions[l]), nil); err != nil {
				return err
			}
		}
	}
	if !b.Empty() {
		if err := w.merged.add(b); err != nil {
			return err
		}
		// Beside keys and values a batch has a header of 12 bytes, and a kind and two
		// lengths of one or two bytes each.
		w.s.written.rows.Add(int64(b.Count()))
		w.s.written.bytes.Add(int64(b.Len() - 12 - 3*int(b.Count())))
		// The log is what is durable.
		if err := b.Commit(pebble.NoSync); err != nil {
			return readError(err)
		}
	}
	w.s.cache.commit.Add(1)
	w.rows.refresh()
	if whole {
		w.events, w.since = 0, time.Now()
		clear(w.moved)
	}
	c := w.counts
	w.s.counts.Store(&c)
	return w.rows.err
}

// flush puts the State's changes into a batch.
func (w *writer) flush(b *pebble.Batch, whole bool) (err error) {
	touched := map[pageID]*page{}
	note := func(bad error) {
		if err == nil {
			err = bad
		}
	}
	// spill writes the rows of an owner that lie outside of its page from now on.
	spill := func(owner string, p *page) {
		for _, r := range p.overflow() {
			w.key = appendRowKey(w.key[:0], r.table, owner+r.suffix)
			note(w.put(b, r.value))
		}
	}
	w.state.Flush(whole, func(t lineage.TableID, key string, value []byte) {
		c := clusters[t]
		if c != noCluster {
			owner := key[:c.owner]
			// The cache may have forgotten a page that was changed a moment ago: what is
			// on disk is older than it.
			p := touched[pageOf(c, owner)]
			if p == nil {
				p = w.rows.page(c, owner)
			}
			here, more := p.set(t, key[c.owner:], value)
			if here {
				w.counts[t] += int64(more)
				if p.dirty {
					touched[pageOf(c, owner)] = p
				}
				if p.size > fullBytes {
					spill(owner, p)
				}
				return
			}
		}
		note(w.setRow(b, t, key, value))
	})
	if err != nil || w.rows.err != nil {
		return errors.Join(err, w.rows.err)
	}
	ids := slices.SortedFunc(maps.Keys(touched), func(a, b pageID) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), bytes.Compare(a.owner[:], b.owner[:]))
	})
	var text []byte
	for _, id := range ids {
		p := touched[id]
		p.dirty = false
		owner := string(id.owner[:])
		if id.cluster == runPage.id {
			owner = owner[:runPage.owner]
		}
		spill(owner, p)
		w.key = append(append(w.key[:0], pageFamily, id.cluster), owner...)
		switch {
		case len(p.rows) > 0 || p.more:
			text = p.append(text[:0], &w.scratch)
			note(w.put(b, text))
			p.had = true
		case p.had:
			note(w.put(b, nil))
			p.had = false
		}
	}
	return err
}

// setRow writes a row that lies on its own.
func (w *writer) setRow(b *pebble.Batch, t lineage.TableID, key string, value []byte) error {
	w.key = appendRowKey(w.key[:0], t, key)
	if slices.Contains(counted, t) {
		had := w.rows.value(w.key) != nil
		switch {
		case had && value == nil:
			w.counts[t]--
		case !had && value != nil:
			w.counts[t]++
		}
	}
	return w.put(b, value)
}

// put sets what is under w.key, nil deletes it, and tells the readers' cache. The
// batch keeps a copy.
func (w *writer) put(b *pebble.Batch, value []byte) error {
	w.s.cache.change(w.key)
	if value == nil {
		return b.Delete(w.key, nil)
	}
	return b.Set(w.key, value, nil)
}
