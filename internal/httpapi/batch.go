package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/jsontree"
)

// The answer to a batch, in the shape of the standard (OpenLineage.yml,
// postEventBatch), and a receipt for each event beside it.
type batchAnswer struct {
	// Status is success or partial_success, which stands for every batch of which
	// an event failed: the standard knows no third.
	Status  string       `json:"status"`
	Summary batchSummary `json:"summary"`
	Failed  []failedItem `json:"failed_events"`
	// Receipts has one element an event, in their order: a receipt, or the
	// problem of an event that failed.
	Receipts []json.RawMessage `json:"receipts"`
}

type batchSummary struct {
	Received     int `json:"received"`
	Successful   int `json:"successful"`
	Failed       int `json:"failed"`
	Retriable    int `json:"retriable"`
	NonRetriable int `json:"non_retriable"`
}

type failedItem struct {
	Index     int  `json:"index"`
	Reason    text `json:"reason"`
	Retriable bool `json:"retriable"`
}

// Events go into the store by chunks of this many, or of so many bytes of
// memory, whichever comes first.
const (
	chunkEvents = 500
	chunkWeight = 64 << 20
	// itemFaults bounds the faults that are told of one event.
	itemFaults = 4
	// itemOverhead is about what a receipt takes beside its text.
	itemOverhead = 200
)

// postBatch takes in a JSON array of events, or one event a line. It reads and
// stores chunk by chunk; an event that is none fails alone.
func (s *Server) postBatch(c echo.Context, _ *query) error {
	r := c.Request()
	kind, err := mediaType(r.Header, slices.Concat(jsonTypes, lineTypes)...)
	if err != nil {
		return err
	}
	wait, applied, err := preferred(r.Header)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	format := ingest.Array
	if slices.Contains(lineTypes, kind) {
		format = ingest.Lines
	}
	b := &batch{s: s, ctx: r.Context(), memory: s.budget.lease(), wait: wait}
	defer b.memory.release()
	in, err := openBody(c.Response(), r, s.limits.BatchBytes, s.limits.BatchTime, b.memory)
	if err != nil {
		return err
	}
	defer in.Close()
	var stream io.Reader = in
	if key != "" {
		// Nothing may be stored before it is known to be the key's body, so that
		// all of it has to be held.
		data, err := readAll(r.Context(), in, b.memory)
		if err != nil {
			return err
		}
		if err := s.keys.check(routeOf(c), key, data); err != nil {
			return err
		}
		if err := b.memory.reserve(r.Context(), int64(len(data))); err != nil {
			return err
		}
		stream = bytes.NewReader(data)
	}
	if err := b.take(stream, format); err != nil {
		return err
	}
	if applied != "" {
		c.Response().Header().Set("Preference-Applied", applied)
	}
	return write(c, http.StatusOK, b.answer())
}

// batch is a batch while it is taken in.
type batch struct {
	s      *Server
	ctx    context.Context
	memory *lease
	// wait is how long the chunks together may still wait for the graph.
	wait time.Duration
	// kept is what the answer takes so far, chunk what the bodies of the current
	// chunk will take, reading how much was read since the last event.
	kept, chunk, reading int64
	bodies               [][]byte
	at                   []int // the index of each body
	stopped              error // why nothing more is stored
	stored               int
	failed               []failedItem
	receipts             []json.RawMessage
}

// reader leases memory for the event that is being read, however slowly.
type reader struct {
	io.Reader
	b *batch
}

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	b := r.b
	if b.reading += int64(n); b.reading > freeRead {
		// The old buffer, the new one, and the event's own. An event for which all
		// there is does not suffice fails later, alone.
		need := min(3*b.reading, b.memory.of.total-b.memory.fixed-b.kept)
		if !b.memory.now(b.kept + b.chunk + need) {
			if bad := b.flush(); bad != nil {
				return n, bad
			}
			if bad := b.memory.grow(b.ctx, b.kept+need); bad != nil {
				return n, bad
			}
		}
	}
	return n, err
}

// freeRead is how much of an event is read without a lease.
const freeRead = 256 << 10

