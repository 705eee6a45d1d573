package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/openlineage"
)

// identityAnswer says what would be made of events.
type identityAnswer struct {
	IdentityVersion string `json:"identityVersion"`
	// Events has one element an event, in their order: an identity, or the
	// problem of what is no event.
	Events []any `json:"events"`
}

// Identity is what one event is told apart by.
type Identity struct {
	Index     int                   `json:"index"`
	Kind      openlineage.Kind      `json:"kind"`
	Type      openlineage.EventType `json:"eventType,omitempty"`
	EventTime string                `json:"eventTime"`
	Job       *Named                `json:"job,omitempty"`
	Dataset   *Named                `json:"dataset,omitempty"`
	EventID   fact.ID               `json:"eventId"`
	// Content, Drift and Body are the digests of the fields of class fixed and
	// drifting, and of the whole.
	Content fact.ID `json:"contentDigest"`
	Drift   fact.ID `json:"driftDigest"`
	Body    fact.ID `json:"bodyDigest"`
	// Run is the logical run as far as the events that Place was given tell: a
	// parent heard of elsewhere can move it.
	Run     string   `json:"run,omitempty"`
	Attempt *fact.ID `json:"attempt,omitempty"`
	Slot    *Slot    `json:"slot,omitempty"`
	// Document is the identity document, which the event ID is the hash of; the
	// others are what it leaves out, by class.
	Document  json.RawMessage `json:"document,omitempty"`
	Fixed     json.RawMessage `json:"fixed,omitempty"`
	Drifting  json.RawMessage `json:"drifting,omitempty"`
	Transport json.RawMessage `json:"transport,omitempty"`
	Warnings  []warning       `json:"warnings"`
}

// Slot is the place in a schedule that a run fills, and the rule that found it.
type Slot struct {
	Rule  fact.Rule       `json:"rule"`
	Value json.RawMessage `json:"value"`
}

type slot = Slot

func newSlot(s fact.Slot) *Slot {
	if s.Value == "" {
		return nil
	}
	return &Slot{s.Rule, json.RawMessage(s.Value)}
}

type warning struct {
	Code    string `json:"code"`
	Pointer text   `json:"pointer,omitempty"`
	Detail  text   `json:"detail"`
}

func newWarnings(list []fact.Warning) []warning {
	out := make([]warning, len(list))
	for i, w := range list {
		out[i] = warning{w.Code, text(w.Pointer), text(w.Detail)}
	}
	return out
}

// maxIdentities bounds the events of one request: the answer is longer than
// they are.
const maxIdentities = 1000

// postIdentity says of an event, or of each of an array, what it would be.
func (s *Server) postIdentity(c echo.Context, _ *query) error {
	r := c.Request()
	if _, err := mediaType(r.Header, jsonTypes...); err != nil {
		return err
	}
	memory := s.budget.lease()
	defer memory.release()
	body, err := s.readEvent(c.Response(), r, memory)
	if err != nil {
		return err
	}
	answer := identityAnswer{IdentityVersion: s.opt.Node.Decoder.Version()}
	var events []*fact.Event
	var told []*Identity
	if !bytes.HasPrefix(bytes.TrimLeft(body, "\ufeff \t\r\n"), []byte("[")) {
		event, id, err := Identify(s.opt.Node.Decoder, body)
		if err != nil {
			return err
		}
		answer.Events, events, told = []any{id}, []*fact.Event{event}, []*Identity{id}
	} else {
		for doc, err := range ingest.Split(bytes.NewReader(body), ingest.Array, len(body)) {
			if len(answer.Events) == maxIdentities {
				return fail("too-large", nil, "At most %d events are identified at once.", maxIdentities)
			}
			if err != nil {
				return fail("invalid-body", []Fault{at("", len(body), err.Error())}, "Send one event, or a JSON array of events.")
			}
			event, id, err := Identify(s.opt.Node.Decoder, doc.Data)
			if err != nil {
				answer.Events = append(answer.Events, failureOf(err).Problem)
				continue
			}
			id.Index = len(answer.Events)
			answer.Events, events, told = append(answer.Events, id), append(events, event), append(told, id)
		}
	}
	Place(answer.IdentityVersion, events, told)
	return write(c, http.StatusOK, answer)
}

// Identify tells what one body is. The error is an *ingest.Rejected.
func Identify(d *ingest.Decoder, body []byte) (*fact.Event, *Identity, error) {
	e, err := d.Decode(body)
	if err != nil {
		return nil, nil, err
	}
	x, err := d.Explain(body)
	if err != nil {
		return nil, nil, err
	}
	id := &Identity{
		Kind: e.Kind, Type: e.Type, EventTime: when(e.Time), EventID: e.ID, Content: e.Content, Drift: e.Drift, Body: e.Body,
		Document: x.Document, Fixed: x.Fixed, Drifting: x.Drifting, Transport: x.Transport, Warnings: newWarnings(e.Warnings),
	}
	id.Job, id.Dataset = subjectOf(e)
	if e.Kind == openlineage.RunEvent {
		key := e.Attempt.Key()
		id.Attempt, id.Slot = &key, newSlot(e.Slot)
	}
	return e, id, nil
}

// subjectOf names what an event is of: its job, or the dataset of a dataset
// event.
func subjectOf(e *fact.Event) (job, dataset *Named) {
	if e.Kind == openlineage.DatasetEvent {
		d := newNamed(fact.DatasetKey(e.Dataset), e.Dataset)
		return nil, &d
	}
	j := jobNamed(e.Job)
	return &j, nil
}

// Place sets the logical runs of identities, each of the event beside it, as
// they follow from those events together.
func Place(version string, events []*fact.Event, ids []*Identity) {
	placed := lineage.Fold(version, events).Attempts
	named := map[fact.RunRef][]*lineage.AttemptRow{}
	for _, row := range placed {
		named[row.Attempt.Ref()] = append(named[row.Attempt.Ref()], row)
	}
	for i, e := range events {
		if e.Kind != openlineage.RunEvent {
			continue
		}
		row := placed[e.Attempt.Key()]
		if same := named[e.Attempt.Ref()]; row == nil && len(same) == 1 {
			row = same[0] // the one mapped instance takes in events without an index
		}
		if row != nil {
			ids[i].Run = row.Run.String()
		}
	}
}
