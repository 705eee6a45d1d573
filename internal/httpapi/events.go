package httpapi

import (
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/openlineage"
)

// event is one distinct body as it arrived.
type event struct {
	ID              fact.ID               `json:"id"`
	IdentityVersion string                `json:"identityVersion"`
	Kind            openlineage.Kind      `json:"kind"`
	Type            openlineage.EventType `json:"eventType,omitempty"`
	EventTime       string                `json:"eventTime"`
	Producer        text                  `json:"producer"`
	Job             *named                `json:"job,omitempty"`
	Dataset         *named                `json:"dataset,omitempty"`
	Run             *eventRun             `json:"run,omitempty"`
	// Content, Drift and Body are the digests that tell outcomes apart.
	Content fact.ID `json:"contentDigest"`
	Drift   fact.ID `json:"driftDigest"`
	Body    fact.ID `json:"bodyDigest"`

	// Sequence numbers the bodies in their order of arrival.
	Sequence uint64        `json:"sequence"`
	Received time.Time     `json:"receivedAt"`
	Outcome  graph.Outcome `json:"outcome"`
	Bytes    int           `json:"bytes"`
	Warnings []warning     `json:"warnings"`
	// Payload is the body as received, if it was asked for.
	Payload *text `json:"payload,omitempty"`
}

// eventRun is the run of an event as its producer names it.
type eventRun struct {
	Attempt  fact.ID `json:"attempt"`
	RunID    text    `json:"runId"`
	MapIndex *int    `json:"mapIndex,omitempty"`
	Slot     *slot   `json:"slot"`
}

func showEvent(l graph.LoggedEvent) event {
	e := event{
		ID: l.ID, IdentityVersion: l.Version, Kind: l.Kind, Type: l.Type, EventTime: when(l.Time), Producer: text(l.Producer),
		Content: l.Content, Drift: l.Drift, Body: l.Body, Sequence: l.Sequence, Received: l.Received.UTC(), Outcome: l.Outcome,
		Bytes: len(l.Payload), Warnings: newWarnings(l.Warnings),
	}
	e.Job, e.Dataset = subjectOf(l.Event)
	if l.Kind == openlineage.RunEvent {
		e.Run = &eventRun{Attempt: l.Attempt.Key(), RunID: text(l.Attempt.RunID), Slot: newSlot(l.Slot)}
		if l.Attempt.Map != fact.NoMap {
			e.Run.MapIndex = &l.Attempt.Map
		}
	}
	return e
}

var (
	eventTypes = []openlineage.EventType{
		openlineage.Start, openlineage.Running, openlineage.Complete, openlineage.Abort, openlineage.Fail, openlineage.Other,
	}
	outcomes = []graph.Outcome{graph.New, graph.Retry, graph.Equivalent, graph.Redescribed, graph.Collision}
)

func (s *Server) getEvents(c echo.Context, q *query) error {
	eq := graph.EventQuery{
		Paging: q.paging(), Job: q.id("job"), Dataset: q.id("dataset"), Run: q.run("run"),
		Type: choice(q, "type", "", eventTypes...), Outcome: choice(q, "outcome", "", outcomes...),
	}
	if err := q.err(); err != nil {
		return err
	}
	found, err := s.opt.Node.Store.Events(c.Request().Context(), eq)
	if err != nil {
		return err
	}
	return writeRead(c, newPage(found, showEvent))
}

// maxPayloads bounds the payloads of one page, which has one at least.
const maxPayloads = 32 << 20

// getEvent lists the distinct bodies of one event, those received first first.
// A page ends early where its payloads become too long.
func (s *Server) getEvent(c echo.Context, q *query) error {
	p, payload, id := q.paging(), q.flag("payload"), q.parseID("id", c.Param("id"))
	after := q.sequence(p.Cursor)
	if err := q.err(); err != nil {
		return err
	}
	bodies, err := s.opt.Node.Store.Event(c.Request().Context(), id)
	if err != nil {
		return err
	}
	out := page[event]{Items: []event{}}
	taken := 0
	for _, b := range bodies {
		if b.Sequence <= uint64(after) {
			continue
		}
		if payload {
			taken += len(b.Payload)
		}
		if n := len(out.Items); n == p.Limit || n > 0 && taken > maxPayloads {
			next := strconv.FormatUint(out.Items[n-1].Sequence, 10)
			out.Next = &next
			break
		}
		e := showEvent(b)
		if payload {
			raw := text(b.Payload)
			e.Payload = &raw
		}
		out.Items = append(out.Items, e)
	}
	return writeRead(c, out)
}

// sequence reads a cursor that is the number of an element.
func (q *query) sequence(cursor string) int64 {
	if cursor == "" {
		return 0
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 1 {
		q.wrong("cursor", "it was not given by this listing")
	}
	return n
}
