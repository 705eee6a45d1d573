package embedded

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
)

// Families of keys: see the package comment.
const (
	versionFamily  = 'v'
	logFamily      = 'l'
	countFamily    = 'c'
	positionFamily = 'p'
	rowFamily      = 't'
	pageFamily     = 'g'
	// Of the commits, and the first of them that is kept.
	commitFamily      = 'k'
	firstCommitFamily = 'f'
)

func appendRowKey(dst []byte, t lineage.TableID, key string) []byte {
	return append(append(dst, rowFamily, byte(t)), key...)
}

func appendPageKey(dst []byte, c cluster, owner string) []byte {
	return append(append(dst, pageFamily, c.id), owner...)
}

// rows are the rows of one moment: of a Pebble snapshot, or of what the writer
// committed last. It implements lineage.Rows, for one goroutine.
type rows struct {
	db pebble.Reader
	// pages are the writer's, which alone changes them; nil for a reader.
	pages *pageCache
	// cache is what all readers share, nil for the writer; commit is that of the
	// reader.
	cache  *readCache
	commit uint64
	// used is the page that was asked for last: one owner's rows are read together.
	used   *page
	usedID pageID
	lookup *pebble.Iterator // with the filters of the last level
	scan   *pebble.Iterator // of no scan at the moment
	counts *counts
	key    []byte
	err    error
}

// aborted is what Fail panics with.
type aborted struct{ err error }

// Fail implements lineage.Rows: a row is not what was written.
func (r *rows) Fail(err error) { r.abort(fmt.Errorf("%w: %w", graph.ErrCorrupt, err)) }

// abort does not return: a row that cannot be read is not one that is absent, and a
// State that took it for that would come to nonsense, or to no end. Whoever runs a
// State does it in guard.
func (r *rows) abort(err error) {
	r.note(err)
	panic(aborted{err})
}

// note keeps the first error.
func (r *rows) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

// guard runs f and returns its error, or that with which rows made it end.
func guard(f func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case aborted:
			err = p.err
		default:
			panic(p)
		}
	}()
	return f()
}

// refresh lets look-ups see what was committed since.
func (r *rows) refresh() {
	for _, it := range []**pebble.Iterator{&r.lookup, &r.scan} {
		if *it != nil {
			if err := (*it).Close(); err != nil {
				r.note(readError(err))
			}
			*it = nil
		}
	}
}

// close gives the store's files back.
func (r *rows) close() error {
	r.refresh()
	return r.err
}

// value looks a key up, valid until the next call; nil if there is none.
func (r *rows) value(key []byte) []byte {
	if r.cache == nil || !shared(key) {
		return r.read(key)
	}
	text := r.cache.get(key, r.commit)
	if text == nil {
		if text = r.read(key); text != nil {
			text = bytes.Clone(text)
			r.cache.put(key, text, r.commit)
		}
	}
	return text
}

func (r *rows) read(key []byte) []byte {
	if r.lookup == nil {
		// Pebble does not consult the filters of its last level, where most rows are,
		// unless told to, and Get cannot be told.
		it, err := r.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
		if err != nil {
			r.abort(fmt.Errorf("reading the graph: %w", readError(err)))
		}
		r.lookup = it
	}
	if !r.lookup.SeekPrefixGE(key) {
		if err := r.lookup.Error(); err != nil {
			r.abort(fmt.Errorf("reading the graph: %w", readError(err)))
		}
		return nil
	}
	value, err := r.lookup.ValueAndErr()
	if err != nil {
		r.abort(fmt.Errorf("reading the graph: %w", readError(err)))
	}
	return value
}

// Get implements lineage.Rows.
func (r *rows) Get(t lineage.TableID, key string) []byte {
	c := clusters[t]
	if c != noCluster {
		p := r.page(c, key[:c.owner])
		if i, ok := p.find(t, key[c.owner:]); ok {
			return p.rows[i].value
		}
		if !p.more {
			return nil
		}
	}
	r.key = appendRowKey(r.key[:0], t, key)
	if value := r.value(r.key); value != nil {
		return append([]byte{}, value...)
	}
	return nil
}

