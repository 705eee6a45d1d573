package ledger

import (
	"cmp"
	"encoding/binary"
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
// it is saved. The totals are in the state row, which each group writes; rows by
// hour and producer are many, and saved now and then.
type counts struct {
	db    *pebble.DB
	max   int
	now   func() time.Time
	delay time.Duration // how long they wait
	log   *slog.Logger

	// Not held while the disk is read: SeenRaw and the writer take it.
	mu      sync.Mutex
	hours   map[uint32]*hourCounts
	totals  [len(outcomes)]uint64 // by outcome, since ever
	unsaved int                   // how many are not in the rows yet
	waiting time.Time             // since when there are some
	fresh   bool                  // some of them are no retries
	purged  uint32                // the hour in which old rows were last removed
	timer   *time.Timer           // goes off when they have waited long enough
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

func newCounts(db *pebble.DB, opt *Options, s *state) *counts {
	return &counts{
		db: db, max: opt.MaxProducers, now: opt.Now, delay: opt.countsWait, log: opt.Logger,
		hours: map[uint32]*hourCounts{}, totals: s.totals,
	}
}

func (c *counts) totalsNow() [len(outcomes)]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.totals
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
	if c.unsaved++; c.unsaved == 1 {
		c.wait()
	}
	c.fresh = c.fresh || outcomeOf(k.outcome) != fact.Retry
}

// wait says that the first of those that are not saved waits from now on.
func (c *counts) wait() {
	c.waiting = time.Now()
	c.timer.Reset(c.delay)
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

// due reports whether it is time to save counts.
func (c *counts) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsaved >= countsUnsaved || c.unsaved > 0 && time.Since(c.waiting) >= c.delay
}

// save adds to b what changed since the last save, and reports whether there are
// others than of retries: those must be synced, so that a crash costs no more than
// Counts says. The writer calls it, which stops for good if b then fails.
func (c *counts) save(b *pebble.Batch) (fresh bool, err error) {
	for _, hour := range c.notLoaded() {
		c.load(hour)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evict()
	fresh, c.fresh, c.unsaved = c.fresh, false, 0
	for hour, h := range c.hours {
		if !h.loaded {
			// Begun just now: for the next save.
			c.unsaved += len(h.dirty)
			c.fresh = fresh
			continue
		}
		for k := range h.dirty {
			if err := b.Set(k.row(hour), appendUvarints(nil, h.n[k]), nil); err != nil {
				return false, err
			}
		}
		clear(h.dirty)
	}
	if c.unsaved > 0 {
		c.wait()
	}
	if now := hourOf(openlineage.InstantOf(c.now())); now != c.purged && now > countsKept {
		c.purged = now
		return fresh, b.DeleteRange(hourKey(0), hourKey(now-countsKept), nil)
	}
	return fresh, nil
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
// a restart. A crash, of the process or of the machine, may cost those of the last
// 200 ms, and those of retries since the last sync; Totals then says how many
// deliveries there were. Errors: ErrClosed, ErrFailed, ErrCorrupt; wrapped.
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
// after a restart. What Accept synced is counted with it, so no crash takes that
// back: New, Equivalent, Redescribed and Collision are as many as the records that
// the log ever had. A crash may cost retries that came alone: those that SeenRaw
// answered and those of calls of nothing else, since the last sync.
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
