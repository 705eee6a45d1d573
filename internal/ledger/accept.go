package ledger

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// RawDigest is the digest of a body's bytes as they arrived; the zero value is
// none. It finds byte-identical bodies without parsing them. Nothing is decided
// by it that Entry.Body would decide otherwise.
type RawDigest [16]byte

// DigestRaw returns the digest of a body.
func DigestRaw(body []byte) (d RawDigest) {
	sum := sha256.Sum256(body)
	copy(d[:], sum[:])
	return d
}

// Entry is one delivery, as normalize has read it.
type Entry struct {
	// Event, Content, Drift and Body are fact.Event's of these names. Event and
	// Body are required.
	Event, Content, Drift, Body fact.ID
	// EventTime is the event's own time.
	EventTime openlineage.Instant
	// Raw digests Payload for SeenRaw; optional.
	Raw RawDigest
	// Kind and Producer are what deliveries are counted by.
	Kind     openlineage.Kind
	Producer string
	// Payload is the body, at most MaxPayload bytes. The ledger keeps a compressed
	// copy; the caller may write to it again when Accept has returned.
	Payload []byte
	// Received is when the delivery arrived, as exact as the clock.
	Received time.Time
}

// MaxPayload bounds one payload, in bytes.
const MaxPayload = 256 << 20

// maxCallBytes bounds what a call takes in the log. It becomes one batch, and
// Pebble takes none of 4 GB.
const maxCallBytes = 1 << 30

// Verdict says what a delivery did.
type Verdict struct {
	Outcome fact.Outcome
	// Event is the entry's event ID, for those who ask by raw digest.
	Event fact.ID
	// Sequence is the place of the body in the log, for a retry that of the body
	// received first; Truncate may have removed that record.
	Sequence uint64
	// FirstSeen is when the event (not the body) was first received, as far as the
	// window reaches back, and FirstEventTime the event time that it then had.
	FirstSeen      time.Time
	FirstEventTime openlineage.Instant
}