// take reads all events of a stream. Its error is the answer to the whole
// batch.
func (b *batch) take(stream io.Reader, format ingest.Format) error {
	for doc, err := range ingest.Split(reader{stream, b}, format, int(b.s.limits.EventBytes)) {
		index := len(b.receipts)
		b.reading = 0
		if index == b.s.limits.BatchEvents {
			return b.tooLarge("has more than %d events", b.s.limits.BatchEvents)
		}
		var f *failure
		var syntax *jsontree.SyntaxError
		switch {
		case errors.As(err, &f) && f.Status == http.StatusRequestEntityTooLarge:
			return b.tooLarge("is longer than %d bytes, decompressed", int(b.s.limits.BatchBytes))
		case errors.As(err, &f) && (f.Status != http.StatusBadRequest || index == 0):
			return f // the connection broke, or nothing could be read at all
		case errors.As(err, &syntax) && doc.Number == 0:
			return fail("invalid-body", []Fault{at(syntax.Pointer, syntax.Offset, syntax.Reason)},
				"A batch is a JSON array of events; or one event a line, as application/x-ndjson.")
		case errors.As(err, &syntax):
			f = fail("invalid-event", []Fault{at(syntax.Pointer, syntax.Offset, syntax.Reason)}, "%s.", syntax.Reason)
		}
		b.receipts = append(b.receipts, nil)
		if f != nil {
			b.fails(index, f)
			continue
		}
		if err := b.add(index, doc.Data); err != nil {
			return err
		}
	}
	return b.flush()
}

// tooLarge refuses a batch of which a part may be stored already. That part
// does no harm: sent again it changes nothing.
func (b *batch) tooLarge(format string, limit int) error {
	if err := b.flush(); err != nil {
		return err
	}
	f := fail("too-large", nil, "The batch "+format+". The first %d of its events were stored. Send it in parts; sending those again does no harm.",
		limit, b.stored)
	return f
}

// add puts an event into the current chunk.
func (b *batch) add(index int, body []byte) error {
	if b.stopped != nil {
		b.fails(index, failureOf(b.stopped))
		return nil
	}
	w := weight(body)
	// What cannot be had at once is had when the chunk has given back its own.
	if len(b.bodies) == chunkEvents || b.chunk+w > chunkWeight || !b.memory.now(b.kept+b.chunk+w) {
		if err := b.flush(); err != nil {
			return err
		}
		if b.stopped != nil {
			b.fails(index, failureOf(b.stopped))
			return nil
		}
		if err := b.memory.grow(b.ctx, b.kept+w); err != nil {
			return b.unstored(index, err)
		}
	}
	b.bodies, b.at, b.chunk = append(b.bodies, body), append(b.at, index), b.chunk+w
	return nil
}

// unstored notes that an event could not be stored. If it is for the moment
// and nothing was stored yet, that is the answer to the whole batch; else
// the events that are left fail with it, and may be sent again.
func (b *batch) unstored(index int, err error) error {
	f := failureOf(err)
	if f.Status < http.StatusInternalServerError {
		b.fails(index, f)
		return nil
	}
	if b.stored == 0 {
		return f
	}
	b.stopped = f
	b.fails(index, f)
	return nil
}

// flush stores the current chunk.
func (b *batch) flush() error {
	if len(b.bodies) == 0 {
		return nil
	}
	bodies, at := b.bodies, b.at
	b.bodies, b.at, b.chunk = nil, nil, 0
	begin := time.Now()
	items, err := b.s.opt.Node.Pipeline.AcceptAll(b.ctx, bodies, b.wait)
	b.wait = max(0, b.wait-time.Since(begin))
	if err != nil {
		err = intakeFailure(err)
		for _, index := range at {
			if err := b.unstored(index, err); err != nil {
				return err
			}
		}
		b.memory.shrink(b.kept)
		return nil
	}
	for i, item := range items {
		if item.Err != nil {
			b.fails(at[i], failureOf(item.Err))
			continue
		}
		b.stored++
		if err := b.keep(at[i], item.Receipt); err != nil {
			return err
		}
	}
	b.memory.shrink(b.kept)
	return nil
}

// fails notes that an event failed.
func (b *batch) fails(index int, f *failure) {
	p := f.Problem
	p.Errors = p.Errors[:min(len(p.Errors), itemFaults)]
	b.failed = append(b.failed, failedItem{Index: index, Reason: p.Detail, Retriable: p.Status >= http.StatusInternalServerError})
	_ = b.keep(index, p) // a problem can always be written
}

// keep keeps the answer to an event, as text.
func (b *batch) keep(index int, v any) error {
	text, err := Encode(v)
	if err != nil {
		return err
	}
	b.receipts[index] = bytes.Clone(text)
	b.kept += 2*int64(len(text)) + itemOverhead
	return nil
}

func (b *batch) answer() batchAnswer {
	a := batchAnswer{Status: "success", Failed: b.failed, Receipts: b.receipts}
	a.Summary = batchSummary{Received: len(b.receipts), Successful: b.stored, Failed: len(b.failed)}
	slices.SortFunc(a.Failed, func(x, y failedItem) int { return x.Index - y.Index })
	for _, f := range a.Failed {
		if f.Retriable {
			a.Summary.Retriable++
		} else {
			a.Summary.NonRetriable++
		}
	}
	if len(a.Failed) > 0 {
		a.Status = "partial_success"
	} else {
		a.Failed = []failedItem{}
	}
	if a.Receipts == nil {
		a.Receipts = []json.RawMessage{}
	}
	return a
}
