package ledger

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// What is remembered of one event. The first content and drift always stay; of
// the others the oldest goes first. A producer that says something else each
// time must not make one row grow without bound.
const (
	maxContents = 16
	maxDrifts   = 16
)

// rowBytes is about what an entry takes beside its log record.
const rowBytes = 160

// eventRow is what the window remembers of an event. Others may hold it once it
// is on disk, so a row that was read is a copy of its own.
type eventRow struct {
	firstSeen, firstEventTime openlineage.Instant
	contents                  []contentRow
	// generation and size are those of the row on disk, 0 if there is none.
	generation uint32
	size       int
	touched    bool
}

// contentRow is one content of an event with the drifts seen under it.
type contentRow struct {
	content fact.ID
	drifts  []uint64
}

// driftTag shortens a drift digest. Two drifts taken for one only make a
// redescription look like an equivalent, and the log keeps both bodies.
func driftTag(d fact.ID) uint64 { return binary.LittleEndian.Uint64(d[:]) }

func newEventRow(it *item) *eventRow {
	return &eventRow{
		firstSeen: it.received, firstEventTime: it.eventTime,
		contents: []contentRow{{content: it.content, drifts: []uint64{it.drift}}},
	}
}

// touch says that the row must be written: into the current generation, so that
// no body outlives its event in the window.
func (r *eventRow) touch() { r.touched = true }

// add remembers what it says and returns what it did.
func (r *eventRow) add(it *item) fact.Outcome {
	i := slices.IndexFunc(r.contents, func(c contentRow) bool { return c.content == it.content })
	if i < 0 {
		r.contents = appendBounded(r.contents, contentRow{content: it.content, drifts: []uint64{it.drift}}, maxContents)
		return fact.Collision
	}
	c := &r.contents[i]
	if slices.Contains(c.drifts, it.drift) {
		return fact.Equivalent
	}
	c.drifts = appendBounded(c.drifts, it.drift, maxDrifts)
	return fact.Redescribed
}

// appendBounded appends v and, where that makes more than bound, removes the
// second element.
func appendBounded[T any](s []T, v T, bound int) []T {
	s = append(s, v)
	if len(s) > bound {
		s = slices.Delete(s, 1, 2)
	}
	return s
}

func (r *eventRow) encode() []byte {
	b := make([]byte, 0, 64+len(r.contents)*40)
	b = appendInstant(b, r.firstSeen)
	b = appendInstant(b, r.firstEventTime)
	for i := range r.contents {
		c := &r.contents[i]
		b = append(b, c.content[:]...)
		b = appendUvarints(b, uint64(len(c.drifts)))
		for _, d := range c.drifts {
			b = binary.LittleEndian.AppendUint64(b, d)
		}
	}
	return b
}

func decodeEventRow(value []byte, generation uint32) (*eventRow, error) {
	d := decoder{rest: value}
	r := &eventRow{generation: generation, size: windowKeyBytes + len(value)}
	r.firstSeen, r.firstEventTime = d.instant(), d.instant()
	for len(d.rest) > 0 {
		c := contentRow{content: d.id()}
		for range min(d.uvarint(), maxDrifts+1) {
			c.drifts = append(c.drifts, binary.LittleEndian.Uint64(d.bytes(8)))
		}
		r.contents = append(r.contents, c)
	}
	if d.bad || len(r.contents) == 0 {
		return nil, fmt.Errorf("%w: the row of an event is unreadable", ErrCorrupt)
	}
	return r, nil
}
