package ledger

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/graphd/graphd/internal/fact"
)

// What ends the draining of the queue: enough entries to pay for the sync, or so
// many bytes that Pebble would not put the group into a memtable but beside it.
const (
	groupEntries = 512
	groupBytes   = 2 << 20
)

// write is the writer: the only goroutine that decides and that writes entries.
func (l *Ledger) write() {
	defer close(l.wrote)
	var calls []*call
	for {
		select {
		case c, open := <-l.queue:
			if !open {
				return
			}
			calls = l.drain(append(calls[:0], c), len(calls) > 1)
			l.commitGroup(calls)
			for _, c := range calls {
				close(c.done)
			}
			clear(calls)
			l.nudge() // if it failed
		case <-l.wake:
			if len(l.queue) > 0 || !l.counts.due() {
				continue // the next group takes them along, or the last one did
			}
			if err := l.saveCounts(false); err != nil && !l.stop.Stopped() {
				l.log.Error("counts were not saved", "error", err)
			}
		}
	}
}

// drain takes what else is queued, and where gather says so waits for it once.
func (l *Ledger) drain(calls []*call, gather bool) []*call {
	entries, bytes := len(calls[0].items), calls[0].bytes
	for entries < groupEntries && bytes < groupBytes {
		select {
		case c, open := <-l.queue:
			if !open {
				return calls
			}
			calls = append(calls, c)
			entries, bytes = entries+len(c.items), bytes+c.bytes
		default:
			if !gather {
				return calls
			}
			gather = false
			time.Sleep(gatherPause)
		}
	}
	return calls
}

// gatherPause is how long a group waits for more where the one before had more than
// one call: under load a sync, and all that comes with a group, serves more of them.
const gatherPause = 500 * time.Microsecond

// commitGroup decides over calls in their order, keeps them with one sync and
// sets their verdicts and errors.
func (l *Ledger) commitGroup(calls []*call) {
	g := l.newGroup()
	defer g.close()
	if err := corrupted(g.run(calls), false); err != nil {
		for _, c := range calls {
			c.err = err
		}
	}
}

// group is one commit in the making. Nothing that others can see changes before
// it is on disk.
type group struct {
	*Ledger
	batch *pebble.Batch
	look  *reader
	last  uint64 // the last sequence given out
	// What this group has decided so far, ahead of what look can see.
	bodies map[fact.ID]uint64
	events map[fact.ID]*eventRow
	added  []*item
	room   int64 // bytes that may still be kept
	change windowChange
}

func (l *Ledger) newGroup() *group {
	return &group{
		Ledger: l, batch: l.db.NewBatch(), look: l.window.reader(), last: l.durable.Load(),
		bodies: map[fact.ID]uint64{}, events: map[fact.ID]*eventRow{}, room: l.space.room(),
	}
}

func (g *group) close() {
	g.look.close()
	_ = g.batch.Close() // it only gives memory back
}

func (g *group) run(calls []*call) error {
	for _, c := range calls {
		if err := g.take(c); err != nil {
			return err
		}
	}
	// Deciding has read the window for the last time; the iterator would pin what
	// the commit replaces.
	g.look.close()
	for _, c := range calls {
		for i := range c.items {
			if c.err == nil {
				g.counts.add(&c.items[i], &c.verdicts[i])
			}
		}
	}
	if err := g.keep(calls); err != nil {
		return err
	}
	g.publish(calls)
	return nil
}

// take decides over one call. An error is the whole group's: a look-up failed.
func (g *group) take(c *call) error {
	if c.dictionary != nil {
		return g.batch.Set(dictionaryKey(c.dictionary.id), c.dictionary.row(), nil)
	}
	if int64(c.bytes) > g.room {
		return g.takeFull(c)
	}
	g.room -= int64(c.bytes)
	for i := range c.items {
		if err := g.decide(&c.items[i], &c.verdicts[i]); err != nil {
			return err
		}
	}
	return nil
}

// takeFull answers a call for which there is no room: retries need none.
func (g *group) takeFull(c *call) error {
	for i := range c.items {
		it, v := &c.items[i], &c.verdicts[i]
		if it.known {
			continue
		}
		known, err := g.decideRetry(it, v)
		if err != nil {
			return err
		}
		if !known {
			c.err = fmt.Errorf("%w: %s", ErrFull, g.space.describe())
			return nil
		}
	}
	return nil
}

func (g *group) decideRetry(it *item, v *Verdict) (known bool, err error) {
	sequence, known := g.bodies[it.body]
	if !known {
		if sequence, known, err = g.look.body(&it.body); err != nil || !known {
			return false, err
		}
	}
	row, err := g.event(it)
	if err != nil {
		return false, err
	}
	*v, err = g.retry(it, sequence, row)
	return true, err
}

// event returns the row of it's event as of now, nil if there is none.
func (g *group) event(it *item) (*eventRow, error) {
	if row, ok := g.events[it.event]; ok {
		return row, nil
	}
	row, err := g.look.event(&it.event)
	if err != nil {
		return nil, err
	}
	g.events[it.event] = row
	return row, nil
}

