package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/ledger"
	"github.com/graphd/graphd/internal/openlineage"
	"github.com/graphd/graphd/internal/projection"
)

// Receipt tells a producer what its delivery did.
type Receipt struct {
	EventID         string        `json:"eventId"`
	IdentityVersion string        `json:"identityVersion"`
	Outcome         graph.Outcome `json:"outcome"`
	// Status tells whether the graph shows the event already.
	Status Status `json:"status"`
	// Run and Attempt are the logical run and the attempt of a run event, once the
	// graph has settled them.
	Run            string         `json:"run,omitempty"`
	Attempt        string         `json:"attempt,omitempty"`
	FirstSeenAt    time.Time      `json:"firstSeenAt"`
	FirstEventTime string         `json:"firstEventTime"`
	Warnings       []fact.Warning `json:"warnings"`
}

// Status is how far a delivery has come.
type Status string

// The statuses. In both the delivery is on disk, and no crash loses it.
const (
	// InGraph: it is merged, and what follows for its own run is settled. (A body
	// whose bytes were received before is only known to be merged.)
	InGraph Status = "settled"
	// InLog: the graph follows later.
	InLog Status = "accepted"
)

// DefaultWait is how long a caller waits for its events to settle who does not
// say, so that it reads its own writes.
const DefaultWait = 250 * time.Millisecond

// Pipeline accepts deliveries: into the log, which makes them durable, and from
// there into the graph. It is safe for concurrent use.
type Pipeline struct {
	decoder *Decoder
	log     *ledger.Ledger
	graph   *projection.Projector
	inbox   *Inbox
	now     func() time.Time
}

// NewPipeline returns a pipeline into log, which graph follows. What is rejected is
// kept in inbox.
func NewPipeline(d *Decoder, log *ledger.Ledger, graph *projection.Projector, inbox *Inbox, now func() time.Time) *Pipeline {
	return &Pipeline{decoder: d, log: log, graph: graph, inbox: inbox, now: now}
}

// Decoder returns the pure part of the pipeline.
func (p *Pipeline) Decoder() *Decoder { return p.decoder }

// clockSkew is how far ahead of this machine's clock an event time may be
// without a warning.
const clockSkew = 5 * time.Minute

// Accept takes one delivery in. The error is a *Rejected, or one of AcceptAll's.
func (p *Pipeline) Accept(ctx context.Context, body []byte, wait time.Duration) (*Receipt, error) {
	items, err := p.AcceptAll(ctx, [][]byte{body}, wait)
	if err != nil {
		return nil, err
	}
	return items[0].Receipt, items[0].Err
}

// Item is what became of one body of several: a receipt or a *Rejected.
type Item struct {
	Receipt *Receipt
	Err     error
}

// AcceptAll takes several deliveries in, in their order, and waits at most for so
// long until the graph shows them; the bodies may be written to again when it
// has returned. A body that is rejected fails alone, in its item; an error of the
// log fails all of them, and then any number may have been kept: sending them
// again is harmless. Errors: graph.ErrFull, graph.ErrClosed, ctx's, wrapped; any
// other is worth another try.
func (p *Pipeline) AcceptAll(ctx context.Context, bodies [][]byte, wait time.Duration) ([]Item, error) {
	received := p.now()
	items := make([]Item, len(bodies))
	entries := make([]ledger.Entry, 0, len(bodies))
	events := make([]*fact.Event, 0, len(bodies))
	at := make([]int, 0, len(bodies)) // the item of each entry
	for i, body := range bodies {
		if err := ctx.Err(); err != nil { // nobody waits for the rest
			return nil, fmt.Errorf("decoding event %d of %d: %w", i+1, len(bodies), err)
		}
		raw := ledger.DigestRaw(body)
		if v, seen := p.log.SeenRaw(raw); seen {
			items[i].Receipt = p.receipt(&v, nil)
			if p.graph.Merged(v.Sequence) {
				items[i].Receipt.Status = InGraph
			}
			continue
		}
		e, err := p.decode(body, received)
		if err != nil {
			items[i].Err = err
			continue
		}
		entries = append(entries, ledger.Entry{
			Event: e.ID, Content: e.Content, Drift: e.Drift, Body: e.Body, EventTime: e.Time, Raw: raw, Kind: e.Kind,
			Producer: e.Producer, Payload: body, Received: received,
		})
		events = append(events, e)
		at = append(at, i)
	}
	if len(entries) == 0 {
		return items, nil
	}
	verdicts, err := p.log.Accept(ctx, entries)
	if err != nil {
		return nil, fmt.Errorf("keeping %d events: %w", len(entries), ofStore(err))
	}
	accepted := make([]projection.Accepted, len(entries))
	for j := range verdicts {
		accepted[j] = projection.Accepted{Sequence: verdicts[j].Sequence, Event: events[j], Received: received, Size: len(entries[j].Payload)}
	}
	standings := p.graph.Await(ctx, p.graph.Offer(accepted), wait)
	for j := range verdicts {
		rc := p.receipt(&verdicts[j], events[j])
		if s := standings[j]; s.Settled {
			rc.Status = InGraph
			if events[j].Kind == openlineage.RunEvent && !s.Run.IsZero() {
				rc.Run, rc.Attempt = s.Run.String(), s.Attempt.String()
			}
		}
		items[at[j]].Receipt = rc
	}
	return items, nil
}

// decode returns the event of a body. What is rejected goes into the inbox.
func (p *Pipeline) decode(body []byte, received time.Time) (*fact.Event, error) {
	e, err := p.decoder.Decode(body)
	if err != nil {
		var no *Rejected
		if errors.As(err, &no) {
			p.inbox.add(received, body, no)
		}
		return nil, err
	}
	if limit := openlineage.InstantOf(received.Add(clockSkew)); e.Time.After(limit) {
		e.Warnings = append(e.Warnings, fact.Warning{
			Code: "future-time", Pointer: "/eventTime",
			Detail: fmt.Sprintf("the event time %s is in the future: it outranks everything until then", e.Time),
		})
	}
	return e, nil
}

// ofStore gives the log's errors the names that callers know.
func ofStore(err error) error {
	switch {
	case errors.Is(err, ledger.ErrFull):
		return fmt.Errorf("%w: %w", graph.ErrFull, err)
	case errors.Is(err, ledger.ErrClosed):
		return fmt.Errorf("%w: %w", graph.ErrClosed, err)
	}
	return err
}

// receipt returns the receipt of a verdict; e is nil for a body that was not
// parsed, since its bytes were received before.
func (p *Pipeline) receipt(v *ledger.Verdict, e *fact.Event) *Receipt {
	rc := &Receipt{
		EventID: v.Event.String(), IdentityVersion: p.decoder.Version(), Outcome: v.Outcome, Status: InLog,
		FirstSeenAt: v.FirstSeen.UTC(), FirstEventTime: v.FirstEventTime.String(), Warnings: []fact.Warning{},
	}
	if e != nil && e.Warnings != nil {
		rc.Warnings = e.Warnings
	}
	return rc
}
