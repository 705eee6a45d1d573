package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/openlineage"
)

// Receipt tells a producer what its delivery did.
type Receipt struct {
	EventID         string        `json:"eventId"`
	IdentityVersion string        `json:"identityVersion"`
	Outcome         graph.Outcome `json:"outcome"`
	// Run and Attempt are the logical run and the attempt of a run event.
	Run            string         `json:"run,omitempty"`
	Attempt        string         `json:"attempt,omitempty"`
	FirstSeenAt    time.Time      `json:"firstSeenAt"`
	FirstEventTime string         `json:"firstEventTime"`
	Warnings       []fact.Warning `json:"warnings"`
}

// Pipeline accepts deliveries into a store. It is safe for concurrent use.
type Pipeline struct {
	decoder *Decoder
	store   graph.Writer
	inbox   *Inbox
	now     func() time.Time
}

// NewPipeline returns a pipeline into store. What is rejected is kept in inbox.
func NewPipeline(d *Decoder, store graph.Writer, inbox *Inbox, now func() time.Time) *Pipeline {
	return &Pipeline{decoder: d, store: store, inbox: inbox, now: now}
}

// Decoder returns the pure part of the pipeline.
func (p *Pipeline) Decoder() *Decoder { return p.decoder }

// clockSkew is how far ahead of this machine's clock an event time may be
// without a warning.
const clockSkew = 5 * time.Minute

// Accept takes one delivery in. The body is kept; the caller does not write to
// it again. The error is a *Rejected, or one of graph.Writer's.
func (p *Pipeline) Accept(ctx context.Context, body []byte) (*Receipt, error) {
	items, err := p.AcceptAll(ctx, [][]byte{body})
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

// AcceptAll takes several deliveries in, in their order. A body that is rejected
// fails alone, in its item; an error of the store fails all of them, and then
// any number may have been kept: sending them again is harmless.
func (p *Pipeline) AcceptAll(ctx context.Context, bodies [][]byte) ([]Item, error) {
	received := p.now()
	items := make([]Item, len(bodies))
	deliveries := make([]graph.Delivery, 0, len(bodies))
	at := make([]int, 0, len(bodies)) // the item of each delivery
	for i, body := range bodies {
		if err := ctx.Err(); err != nil { // nobody waits for the rest
			return nil, fmt.Errorf("decoding event %d of %d: %w", i+1, len(bodies), err)
		}
		e, err := p.decoder.Decode(body)
		if err != nil {
			items[i].Err = err
			var no *Rejected
			if errors.As(err, &no) {
				p.inbox.add(received, body, no)
			}
			continue
		}
		if limit := openlineage.InstantOf(received.Add(clockSkew)); e.Time.After(limit) {
			e.Warnings = append(e.Warnings, fact.Warning{
				Code: "future-time", Pointer: "/eventTime",
				Detail: fmt.Sprintf("the event time %s is in the future: it outranks everything until then", e.Time),
			})
		}
		deliveries = append(deliveries, graph.Delivery{Event: e, Payload: body, Received: received})
		at = append(at, i)
	}
	if len(deliveries) == 0 {
		return items, nil
	}
	results, err := p.store.Write(ctx, deliveries)
	if err != nil {
		return nil, fmt.Errorf("storing %d events: %w", len(deliveries), err)
	}
	for j := range results {
		items[at[j]].Receipt = receipt(deliveries[j].Event, &results[j])
	}
	return items, nil
}

func receipt(e *fact.Event, r *graph.Result) *Receipt {
	rc := &Receipt{
		EventID: e.ID.String(), IdentityVersion: e.Version, Outcome: r.Outcome, FirstSeenAt: r.FirstSeen.UTC(),
		FirstEventTime: r.FirstEventTime.String(), Warnings: e.Warnings,
	}
	if rc.Warnings == nil {
		rc.Warnings = []fact.Warning{}
	}
	if e.Kind == openlineage.RunEvent && !r.Run.IsZero() {
		rc.Run, rc.Attempt = r.Run.String(), r.Attempt.String()
	}
	return rc
}