var emptyPage = &page{}

// page returns the page of an owner, an empty one if there is none.
func (r *rows) page(c cluster, owner string) *page {
	if r.used != nil && r.usedID.cluster == c.id && string(r.usedID.owner[:c.owner]) == owner {
		return r.used
	}
	p := r.find(c, owner)
	r.used, r.usedID = p, pageOf(c, owner)
	return p
}

func (r *rows) find(c cluster, owner string) *page {
	if p := r.pages.get(c, owner); p != nil {
		return p
	}
	r.key = appendPageKey(r.key[:0], c, owner)
	p := emptyPage
	if text := r.value(r.key); text != nil {
		var err error
		if p, err = parsePage(text); err != nil {
			r.abort(fmt.Errorf("reading the graph: %w: %x", err, r.key))
		}
	} else if r.pages != nil {
		p = &page{}
	}
	r.pages.put(c, owner, p)
	return p
}

// Len implements lineage.Rows.
func (r *rows) Len(t lineage.TableID) int { return int(r.counts[t]) }

// Scan implements lineage.Rows.
func (r *rows) Scan(t lineage.TableID, from, to string, backward bool) iter.Seq2[string, []byte] {
	c := clusters[t]
	switch {
	case c == noCluster:
		return r.scanRows(t, from, to, backward)
	case len(from) >= c.owner && to != "" && to <= ownerEnd(from[:c.owner]):
		owner := from[:c.owner]
		end := ""
		if len(to) > c.owner && to[:c.owner] == owner {
			end = to[c.owner:]
		} else if to <= owner {
			return func(func(string, []byte) bool) {}
		}
		return r.scanPage(t, c, owner, from[c.owner:], end, backward)
	}
	return r.scanPages(t, c, from, to, backward)
}

// ownerEnd is the smallest key behind those of an owner, "\xff..." if there is
// none.
func ownerEnd(owner string) string {
	b := []byte(owner)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return owner + "\xff"
}

// scanRows scans rows that lie on their own.
func (r *rows) scanRows(t lineage.TableID, from, to string, backward bool) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		bounds := &pebble.IterOptions{LowerBound: appendRowKey(nil, t, from)}
		if to != "" {
			bounds.UpperBound = appendRowKey(nil, t, to)
		} else {
			bounds.UpperBound = appendRowKey(nil, t+1, "")
		}
		r.iterate(bounds, backward, func(key, value []byte) bool { return yield(string(key[2:]), value) })
	}
}

func (r *rows) iterate(bounds *pebble.IterOptions, backward bool, yield func(key, value []byte) bool) {
	it, err := r.scan, error(nil)
	if r.scan = nil; it != nil { // to make one costs more than most scans
		it.SetBounds(bounds.LowerBound, bounds.UpperBound)
	} else if it, err = r.db.NewIter(bounds); err != nil {
		r.abort(fmt.Errorf("reading the graph: %w", readError(err)))
	}
	done := false
	defer func() {
		if !done { // yield ended with a panic: see Fail
			_ = it.Close()
		}
	}()
	begin, next := it.First, it.Next
	if backward {
		begin, next = it.Last, it.Prev
	}
	for ok := begin(); ok; ok = next() {
		var value []byte
		if value, err = it.ValueAndErr(); err != nil || !yield(it.Key(), value) {
			break
		}
	}
	done = true
	if err = cmp.Or(err, it.Error()); err == nil && r.scan == nil {
		r.scan = it
		return
	}
	if err = cmp.Or(err, it.Close()); err != nil {
		r.abort(fmt.Errorf("reading the graph: %w", readError(err)))
	}
}