// decide gives the verdict over it and, unless it is a retry, appends it.
func (g *group) decide(it *item, v *Verdict) error {
	if it.known {
		return nil
	}
	if known, err := g.decideRetry(it, v); err != nil || known {
		return err
	}
	row, err := g.event(it)
	if err != nil {
		return err
	}
	outcome := fact.New
	if row == nil {
		row = newEventRow(it)
		g.events[it.event] = row
	} else {
		outcome = row.add(it)
	}
	row.touch()
	g.last++
	g.bodies[it.body] = g.last
	g.added = append(g.added, it)
	*v = Verdict{
		Outcome: outcome, Event: it.event, Sequence: g.last,
		FirstSeen: row.firstSeen.Time(), FirstEventTime: row.firstEventTime,
	}
	seal(it.record, g.last, outcome)
	// The record of a log is the payload with what identifies it.
	g.tally.rows.Add(-1)
	g.tally.rowBytes.Add(-int64(len(it.record) - recordHead + len(logKey(0))))
	return g.batch.Set(logKey(g.last), it.record, nil)
}

// keep writes the group and waits until it is on disk.
func (g *group) keep(calls []*call) error {
	// Otherwise only retries are counted, whose bodies are on disk: they may wait
	// for the next sync.
	sync := len(g.added) > 0 || needsSync(calls)
	if g.counts.due() {
		fresh, err := g.counts.save(g.batch)
		if err != nil {
			return err
		}
		sync = sync || fresh
	}
	s := g.state
	if len(g.added) > 0 {
		g.change = g.window.change(g.added, g.bodies, g.events)
		if err := g.change.write(g.batch); err != nil {
			return err
		}
		s.last = g.last
		g.change.update(&s)
	}
	if err := g.saveState(g.batch, s); err != nil {
		return err
	}
	g.space.wrote(g.batch.Len())
	return g.commit(g.batch, writeOptions(sync))
}

func writeOptions(sync bool) *pebble.WriteOptions {
	if sync {
		return pebble.Sync
	}
	return pebble.NoSync
}

func needsSync(calls []*call) bool {
	for _, c := range calls {
		if c.dictionary != nil {
			return true
		}
	}
	return false
}

// publish makes the group visible; it is on disk.
func (g *group) publish(calls []*call) {
	if len(g.added) > 0 {
		g.window.apply(&g.change)
		g.durable.Store(g.last)
		g.progress.wake(false)
	}
	for _, c := range calls {
		switch {
		case c.err != nil:
		case c.dictionary != nil:
			g.dicts.adopt(c.dictionary)
		default:
			for i := range c.items {
				g.remember(&c.items[i], &c.verdicts[i])
			}
			g.tally.entries.Add(uint64(len(c.items)))
			g.tally.note(c.verdicts)
		}
	}
	g.tally.groups.Add(1)
}

// note counts what was known and what was not.
func (t *tally) note(verdicts []Verdict) {
	for i := range verdicts {
		if verdicts[i].Outcome == fact.New {
			t.misses.Add(1)
		} else {
			t.hits.Add(1)
		}
	}
}

// commit writes a batch. Synced, a nil error says that it is on disk. An error
// leaves nobody knowing what is, so it stops the ledger.
func (l *Ledger) commit(b *pebble.Batch, sync *pebble.WriteOptions) error {
	if b.Empty() {
		return nil
	}
	// Beside keys and values a batch has a header of 12 bytes, and a kind and two
	// lengths of one or two bytes each.
	l.tally.rows.Add(int64(b.Count()))
	l.tally.rowBytes.Add(int64(b.Len() - 12 - 3*int(b.Count())))
	var err error
	if !sync.GetSync() {
		err = l.db.Apply(b, sync)
	} else if err = l.db.ApplyNoSyncWait(b, sync); err == nil {
		// In two steps, since Pebble ends the process where Apply cannot sync.
		err = b.SyncWait()
	}
	if err != nil {
		l.stop.Fail(err)
		return l.stop.Err()
	}
	return nil
}

// saveCounts writes the counts that no group has taken along, and the state row
// if the totals are others. With sync, or where there are others than of retries,
// they are on disk when it returns nil.
func (l *Ledger) saveCounts(sync bool) error {
	if l.stop.Stopped() {
		return l.stop.Err()
	}
	b := l.db.NewBatch()
	defer b.Close()
	fresh, err := l.counts.save(b)
	if err != nil {
		return err
	}
	if err := l.saveState(b, l.state); err != nil {
		return err
	}
	return l.commit(b, writeOptions(sync || fresh))
}

// countsUnsaved is how many counts are saved at the latest. Fewer are saved when
// the first has waited for Options.countsWait: by the next group or, if none comes,
// on their own.
const countsUnsaved = 1024

// nudge asks the writer to save counts if it is time.
func (l *Ledger) nudge() {
	if l.counts.due() {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}
