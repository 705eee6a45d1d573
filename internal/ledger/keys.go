package ledger

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// layout is the version of keys and values below. A ledger with a greater one
// is refused, one with a lesser one migrated (state.go).
//
//	v                              version row: layout, log ID
//	s                              state row (state.go): last sequence of the log,
//	                               current generation, its keys and bytes, counts
//	                               by outcome since ever, outcomes 1 to 5
//	t                              first sequence that Truncate left
//	l <sequence 8>                 log record (record.go)
//	g <generation 4>               a generation of the window: start, keys, bytes;
//	                               the current one's numbers are in the state row
//	w <generation 4> b <body 24>   its sequence
//	w <generation 4> e <event 24>  first seen, contents, drifts (row.go)
//	d <dictionary 4>               dictionary (dictionary.go)
//	c <hour 4> <kind 1> <outcome 1> <producer>   count (counts.go)
//
// Numbers in keys are big-endian, numbers in values uvarints.
//
// In layout 1 the state row was the last sequence, the totals had a row of their
// own, and the current generation's row had its numbers.
const layout = 2

const (
	logFamily        = 'l'
	generationFamily = 'g'
	windowFamily     = 'w'
	dictionaryFamily = 'd'
	countFamily      = 'c'

	bodyRow  = 'b'
	eventKey = 'e'
)

var (
	versionKey = []byte{'v'}
	stateKey   = []byte{'s'}
	firstKey   = []byte{'t'}
	totalsKey1 = []byte{'n'} // of layout 1
)

func logKey(sequence uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{logFamily}, sequence)
}

func dictionaryKey(id uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{dictionaryFamily}, id)
}

func generationKey(id uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{generationFamily}, id)
}

// windowStart is the lower bound of a generation's rows; that of the next
// generation is their upper bound.
func windowStart(generation uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{windowFamily}, generation)
}

const windowKeyBytes = 1 + 4 + 1 + len(fact.ID{})

// setWindowKey writes a window row's key into key.
func setWindowKey(key *[windowKeyBytes]byte, generation uint32, kind byte, id *fact.ID) {
	key[0] = windowFamily
	binary.BigEndian.PutUint32(key[1:], generation)
	key[5] = kind
	copy(key[6:], id[:])
}

// family returns the bounds of a family of keys.
func family(f byte) *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: []byte{f}, UpperBound: []byte{f + 1}}
}

func appendUvarints(b []byte, values ...uint64) []byte {
	for _, v := range values {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

// decoder eats values from the front of rest; bad sticks.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.bad, d.rest = true, nil
		return make([]byte, max(0, min(n, 64)))
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) id() (id fact.ID) {
	copy(id[:], d.bytes(len(id)))
	return id
}

// An instant is milliseconds since the year 1, doubled, plus one if nanoseconds
// within the millisecond follow: most event times have none.
func appendInstant(b []byte, i openlineage.Instant) []byte {
	milli, rest := uint64(i.Nano)/1e6, uint64(i.Nano)%1e6
	v := (uint64(i.Sec)*1000 + milli) << 1
	if rest == 0 {
		return binary.AppendUvarint(b, v)
	}
	return appendUvarints(b, v|1, rest)
}

func (d *decoder) instant() openlineage.Instant {
	v := d.uvarint()
	i := openlineage.Instant{Sec: int64((v >> 1) / 1000), Nano: int32((v>>1)%1000) * 1e6}
	if v&1 != 0 {
		i.Nano += int32(d.uvarint() % 1e6)
	}
	return i
}

// An offset is the distance of an instant from another one: milliseconds, with
// their sign, doubled, plus one if nanoseconds within the millisecond follow.
func appendOffset(b []byte, i, from openlineage.Instant) []byte {
	distance := millis(i) - millis(from)
	v := (uint64(distance<<1) ^ uint64(distance>>63)) << 1
	rest := uint64(i.Nano) % 1e6
	if rest == 0 {
		return binary.AppendUvarint(b, v)
	}
	return appendUvarints(b, v|1, rest)
}

func millis(i openlineage.Instant) int64 { return i.Sec*1000 + int64(i.Nano)/1e6 }

func (d *decoder) offset(from openlineage.Instant) openlineage.Instant {
	v := d.uvarint()
	milli := millis(from) + (int64(v>>2) ^ -int64(v>>1&1))
	i := openlineage.Instant{Sec: milli / 1000, Nano: int32(milli%1000) * 1e6}
	if v&1 != 0 {
		i.Nano += int32(d.uvarint() % 1e6)
	}
	return i
}

// uvarintAt reads one row that holds a number; ok is false if there is none.
func uvarintAt(db *pebble.DB, key []byte) (v uint64, ok bool, err error) {
	value, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer closer.Close()
	d := decoder{rest: value}
	v = d.uvarint()
	if d.bad {
		return 0, false, fmt.Errorf("%w: row %q is unreadable", ErrCorrupt, key)
	}
	return v, true, nil
}

// loadVersion reads the version row, or writes it where the ledger is new, and
// migrates what is older.
func (l *Ledger) loadVersion() error {
	value, closer, err := l.db.Get(versionKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return l.writeVersion()
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	d := decoder{rest: value}
	written := d.uvarint()
	l.id = string(d.rest)
	if d.bad || written == 0 || l.id == "" {
		return fmt.Errorf("%w: the version row is unreadable", ErrCorrupt)
	}
	if written > layout {
		return fmt.Errorf("%w: its layout is %d, this one reads up to %d", ErrNewer, written, layout)
	}
	if written < layout {
		if err := l.migrate(); err != nil {
			return fmt.Errorf("migrating from layout %d: %w", written, err)
		}
	}
	return nil
}

func (l *Ledger) writeVersion() error {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	l.id = hex.EncodeToString(random[:])
	b := l.db.NewBatch()
	defer b.Close()
	if err := l.setVersion(b); err != nil {
		return err
	}
	return l.commit(b, pebble.Sync)
}

func (l *Ledger) setVersion(b *pebble.Batch) error {
	return b.Set(versionKey, append(appendUvarints(nil, layout), l.id...), nil)
}