// scanPage scans the rows that a table has of one owner.
func (r *rows) scanPage(t lineage.TableID, c cluster, owner, from, to string, backward bool) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		p := r.page(c, owner)
		within := p.between(t, from, to)
		if !p.more {
			for i := range within {
				if backward {
					i = len(within) - 1 - i
				}
				if !yield(owner+within[i].suffix, within[i].value) {
					return
				}
			}
			return
		}
		low, high := owner+from, ownerEnd(owner)
		if to != "" {
			high = owner + to
		}
		next := 0
		at := func() *row {
			if backward {
				return &within[len(within)-1-next]
			}
			return &within[next]
		}
		for key, value := range r.scanRows(t, low, high, backward) {
			for next < len(within) && at().suffix < key[len(owner):] != backward {
				if w := at(); !yield(owner+w.suffix, w.value) {
					return
				}
				next++
			}
			if !yield(key, value) {
				return
			}
		}
		for ; next < len(within); next++ {
			if w := at(); !yield(owner+w.suffix, w.value) {
				return
			}
		}
	}
}

// scanPages scans the rows of many owners.
func (r *rows) scanPages(t lineage.TableID, c cluster, from, to string, backward bool) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		bounds := &pebble.IterOptions{LowerBound: appendPageKey(nil, c, from[:min(len(from), c.owner)]), UpperBound: []byte{pageFamily, c.id + 1}}
		r.iterate(bounds, backward, func(key, text []byte) bool {
			owner := string(key[2:])
			if to != "" && owner >= to {
				return backward
			}
			p, err := parsePage(text)
			if err != nil {
				r.abort(fmt.Errorf("reading the graph: %w: %x", err, key))
			}
			low, high := "", ""
			if len(from) > c.owner && from[:c.owner] == owner {
				low = from[c.owner:]
			}
			if len(to) > c.owner && to[:c.owner] == owner {
				high = to[c.owner:]
			}
			one := rows{db: r.db, pages: &pageCache{only: p}}
			defer one.refresh()
			more := true
			for key, value := range one.scanPage(t, c, owner, low, high, backward) {
				if more = yield(key, value); !more {
					break
				}
			}
			one.refresh()
			if one.err != nil {
				r.abort(one.err)
			}
			return more
		})
	}
}

// counts are how many rows tables have, for those of which somebody asks.
type counts [lineage.LastTable + 1]int64

// counted are the tables whose rows are counted.
var counted = []lineage.TableID{
	lineage.DatasetsTable, lineage.JobsTable, lineage.RunsTable, lineage.AttemptsTable, lineage.EventsTable, lineage.DerivationsTable,
}

// pageCache keeps the pages that the writer used lately. Its methods may be called
// on nil, which keeps nothing.
type pageCache struct {
	limit      int // of the bytes of one half
	young, old map[pageID]*page
	bytes      int
	only       *page // the one that it has, for a scan
}

// readerPages is what one half of a reader's cache takes.
const readerPages = 4 << 20

// pageID names a page.
type pageID struct {
	cluster byte
	owner   [24]byte // a run's, which is shorter, is followed by zeros
}

func pageOf(c cluster, owner string) (id pageID) {
	id.cluster = c.id
	copy(id.owner[:], owner)
	return id
}

func (p *pageCache) get(c cluster, owner string) *page {
	switch {
	case p == nil:
		return nil
	case p.only != nil:
		return p.only
	}
	key := pageOf(c, owner)
	if found := p.young[key]; found != nil {
		return found
	}
	found := p.old[key]
	if found != nil {
		p.keep(key, found)
	}
	return found
}

func (p *pageCache) put(c cluster, owner string, read *page) {
	if p != nil && p.only == nil {
		p.keep(pageOf(c, owner), read)
	}
}

// keep makes room by forgetting the older half.
func (p *pageCache) keep(key pageID, kept *page) {
	if p.bytes += kept.size + 256; p.bytes > p.limit || p.young == nil {
		p.old, p.young, p.bytes = p.young, map[pageID]*page{}, kept.size+256
	}
	p.young[key] = kept
}