// Accept takes deliveries in, in their order, and returns a verdict for each.
//
// The verdict of an entry is the first of these that is true:
//
//   - Retry: its body was accepted before. It is counted, nothing else is kept.
//   - New: its event is not known.
//   - Collision: its content was never seen under its event.
//   - Equivalent: its drift was seen under its event and content.
//   - Redescribed.
//
// Before, known and seen mean: by an entry before it in the log (of this call or
// any other), and within the window. Of one event sixteen contents are
// remembered, the first and the latest ones, and of each content sixteen drifts,
// the first and the latest ones. Everything but retries is appended to the log, in
// the order of the call, without a gap.
//
// A nil error promises what the package comment says. On ErrFull nothing of the
// call was kept. On any other error, ctx's included, each entry may or may not
// have been kept: to send them again is always right, they are retries then. A
// call whose ctx ends while it waits is answered at once, but the writer may
// still keep it.
//
// A call is never split over two commits; it may hold about a gigabyte of
// compressed payloads. Errors: ErrFull, ErrClosed, ErrFailed,
// ErrCorrupt, ctx's; wrapped.
func (l *Ledger) Accept(ctx context.Context, entries []Entry) ([]Verdict, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	defer l.leave()
	for i := range entries {
		if err := entries[i].check(); err != nil {
			return nil, fmt.Errorf("accepting entry %d of %d: %w", i+1, len(entries), err)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("accepting %d entries: %w", len(entries), err)
	}
	c, err := l.prepare(entries)
	if err != nil {
		return nil, fmt.Errorf("accepting %d entries: %w", len(entries), err)
	}
	if c.fresh == 0 {
		// All are retries of what is on disk: no need to wait for the writer.
		for i := range c.items {
			l.counts.add(&c.items[i], &c.verdicts[i])
			l.remember(&c.items[i], &c.verdicts[i])
		}
		l.tally.entries.Add(uint64(len(entries)))
		l.tally.note(c.verdicts)
		l.nudge()
		return c.verdicts, nil
	}
	if err := l.submit(ctx, c); err != nil {
		return nil, fmt.Errorf("accepting %d entries: %w", len(entries), err)
	}
	return c.verdicts, nil
}

func (e *Entry) check() error {
	switch {
	case e.Event.IsZero() || e.Body.IsZero():
		return fmt.Errorf("no event ID or no body digest")
	case len(e.Payload) > MaxPayload:
		return fmt.Errorf("a payload of %d bytes is more than %d", len(e.Payload), MaxPayload)
	case e.Received.Year() < 1 || e.Received.Year() > 9999:
		return fmt.Errorf("it was received in the year %d", e.Received.Year())
	}
	return nil
}

// call is what the writer gets to see of one Accept. It holds nothing of the
// caller's, who may have given up waiting.
type call struct {
	items    []item
	verdicts []Verdict
	// fresh counts the items that the writer must decide, bytes what they take.
	fresh, bytes int
	err          error
	done         chan struct{}
	// dictionary, if set, is to be kept; such a call has no items.
	dictionary *dictionary
}

// item is an entry without its payload.
type item struct {
	event, content, body fact.ID
	drift                uint64
	eventTime, received  openlineage.Instant
	raw                  RawDigest
	kind                 openlineage.Kind
	producer             string
	// known says that it is a retry of a body on disk and has its verdict.
	known bool
	// record is what goes to the log; nil if it is known.
	record []byte
}

func newCall(entries []Entry) *call {
	c := &call{items: make([]item, len(entries)), verdicts: make([]Verdict, len(entries)), done: make(chan struct{})}
	for i := range entries {
		e := &entries[i]
		c.items[i] = item{
			event: e.Event, content: e.Content, body: e.Body, drift: driftTag(e.Drift), eventTime: e.EventTime,
			received: openlineage.InstantOf(e.Received), raw: e.Raw, kind: e.Kind, producer: e.Producer,
		}
	}
	return c
}

// prepare does all that need not be done by the writer.
func (l *Ledger) prepare(entries []Entry) (*call, error) {
	c := newCall(entries)
	if err := l.do(func() error { return l.lookUp(c) }); err != nil {
		return nil, err
	}
	return c, l.pack(c, entries)
}

// lookUp finds the retries of what is on disk, so that the writer need not.
func (l *Ledger) lookUp(c *call) error {
	look := l.window.reader()
	defer look.close()
	for i := range c.items {
		it := &c.items[i]
		var err error
		if it.known, err = l.retryOnDisk(look, it, &c.verdicts[i]); err != nil {
			return err
		}
		if it.known {
			continue
		}
		// The writer looks again. What cannot be read is this call's error, not that
		// of all who happen to be in one group with it.
		if _, err := look.event(&it.event); err != nil {
			return err
		}
	}
	return nil
}

// pack makes the records of all but the retries.
func (l *Ledger) pack(c *call, entries []Entry) error {
	for i := range c.items {
		it := &c.items[i]
		if it.known {
			continue
		}
		it.record = newRecord(it, l.dicts.current.Load(), entries[i].Payload)
		c.fresh++
		c.bytes += len(it.record) + rowBytes
		l.learn.offer(entries[i].Payload)
		if c.bytes > maxCallBytes {
			return fmt.Errorf("more than %d bytes at once", maxCallBytes)
		}
	}
	return nil
}

// retryOnDisk reports whether the body of it is on disk already, and gives the
// verdict. A body that the writer has committed but not yet synced is not: an
// answer now would promise what a crash can still take back.
func (l *Ledger) retryOnDisk(look *reader, it *item, v *Verdict) (bool, error) {
	sequence, ok, err := look.body(&it.body)
	if err != nil || !ok || sequence > l.durable.Load() {
		return false, err
	}
	row, err := look.event(&it.event)
	if err != nil {
		return false, err
	}
	*v, err = l.retry(it, sequence, row)
	return err == nil, err
}

// retry is the verdict over the body at sequence. row is nil where the event is
// not known though its body is: the rules of identity have changed since, and
// the body now makes another event.
func (l *Ledger) retry(it *item, sequence uint64, row *eventRow) (Verdict, error) {
	v := Verdict{Outcome: fact.Retry, Event: it.event, Sequence: sequence, FirstEventTime: it.eventTime}
	if row != nil {
		v.FirstSeen, v.FirstEventTime = row.firstSeen.Time(), row.firstEventTime
		return v, nil
	}
	received, err := l.receivedAt(sequence)
	if err != nil {
		return Verdict{}, err
	}
	if received.IsZero() {
		received = it.received
	}
	v.FirstSeen = received.Time()
	return v, nil
}

// submit gives c to the writer and waits for its answer.
func (l *Ledger) submit(ctx context.Context, c *call) error {
	select {
	case l.queue <- c:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.stop.Failed():
		return l.stop.Err()
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	case <-l.stop.Failed():
		return l.stop.Err()
	}
}
