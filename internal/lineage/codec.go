package lineage

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// codec writes a row as bytes and reads it again. Both are part of the format of
// every store: a change needs a new layout version of the drivers.
type codec[V any] struct {
	put func(*encoder, V)
	get func(d *decoder, key string) V
}

// encoder writes numbers as uvarints and texts with their lengths before them.
type encoder struct {
	buf    []byte
	values *values
}

func (e *encoder) uint(v uint64)           { e.buf = binary.AppendUvarint(e.buf, v) }
func (e *encoder) int(v int)               { e.buf = binary.AppendVarint(e.buf, int64(v)) }
func (e *encoder) byte(v byte)             { e.buf = append(e.buf, v) }
func (e *encoder) id(v fact.ID)            { e.buf = append(e.buf, v[:]...) }
func (e *encoder) run(v RunID)             { e.buf = append(e.buf, v[:]...) }
func (e *encoder) bool(v bool)             { e.byte(flag(v)) }
func (e *encoder) text(v string)           { e.uint(uint64(len(v))); e.buf = append(e.buf, v...) }
func (e *encoder) len(n int)               { e.uint(uint64(n)) }
func (e *encoder) name(n openlineage.Name) { e.text(n.Namespace); e.text(n.Name) }

// time writes milliseconds since the year 1, doubled, plus one if nanoseconds
// within the millisecond follow: most times have none.
func (e *encoder) time(i openlineage.Instant) {
	milli, rest := uint64(i.Nano)/1e6, uint64(i.Nano)%1e6
	v := (uint64(i.Sec)*1000 + milli) << 1
	if rest == 0 {
		e.uint(v)
		return
	}
	e.uint(v | 1)
	e.uint(rest)
}

// ifSet writes whether something is there, and reports it.
func (e *encoder) ifSet(set bool) bool {
	e.bool(set)
	return set
}

// job writes the number of a job that events name, whose name is in the table of
// jobs; 0 for none.
func (e *encoder) job(n openlineage.Name) { e.uint(e.values.jobNumber(n)) }

// runID writes the 16 bytes of a UUID, where it is one as it is usually written.
func (e *encoder) runID(text string) {
	if id, err := ParseRunID(text); err == nil && id.String() == text {
		e.byte(1)
		e.run(id)
		return
	}
	e.byte(0)
	e.text(text)
}

func (e *encoder) mark(m mark) { e.buf = append(e.buf, m[:]...) }

// runIfSet writes a run that there may be none of.
func (e *encoder) runIfSet(r RunID) {
	if e.ifSet(!r.IsZero()) {
		e.run(r)
	}
}

func (e *encoder) runRef(r fact.RunRef) {
	if e.ifSet(!r.IsZero()) {
		e.job(r.Job)
		e.runID(r.RunID)
	}
}

func (e *encoder) attempt(a fact.Attempt) {
	e.job(a.Job)
	e.runID(a.RunID)
	e.int(a.Map)
}

func (e *encoder) slot(s fact.Slot) {
	e.byte(byte(s.Rule))
	e.text(s.Value)
}

func (e *encoder) dataset(r DatasetRef) {
	e.id(r.ID)
	e.name(r.Name)
}

func putList[T any](e *encoder, list []T, put func(T)) {
	e.len(len(list))
	for _, v := range list {
		put(v)
	}
}

// decoder eats values from the front of rest; bad sticks.
type decoder struct {
	rest   []byte
	bad    bool
	values *values
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) int() int {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return int(v)
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) bool() bool { return d.byte() != 0 }

func (d *decoder) id() (v fact.ID) {
	copy(v[:], d.take(idLen))
	return v
}

func (d *decoder) run() (v RunID) {
	copy(v[:], d.take(runLen))
	return v
}

func (d *decoder) text() string { return string(d.take(d.uint())) }

func (d *decoder) name() openlineage.Name {
	return openlineage.Name{Namespace: d.text(), Name: d.text()}
}

func (d *decoder) time() openlineage.Instant {
	v := d.uint()
	i := openlineage.Instant{Sec: int64((v >> 1) / 1000), Nano: int32((v>>1)%1000) * 1e6}
	if v&1 != 0 {
		i.Nano += int32(d.uint() % 1e6)
	}
	return i
}

