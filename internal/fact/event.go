package fact

import (
	"cmp"

	"github.com/graphd/graphd/internal/openlineage"
)

// Event is one delivery's event after normalisation: what it says, of whom,
// and how it is told apart from every other.
type Event struct {
	Kind openlineage.Kind
	ID   ID
	// Content digests the fixed descriptive fields; another one under the same
	// ID is a collision. Drift digests the drifting ones; another one under the
	// same ID and content is a redescription. Body digests the whole body in
	// canonical form, transport included: the same one again is a retry.
	Content, Drift, Body ID
	// Version is the identity version that ID was computed with.
	Version string

	Type     openlineage.EventType
	Time     openlineage.Instant
	Producer string

	// Attempt is set for run events, Job for run and job events, Dataset (the
	// entity) for dataset events.
	Attempt Attempt
	Job     openlineage.Name
	Dataset openlineage.Name
	// Pseudo says that the name rules hold Dataset to be no dataset.
	Pseudo bool

	// Parent and Root are the runs that the parent facet names, zero if none.
	Parent, Root RunRef
	Slot         Slot
	// Backfill says that Airflow called the DAG run a backfill.
	Backfill bool

	Statement *Statement
	// Facets describe entities: every facet of a job and of a dataset that is
	// not a statement of lineage.
	Facets []EntityFacet
	// Detail is the canonical JSON of the transport and drifting fields.
	Detail string
	// Warnings tell what was tolerated or left out, for the receipt.
	Warnings []Warning
}

// Warning is something tolerated in an event.
type Warning struct {
	// Code is one of a closed list, for machines (docs/identity.md, Warnings).
	Code string `json:"code"`
	// Pointer is the JSON pointer of the place, or "".
	Pointer string `json:"pointer,omitempty"`
	Detail  string `json:"detail"`
}

// EntityKind is the kind of an entity that has facets.
type EntityKind string

// The entities.
const (
	JobEntity     EntityKind = "job"
	DatasetEntity EntityKind = "dataset"
)

// EntityFacet is one facet that an event gives an entity.
type EntityFacet struct {
	Kind   EntityKind
	Entity ID
	Key    string
	// Value is the facet's canonical JSON without its transport fields, "" for a
	// tombstone (_deleted).
	Value string
	// Invalid says that the facet's own schema rejects it: it is kept, and is never
	// the current one.
	Invalid bool
	// Symlinks are the other names that a symlinks facet gives a dataset, as
	// entities, sorted.
	Symlinks []openlineage.Name
}

// SubjectKind says what an observation is of.
type SubjectKind uint8

// The subjects of observations.
const (
	AttemptSubject SubjectKind = iota
	JobSubject
	DatasetSubject
)

// Subject returns what the event was observed of, and its key.
func (e *Event) Subject() (SubjectKind, ID) {
	switch e.Kind {
	case openlineage.RunEvent:
		return AttemptSubject, e.Attempt.Key()
	case openlineage.JobEvent:
		return JobSubject, JobKey(e.Job)
	default:
		return DatasetSubject, DatasetKey(e.Dataset)
	}
}

// Observation is the trace that deliveries of one event leave: who it is of,
// what it says and when. It is a set of bodies that agree in (subject, event,
// content, type, parent named) and, for START and terminal ones, in the exact
// event time; the others are kept by the hour with their first and last event
// time, so that the heartbeats of a streaming job do not grow it without bound.
type Observation struct {
	Kind           SubjectKind
	Event, Content ID
	Type           openlineage.EventType
	First, Last    openlineage.Instant
	Parent         RunRef
	Slot           Slot
	Backfill       bool
	Statement      *Statement
	// Detail is the smallest transport and drifting fields of its bodies.
	Detail string
}

// ObservationOf returns the trace that e leaves.
func ObservationOf(e *Event) Observation {
	kind, _ := e.Subject()
	return Observation{
		Kind: kind, Event: e.ID, Content: e.Content, Type: e.Type, First: e.Time, Last: e.Time,
		Parent: e.Parent, Slot: e.Slot, Backfill: e.Backfill, Statement: e.Statement, Detail: e.Detail,
	}
}

// ObservationKey tells the observations of one subject apart.
type ObservationKey struct {
	Event, Content ID
	Type           openlineage.EventType
	// At is the event time of a START or terminal observation, else the start of
	// its hour.
	At     openlineage.Instant
	Parent RunRef
}

// Key returns o's key.
func (o *Observation) Key() ObservationKey {
	at := o.First
	if o.Type != openlineage.Start && !o.Type.Terminal() {
		at = openlineage.Instant{Sec: o.First.Hour() * 3600}
	}
	return ObservationKey{Event: o.Event, Content: o.Content, Type: o.Type, At: at, Parent: o.Parent}
}

// Merge returns the union of two observations with one key.
func (o Observation) Merge(p Observation) Observation {
	if p.First.Before(o.First) {
		o.First = p.First
	}
	if p.Last.After(o.Last) {
		o.Last = p.Last
	}
	if p.Detail < o.Detail {
		o.Detail = p.Detail
	}
	return o
}

// Compare orders keys: by time, then type, event, content and parent.
func (k ObservationKey) Compare(l ObservationKey) int {
	return cmp.Or(
		k.At.Compare(l.At), cmp.Compare(k.Type, l.Type), CompareIDs(k.Event, l.Event),
		CompareIDs(k.Content, l.Content), k.Parent.Compare(l.Parent))
}
