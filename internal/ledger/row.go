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

// The value of an event's row:
//
//	drifts of the first content 1   how many
//	first seen                      an offset from rowEpoch
//	first event time                an offset from first seen: mostly seconds
//	content 24, its drifts 8 each
//	drifts, content, its drifts     of each further content
//
// Rows of layout 1 begin with first seen and first event time, as instants, and a
// content's number of drifts stands behind it. Their first byte is over maxDrifts:
// it is the first of a number of seven bytes, or 0 for an instant that is none.
func (r *eventRow) encode() []byte {
	b := make([]byte, 0, 64+len(r.contents)*40)
	for i := range r.contents {
		c := &r.contents[i]
		b = append(b, byte(len(c.drifts)))
		if i == 0 {
			b = appendOffset(b, r.firstSeen, rowEpoch)
			b = appendOffset(b, r.firstEventTime, r.firstSeen)
		}
		b = append(b, c.content[:]...)
		for _, d := range c.drifts {
			b = binary.LittleEndian.AppendUint64(b, d)
		}
	}
	return b
}

// rowEpoch is 2020-01-01: deliveries are received within decades of it.
var rowEpoch = openlineage.Instant{Sec: 63_713_433_600}

func decodeEventRow(value []byte, generation uint32) (*eventRow, error) {
	d := decoder{rest: value}
	r := &eventRow{generation: generation, size: windowKeyBytes + len(value)}
	if len(value) == 0 || value[0] == 0 || value[0] > maxDrifts {
		r.decode1(&d)
	} else {
		r.decode(&d)
	}
	if d.bad || len(r.contents) == 0 {
		return nil, fmt.Errorf("%w: the row of an event is unreadable", ErrCorrupt)
	}
	return r, nil
}

func (r *eventRow) decode(d *decoder) {
	for len(d.rest) > 0 {
		drifts := int(d.bytes(1)[0])
		if len(r.contents) == 0 {
			r.firstSeen = d.offset(rowEpoch)
			r.firstEventTime = d.offset(r.firstSeen)
		}
		r.contents = append(r.contents, d.content(d.id(), drifts))
	}
}

// decode1 reads what layout 1 wrote.
func (r *eventRow) decode1(d *decoder) {
	r.firstSeen, r.firstEventTime = d.instant(), d.instant()
	for len(d.rest) > 0 {
		id := d.id()
		r.contents = append(r.contents, d.content(id, int(min(d.uvarint(), maxDrifts+1))))
	}
}

func (d *decoder) content(id fact.ID, drifts int) contentRow {
	c := contentRow{content: id}
	for range drifts {
		c.drifts = append(c.drifts, binary.LittleEndian.Uint64(d.bytes(8)))
	}
	return c
}
