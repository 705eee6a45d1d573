// Package graph is the contract between graphd and a store of its lineage
// graph. A driver keeps the facts and what follows from them; it contains no
// rule of lineage, those are in package lineage. Drivers: memory, the reference.
//
// graphtest is the conformance suite that every driver passes.
package graph

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/openlineage"
)

// The errors that callers tell apart, with errors.Is.
var (
	// ErrNotFound: no such entity, run or event.
	ErrNotFound = errors.New("not found")
	// ErrFull: the store's budget is used up. Nothing of the call was kept; it may
	// be tried again once there is room.
	ErrFull = errors.New("the store is full")
	// ErrCursor: a cursor was not one that this driver gave.
	ErrCursor = errors.New("not a cursor of this listing")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// Outcome is what one delivery did.
type Outcome = fact.Outcome

// The outcomes, under the names that this package's callers use.
const (
	New         = fact.New
	Retry       = fact.Retry
	Equivalent  = fact.Equivalent
	Redescribed = fact.Redescribed
	Collision   = fact.Collision
)

// Delivery is one arrival of an event.
type Delivery struct {
	Event *fact.Event
	// Payload is the body as received. The store keeps it; the caller does not
	// write to it again.
	Payload  []byte
	Received time.Time
}

// Result says what a delivery did, and to which run.
type Result struct {
	Outcome Outcome
	// Run and Attempt are set for run events: what the attempt is settled as at
	// that moment. A run found later moves it (docs/identity.md, Slots).
	Run     lineage.RunID
	Attempt fact.ID
	// FirstSeen is when the event first arrived, FirstEventTime the event time
	// that it then had.
	FirstSeen      time.Time
	FirstEventTime openlineage.Instant
}

// Writer takes events in.
type Writer interface {
	// Write merges deliveries in their order and returns a result for each.
	//
	// A nil error promises that each of them is kept for as long as the driver
	// keeps anything, that the events are merged exactly once however often and
	// from wherever they are written, and that every later Read of their jobs
	// sees what follows from them. On an error any number of them may have been
	// merged, each wholly or not at all: writing them again is always right, and
	// the only thing that shows of it are outcomes.
	//
	// Any number of Writes may run at once, with Reads. The graph that remains is
	// a function of the set of bodies written, not of order, number or timing.
	//
	// Errors: ErrFull, ErrClosed, or ctx's, wrapped; any other is the driver's own
	// and may be tried again.
	Write(ctx context.Context, deliveries []Delivery) ([]Result, error)
}

// Reader answers questions. Each answer is of one moment; two answers may be of
// different ones. Listings are stable while nothing is written: a cursor
// continues behind the last element given, whatever was written since.
//
// Errors: ErrNotFound, ErrCursor, ErrClosed, or ctx's, wrapped.
type Reader interface {
	// Lineage walks over current lineage from a root.
	Lineage(ctx context.Context, q LineageQuery) (*Lineage, error)
	Datasets(ctx context.Context, q EntityQuery) (Page[Entity], error)
	Jobs(ctx context.Context, q EntityQuery) (Page[Entity], error)
	Dataset(ctx context.Context, id fact.ID) (*Dataset, error)
	Job(ctx context.Context, id fact.ID) (*Job, error)
	// Runs lists logical runs, those with the latest event first.
	Runs(ctx context.Context, q RunQuery) (Page[*lineage.RunRow], error)
	Run(ctx context.Context, id lineage.RunID) (*Run, error)
	// Events lists distinct bodies, those received last first.
	Events(ctx context.Context, q EventQuery) (Page[LoggedEvent], error)
	// Event returns all distinct bodies of one event, those received first first.
	Event(ctx context.Context, id fact.ID) ([]LoggedEvent, error)
	// Snapshot writes the canonical snapshot, of a moment at which nothing is
	// pending.
	Snapshot(ctx context.Context, w io.Writer) error
	Stats(ctx context.Context) (Stats, error)
}

// Store is a driver.
type Store interface {
	Writer
	Reader
	// Close gives up what the store holds. Calls that run end with ErrClosed.
	Close() error
}

// Page is a part of a listing.
type Page[T any] struct {
	Items []T
	// Next continues the listing; "" at its end.
	Next string
}

// Paging says which part of a listing is wanted.
type Paging struct {
	// Limit is at least 1.
	Limit int
	// Cursor is a Page's Next, or "" for the beginning.
	Cursor string
}

// Root is where a walk begins: a dataset, a job (what its current derivations
// read and write) or a logical run (what it asserts). One of them is set.
type Root struct {
	Dataset, Job fact.ID
	Run          lineage.RunID
}

// LineageQuery asks for a walk.
type LineageQuery struct {
	Root Root
	lineage.Walk
}

// Lineage is the answer to a LineageQuery.
type Lineage struct {
	*lineage.Reached
	// Root is the key of the root in the answer: of the dataset's node, of the job,
	// or the run.
	Root string
	// Settling counts what was still pending when the answer was read.
	Settling int
}

// EntityQuery asks for datasets or jobs, ordered by namespace and name.
type EntityQuery struct {
	Paging
	// Namespace limits to one namespace, "" for all.
	Namespace string
	// Contains limits to names that contain it, whatever their case.
	Contains string
}

// Entity is a dataset or a job by name.
type Entity struct {
	ID   fact.ID
	Name openlineage.Name
}

// Dataset is all that is known of a dataset.
type Dataset struct {
	Entity
	Facets []lineage.FacetRow // the current ones, by key
	// Aliases are the other names that are walked as this one.
	Aliases []lineage.DatasetRef
	// Dropped is when it was dropped, zero if it was not.
	Dropped openlineage.Instant
	Degree  lineage.Degree
	// Upstream are its current derivations.
	Upstream []*lineage.Derivation
}

// Job is all that is known of a job.
type Job struct {
	Entity
	Facets []lineage.FacetRow
	// Latest is the logical run with the latest event, nil if it never ran.
	Latest *lineage.RunRow
	// Derivations are its current ones.
	Derivations []*lineage.Derivation
}

// RunQuery asks for logical runs.
type RunQuery struct {
	Paging
	Job   fact.ID          // of one job, zero for all
	State lineage.RunState // in one state, "" for all
}

// Run is a logical run with its attempts, newest first.
type Run struct {
	*lineage.RunRow
	Members []*lineage.AttemptRow
}

// EventQuery asks for events.
type EventQuery struct {
	Paging
	Job     fact.ID // that name the job as theirs
	Dataset fact.ID // that name the dataset
	Run     lineage.RunID
	Type    openlineage.EventType
	Outcome Outcome
}

// LoggedEvent is one distinct body as it arrived.
type LoggedEvent struct {
	*fact.Event
	// Sequence numbers the bodies in their order of arrival, from 1.
	Sequence int64
	Outcome  Outcome
	Received time.Time
	Payload  []byte
	// Deliveries counts how often the body arrived.
	Deliveries int
}

// Stats counts what a store holds.
type Stats struct {
	Datasets, Jobs, Runs, Attempts, Events, Derivations int
	// Deliveries counts arrivals by outcome since the store was opened.
	Deliveries map[Outcome]int64
	// Settling counts what is pending.
	Settling int
	// Bytes is what the payloads take, Budget what they may take (0: no bound).
	Bytes, Budget int64
}
