package ledger

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// LogRecord is one body in the log.
type LogRecord struct {
	// Sequence numbers bodies in their order, from 1, without a hole.
	Sequence uint64
	Received time.Time
	// Outcome is what the delivery did, never Retry.
	Outcome fact.Outcome
	Body    fact.ID
	Payload []byte
}

// The value of a log record:
//
//	CRC-32C 4      over the sequence, big-endian, and all that follows
//	format 1       recordFormat
//	outcome 1
//	received       an instant
//	body 24        its digest; what the event is follows from the payload
//	dictionary     the dictionary that the payload is compressed with, 0 for none
//	size           of the payload, uncompressed
//	payload        a zstd frame
//
// The checksum is the log's own: it covers what a checksum of blocks does not,
// from the writer's memory to the reader's, and the record's place.
const (
	recordFormat = 2 // 1 had the digests of event and content before that of the body
	crcBytes     = 4
	// recordHead is about what stands before the payload.
	recordHead = crcBytes + 2 + 8 + len(fact.ID{}) + 3
	outcomeAt  = crcBytes + 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// outcomes are numbered in records and counts by their place here.
var outcomes = [...]fact.Outcome{1: fact.New, fact.Retry, fact.Equivalent, fact.Redescribed, fact.Collision}

func outcomeCode(o fact.Outcome) byte {
	for i, known := range outcomes {
		if known == o {
			return byte(i)
		}
	}
	return 0
}

func outcomeOf(code byte) fact.Outcome {
	if int(code) < len(outcomes) {
		return outcomes[code]
	}
	return ""
}

// kinds are numbered in counts by their place here; 0 is any other.
var kinds = [...]openlineage.Kind{1: openlineage.RunEvent, openlineage.JobEvent, openlineage.DatasetEvent}

func kindCode(k openlineage.Kind) byte {
	for i, known := range kinds {
		if known == k {
			return byte(i)
		}
	}
	return 0
}

// newRecord makes a record that has no sequence, outcome and checksum yet: seal
// adds them.
func newRecord(it *item, d *dictionary, payload []byte) []byte {
	b := make([]byte, crcBytes, 128+len(payload)/4)
	b = append(b, recordFormat, 0)
	b = appendInstant(b, it.received)
	b = append(b, it.body[:]...)
	b = appendUvarints(b, uint64(d.id), uint64(len(payload)))
	return d.compress(b, payload)
}

func seal(record []byte, sequence uint64, o fact.Outcome) {
	record[outcomeAt] = outcomeCode(o)
	binary.LittleEndian.PutUint32(record, checksum(record, sequence))
}

func checksum(record []byte, sequence uint64) uint32 {
	var place [8]byte
	binary.BigEndian.PutUint64(place[:], sequence)
	return crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, record[crcBytes:])
}

// packedRecord is a record whose payload is still compressed.
type packedRecord struct {
	LogRecord
	dictionary uint32
	size       int
	packed     []byte // within the value that it was read from
}

// openRecord reads a record and verifies its checksum.
func openRecord(value []byte, sequence uint64) (*packedRecord, error) {
	corrupt := func(why string) (*packedRecord, error) {
		return nil, fmt.Errorf("log record %d: %w: %s", sequence, ErrCorrupt, why)
	}
	if len(value) <= outcomeAt {
		return corrupt("it is too short")
	}
	if binary.LittleEndian.Uint32(value) != checksum(value, sequence) {
		return corrupt("its checksum does not fit")
	}
	if value[crcBytes] > recordFormat {
		return nil, fmt.Errorf("log record %d: %w: its format is %d", sequence, ErrNewer, value[crcBytes])
	}
	d := decoder{rest: value[outcomeAt+1:]}
	r := &packedRecord{LogRecord: LogRecord{Sequence: sequence, Outcome: outcomeOf(value[outcomeAt])}}
	r.Received = d.instant().Time()
	if value[crcBytes] == 1 {
		d.bytes(2 * len(fact.ID{}))
	}
	r.Body = d.id()
	r.dictionary, r.size = uint32(d.uvarint()), int(min(d.uvarint(), MaxPayload+1))
	r.packed = d.rest
	if d.bad || r.Outcome == "" || r.size > MaxPayload {
		return corrupt("it is unreadable")
	}
	return r, nil
}

// unpack returns the record with its payload.
func (r *packedRecord) unpack(dicts *dictionaries) (LogRecord, error) {
	d, err := dicts.get(r.dictionary)
	if err == nil {
		r.Payload, err = d.decompress(r.packed, r.size)
	}
	if err != nil {
		return LogRecord{}, fmt.Errorf("log record %d: %w", r.Sequence, err)
	}
	return r.LogRecord, nil
}
