package ledger

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// Count is how many deliveries one producer made in one hour, by what they did.
type Count struct {
	Hour     time.Time // its beginning, UTC
	Producer string    // "other" past Options.MaxProducers an hour
	Kind     openlineage.Kind
	Outcome  fact.Outcome
	N        uint64
}

// otherProducers is who is counted past the bound.
const otherProducers = "other"

const (
	countsKept       = 90 * 24 // hours
	hoursInMemory    = 4
	maxProducerBytes = 200
)

// counts keeps how many deliveries came. What is on disk are absolute values, so
// that writing one twice is harmless. Counting never reads from the disk: an hour
// that is not in memory is counted from zero, and what is on disk is added when
// it is saved.
type counts struct {
	db  *pebble.DB
	max int
	now func() time.Time
	log *slog.Logger

	// Not held while the disk is read: SeenRaw and the writer take it.
	mu      sync.Mutex
	hours   map[uint32]*hourCounts
	totals  [len(outcomes)]uint64 // by outcome, since ever
	unsaved int
	savedAt time.Time
	purged  uint32 // the hour in which old rows were last removed
}

type hourCounts struct {
	loaded    bool // n holds what is on disk too
	n         map[countKey]uint64
	dirty     map[countKey]bool
	producers map[string]bool
}

type countKey struct {
	kind, outcome byte
	producer      string
}

func newHour() *hourCounts {
	return &hourCounts{n: map[countKey]uint64{}, dirty: map[countKey]bool{}, producers: map[string]bool{}}
}

func loadCounts(db *pebble.DB, opt *Options) (*counts, error) {
	c := &counts{
		db: db, max: opt.MaxProducers, now: opt.Now, log: opt.Logger, hours: map[uint32]*hourCounts{}, savedAt: time.Now(),
	}
	value, closer, err := db.Get(totalsKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	d := decoder{rest: value}
	for i := range c.totals[1:] {
		c.totals[1+i] = d.uvarint()
	}
	if d.bad {
		return nil, fmt.Errorf("%w: the row of the totals is unreadable", ErrCorrupt)
	}
	return c, nil
}

func hourOf(i openlineage.Instant) uint32 { return uint32(max(0, min(i.Hour(), 1<<32-2))) }

func hourKey(hour uint32) []byte { return binary.BigEndian.AppendUint32([]byte{countFamily}, hour) }

func (k *countKey) row(hour uint32) []byte {
	return append(append(hourKey(hour), k.kind, k.outcome), k.producer...)
}

// add counts one delivery.
func (c *counts) add(it *item, v *Verdict) {
	c.count(hourOf(it.received), countKey{kindCode(it.kind), outcomeCode(v.Outcome), cutProducer(it.producer)})
}

// cutProducer bounds a name without splitting a character.
func cutProducer(name string) string {
	if len(name) <= maxProducerBytes {
		return name
	}
	return strings.ToValidUTF8(name[:maxProducerBytes], "")
}

func (c *counts) count(hour uint32, k countKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hours[hour]
	if h == nil {
		h = newHour()
		c.hours[hour] = h
	}
	h.add(k, 1, c.max)
	c.totals[k.outcome]++
	c.unsaved++
}

func (h *hourCounts) add(k countKey, n uint64, bound int) {
	if !h.producers[k.producer] {
		if len(h.producers) < bound {
			h.producers[k.producer] = true
		} else {
			k.producer = otherProducers
		}
	}
	h.n[k] += n
	h.dirty[k] = true
}

// due reports whether it is time to save counts that no group has taken along.
func (c *counts) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsaved >= countsUnsaved || c.unsaved > 0 && time.Since(c.savedAt) >= countsUnsavedT
}