func (d *decoder) job() openlineage.Name {
	n, ok := d.values.jobNumbered(d.uint())
	d.bad = d.bad || !ok
	return n
}

func (d *decoder) runID() string {
	if d.byte() == 0 {
		return d.text()
	}
	return d.run().String()
}

func (d *decoder) mark() (m mark) {
	copy(m[:], d.take(uint64(len(m))))
	return m
}

func (d *decoder) runIfSet() (r RunID) {
	if d.bool() {
		r = d.run()
	}
	return r
}

func (d *decoder) runRef() (r fact.RunRef) {
	if d.bool() {
		r.Job = d.job()
		r.RunID = d.runID()
	}
	return r
}

func (d *decoder) attempt() fact.Attempt {
	return fact.Attempt{Job: d.job(), RunID: d.runID(), Map: d.int()}
}

func (d *decoder) slot() fact.Slot { return fact.Slot{Rule: fact.Rule(d.byte()), Value: d.text()} }

func (d *decoder) dataset() DatasetRef { return DatasetRef{ID: d.id(), Name: d.name()} }

// getList reads a list; nil where it is empty.
func getList[T any](d *decoder, get func() T) []T {
	n := d.uint()
	if n > uint64(len(d.rest)) { // an element has at least one byte
		d.bad, d.rest = true, nil
		return nil
	}
	if n == 0 {
		return nil
	}
	list := make([]T, n)
	for i := range list {
		list[i] = get()
	}
	return list
}

// values keeps what many rows say in the same words.
type values struct {
	jobs       Table[openlineage.Name]
	numbers    numbers
	table      storedTable[[]byte]
	said       cache[*Said]
	statements cache[*fact.Statement]
}

func newValues(rows Rows) *values {
	v := &values{numbers: numbers{rows: rows}, table: storedTable[[]byte]{id: ValuesTable, rows: rows, codec: codec[[]byte]{
		put: func(e *encoder, text []byte) { e.buf = append(e.buf, text...) },
		get: func(d *decoder, _ string) []byte { return slices.Clone(d.rest) },
	}}}
	v.table.values = v
	v.table.clean = &cache[[]byte]{}
	return v
}

func (v *values) flush(changes Changes) { v.table.flush(true, changes) }

func (v *values) unreadable(t TableID, key string) {
	v.table.rows.Fail(fmt.Errorf("table %d: the row %x cannot be read", t, key))
}

// keep stores a value under the number of its digest, unless it is there.
func (v *values) keep(digest fact.ID, text func() []byte) uint64 {
	number, fresh := v.numbers.give(digest)
	if fresh {
		v.table.Put(numberKey(number), text())
	}
	return number
}

// jobNumber returns the number of a job, 0 of none.
func (v *values) jobNumber(n openlineage.Name) uint64 {
	if n == (openlineage.Name{}) {
		return 0
	}
	number, ok := v.numbers.jobs.get(n)
	if !ok {
		number, _ = v.numbers.give(fact.JobKey(n))
		v.numbers.jobs.put(n, number)
	}
	return number
}

// jobNumbered returns the name of the job that has a number.
func (v *values) jobNumbered(number uint64) (n openlineage.Name, ok bool) {
	if number == 0 {
		return n, true
	}
	if n, ok = v.numbers.jobName.get(number); ok {
		return n, true
	}
	id, ok := v.numbers.id(number)
	if !ok {
		return n, false
	}
	if n, ok = v.jobs.Get(string(id[:])); ok {
		v.numbers.jobName.put(number, n)
	}
	return n, ok
}

// value writes a reference to a value, which write encodes, and returns it.
func (e *encoder) value(domain string, write func(*encoder)) uint64 {
	sub := encoder{values: e.values}
	write(&sub)
	number := e.values.keep(fact.HashBytes(domain, sub.buf), func() []byte { return sub.buf })
	e.uint(number)
	return number
}

// value returns the bytes of a value that a row refers to.
func (d *decoder) value(number uint64) *decoder {
	text, ok := d.values.table.Get(numberKey(number))
	return &decoder{rest: text, bad: !ok, values: d.values}
}
