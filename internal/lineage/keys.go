package lineage

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// RunID names a logical run: a UUIDv5 over its job and its slot.
type RunID [16]byte

// String returns the UUID's text.
func (r RunID) String() string {
	const digits = "0123456789abcdef"
	buf := make([]byte, 0, 36)
	for i, b := range r {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			buf = append(buf, '-')
		}
		buf = append(buf, digits[b>>4], digits[b&15])
	}
	return string(buf)
}

// MarshalText makes a RunID readable in JSON.
func (r RunID) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// IsZero reports whether r names no run.
func (r RunID) IsZero() bool { return r == RunID{} }

// A row's key is a string of parts of fixed length (IDs, runs, times, small
// numbers), so that rows of one prefix stand together, ordered by what follows.

type keyBuilder []byte

func keyOf(ids ...fact.ID) keyBuilder {
	k := make(keyBuilder, 0, 24*len(ids)+48)
	for _, id := range ids {
		k = append(k, id[:]...)
	}
	return k
}

func (k keyBuilder) id(id fact.ID) keyBuilder { return append(k, id[:]...) }

func (k keyBuilder) run(r RunID) keyBuilder { return append(k, r[:]...) }

func (k keyBuilder) time(t openlineage.Instant) keyBuilder {
	s := uint64(t.Sec) // below 2^40 until the year 34,000
	k = append(k, byte(s>>32), byte(s>>24), byte(s>>16), byte(s>>8), byte(s))
	return binary.BigEndian.AppendUint32(k, uint32(t.Nano))
}

func (k keyBuilder) byte(b byte) keyBuilder { return append(k, b) }

// number appends n so that keys order by it; NoMap is first.
func (k keyBuilder) number(n int) keyBuilder {
	return binary.BigEndian.AppendUint64(k, uint64(n+1))
}

func (k keyBuilder) String() string { return string(k) }

const (
	idLen   = 24
	runLen  = 16
	timeLen = 9
)

// idAt returns the ID that stands in a key at a byte offset.
func idAt(key string, at int) (id fact.ID) {
	copy(id[:], key[at:at+idLen])
	return id
}

func runAt(key string, at int) (r RunID) {
	copy(r[:], key[at:at+runLen])
	return r
}

func timeAt(key string, at int) openlineage.Instant {
	b := []byte(key[at : at+timeLen])
	return openlineage.Instant{Sec: int64(b[0])<<32 | int64(binary.BigEndian.Uint32(b[1:])), Nano: int32(binary.BigEndian.Uint32(b[5:]))}
}

// ParseRunID reads the text of a RunID.
func ParseRunID(s string) (r RunID, err error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err == nil && len(raw) == len(r) && RunID(raw).String() == strings.ToLower(s) {
		return RunID(raw), nil
	}
	return RunID{}, fmt.Errorf("%q is no UUID", s)
}