// save adds to b what changed since the last save. The writer calls it, which
// stops for good if b then fails.
func (c *counts) save(b *pebble.Batch) error {
	for _, hour := range c.notLoaded() {
		c.load(hour)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evict()
	if c.unsaved > 0 {
		if err := b.Set(totalsKey, appendUvarints(nil, c.totals[1:]...), nil); err != nil {
			return err
		}
	}
	c.unsaved, c.savedAt = 0, time.Now()
	for hour, h := range c.hours {
		if !h.loaded {
			c.unsaved += len(h.dirty) // begun just now: for the next save
			continue
		}
		for k := range h.dirty {
			if err := b.Set(k.row(hour), appendUvarints(nil, h.n[k]), nil); err != nil {
				return err
			}
		}
		clear(h.dirty)
	}
	if now := hourOf(openlineage.InstantOf(c.now())); now != c.purged && now > countsKept {
		c.purged = now
		return b.DeleteRange(hourKey(0), hourKey(now-countsKept), nil)
	}
	return nil
}

// evict forgets the oldest hours that an earlier save has put on disk.
func (c *counts) evict() {
	for _, hour := range slices.Sorted(maps.Keys(c.hours)) {
		if len(c.hours) <= hoursInMemory {
			return
		}
		if len(c.hours[hour].dirty) == 0 {
			delete(c.hours, hour)
		}
	}
}

func (c *counts) notLoaded() (hours []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for hour, h := range c.hours {
		if !h.loaded {
			hours = append(hours, hour)
		}
	}
	return hours
}

// load adds what is on disk to an hour that was counted from zero. What cannot be
// read is left out: no count is worth a delivery that is not taken.
func (c *counts) load(hour uint32) {
	onDisk := newHour()
	err := c.read(hour, hour+1, func(_ uint32, k countKey, n uint64) {
		onDisk.n[k] = n
		if k.producer != otherProducers {
			onDisk.producers[k.producer] = true
		}
	})
	if err != nil {
		c.log.Error("counts of an hour are lost", "hour", openlineage.Instant{Sec: int64(hour) * 3600}.String(), "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, n := range c.hours[hour].n {
		onDisk.add(k, n, c.max)
	}
	onDisk.loaded = true
	c.hours[hour] = onDisk
}

// read gives the rows of the hours from and before to, those that can be read.
func (c *counts) read(from, to uint32, give func(hour uint32, k countKey, n uint64)) error {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: hourKey(from), UpperBound: hourKey(to)})
	if err != nil {
		return err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		key, d := it.Key(), decoder{rest: it.Value()}
		n := d.uvarint()
		if len(key) < 7 || d.bad {
			c.log.Error("a count of deliveries cannot be read and is left out", "row", fmt.Sprintf("%x", key))
			continue
		}
		give(binary.BigEndian.Uint32(key[1:]), countKey{key[5], key[6], string(key[7:])}, n)
	}
	return it.Error()
}

// Counts returns the counts of deliveries since the hour that since lies in,
// sorted by hour, producer, kind and outcome. They reach back 90 days and survive
// a restart; a crash may cost those of retries since the last sync. Errors:
// ErrClosed, ErrFailed, ErrCorrupt; wrapped.
func (l *Ledger) Counts(since time.Time) ([]Count, error) {
	var list []Count
	err := l.do(func() (err error) {
		list, err = l.counts.since(hourOf(openlineage.InstantOf(since)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading counts: %w", err)
	}
	return list, nil
}

// Totals returns how many deliveries there were since ever, by what they did;
// an outcome that none had is absent. It reads memory only, and tells the same
// after a restart; a crash may cost retries since the last sync.
func (l *Ledger) Totals() map[fact.Outcome]uint64 {
	l.counts.mu.Lock()
	defer l.counts.mu.Unlock()
	totals := map[fact.Outcome]uint64{}
	for code, n := range l.counts.totals {
		if n > 0 {
			totals[outcomeOf(byte(code))] = n
		}
	}
	return totals
}

func (c *counts) since(hour uint32) ([]Count, error) {
	type at struct {
		hour uint32
		countKey
	}
	sum := map[at]uint64{}
	err := c.read(hour, 1<<32-1, func(hour uint32, k countKey, n uint64) { sum[at{hour, k}] = n })
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	for in, h := range c.hours {
		for k, n := range h.n {
			switch {
			case in < hour:
			case h.loaded: // what was read may have been saved since
				sum[at{in, k}] = n
			default:
				sum[at{in, k}] += n
			}
		}
	}
	c.mu.Unlock()
	list := make([]Count, 0, len(sum))
	for k, n := range sum {
		count := Count{
			Hour:     openlineage.Instant{Sec: int64(k.hour) * 3600}.Time(),
			Producer: k.producer, Outcome: outcomeOf(k.outcome), N: n,
		}
		if int(k.kind) < len(kinds) {
			count.Kind = kinds[k.kind]
		}
		list = append(list, count)
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.Producer, b.Producer), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Outcome, b.Outcome))
	})
	return list, nil
}
