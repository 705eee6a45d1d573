// Package graph is the contract between graphd and a store of its lineage
// graph. A driver keeps the facts and what follows from them; it contains no
// rule of lineage, those are in package lineage. Drivers: memory, the reference,
// and embedded, on disk.
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
	// ErrNotFound: no such entity, run or event. See NotFound.
	ErrNotFound = errors.New("not found")
	// ErrFull: the store's budget is used up. Nothing of the call was kept; it may
	// be tried again once there is room.
	ErrFull = errors.New("the store is full")
	// ErrCursor: a cursor was not one that this driver gave.
	ErrCursor = errors.New("not a cursor of this listing")
	// ErrFailed: the disk failed. Every later call fails too.
	ErrFailed = errors.New("the store stopped after an error of the disk; a restart recovers")
	// ErrCorrupt: what was read is not what was written, or the log has not what the
	// store refers to. Every later call may fail too: the store has to be made anew.
	ErrCorrupt = errors.New("the store is corrupt")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// NotFound is ErrNotFound, of what.
type NotFound struct {
	// What names what is not there, for people: "dataset 0a1b...".
	What string
}

// Error implements error.
func (n NotFound) Error() string { return n.What + ": " + ErrNotFound.Error() }

// Is says that it is ErrNotFound.
func (n NotFound) Is(target error) bool { return target == ErrNotFound }

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

// Delivery is one body of a log, as an event.
type Delivery struct {
	// Sequence is the body's place in its log, from 1; 0 for one of no log, which
	// no listing of events shows.
	Sequence uint64
	Event    *fact.Event
}

// Batch is what a lane of a log has to say next. A log is one process's; its
// lanes are parts of it that are written independently, each in its own order.
type Batch struct {
	Log  string
	Lane int
	// Through is the lane's position when the batch is written: whatever of it
	// stands at or before that place has been.
	Through    uint64
	Deliveries []Delivery
}

// Writer takes events in.
type Writer interface {
	// Write merges a batch and moves its lane's position, as one transaction, settles
	// some of what follows, and returns what the deliveries' attempts are settled as.
	//
	// A nil error promises that the events are merged exactly once, however often
	// and from wherever they are written, and that later reads see them. A crash may
	// take back what was written last, never a part of a batch, and always with the
	// position: whoever writes again from Position on loses nothing. On an error
	// nothing may be assumed but that; to write the batch again is always right.
	//
	// Any number of Writes may run at once, with Reads. What remains is a function
	// of the set of bodies written, not of order, number, lanes or timing.
	//
	// Errors: ErrFull, ErrFailed, ErrCorrupt, ErrClosed, or ctx's, wrapped; any other is
	// the driver's own and may be tried again.
	Write(ctx context.Context, b Batch) ([]Standing, error)
	// Settle does a bounded part of what is pending, as one transaction, and reports
	// whether anything is left. Errors are those of Write.
	Settle(ctx context.Context) (more bool, err error)
	// Position returns how far a lane of a log has come for good, 0 if nothing of it
	// has.
	Position(ctx context.Context, log string, lane int) (uint64, error)
}

// Reader answers questions. Each answer is of one moment; two answers may be of
// different ones. Listings are stable while nothing is written: a cursor
// continues behind the last element given, whatever was written since.
//
// Errors: ErrNotFound, ErrCursor, ErrFailed, ErrCorrupt, ErrClosed, or ctx's, wrapped.
type Reader interface {
	// Lineage walks over current lineage from a root.
	Lineage(ctx context.Context, q LineageQuery) (*Lineage, error)
	Datasets(ctx context.Context, q EntityQuery) (Page[Entity], error)
	Jobs(ctx context.Context, q EntityQuery) (Page[Entity], error)
	Dataset(ctx context.Context, id fact.ID) (*Dataset, error)
	Job(ctx context.Context, id fact.ID) (*Job, error)
	// Search finds datasets and jobs by name, the best hits first.
	Search(ctx context.Context, q SearchQuery) (Found, error)
	// Runs lists logical runs, those that began last first.
	Runs(ctx context.Context, q RunQuery) (Page[*lineage.RunRow], error)
	Run(ctx context.Context, id lineage.RunID) (*Run, error)
	// Standings returns what attempts are settled as, in their order.
	Standings(ctx context.Context, attempts []fact.Attempt) ([]Standing, error)
	// Events lists distinct bodies, those received last first. A filter that fits
	// few of many bodies may end a page early, even an empty one: Next goes on.
	Events(ctx context.Context, q EventQuery) (Page[LoggedEvent], error)
	// Event returns all distinct bodies of one event, those received first first.
	Event(ctx context.Context, id fact.ID) ([]LoggedEvent, error)
	// Snapshot writes the canonical snapshot, of a moment at which nothing is
	// pending; it settles what is.
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

// Archive gives the bodies of a log back. A driver keeps where a body stands, and
// no copy of it.
type Archive interface {
	// Event returns the body at a place of a log. Errors: ErrNotFound where the log no
	// longer reaches back so far, ErrCorrupt where it never came so far; wrapped; or the
	// log's.
	Event(sequence uint64) (LoggedEvent, error)
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

// Standing is what an attempt is settled as at a moment: a run found later moves
// it (docs/identity.md, Slots).
type Standing struct {
	// Run and Attempt are zero for one that nothing is settled of.
	Run     lineage.RunID
	Attempt fact.ID
	// Settled says that nothing of its own is pending.
	Settled bool
}

// SearchQuery asks for entities by name.
type SearchQuery struct {
	Text string
	// Kind limits to datasets or jobs, "" for both, Namespace to one, "" for all.
	Kind      fact.EntityKind
	Namespace string
	Limit     int
}

// Found is the answer to a SearchQuery.
type Found struct {
	Hits []Hit
	// More says that there may be more hits than these.
	More bool
	// Indexing says that the index is still being made, so that hits may be missing.
	Indexing bool
}

// Hit is an entity found by name.
type Hit struct {
	Entity
	Kind fact.EntityKind
	// Match says how the name fits the text: name, lastSegment, namePrefix,
	// segmentPrefix, substring or namespace.
	Match string
}

// LoggedEvent is one distinct body as it arrived.
type LoggedEvent struct {
	*fact.Event
	// Sequence numbers the bodies in their order of arrival, from 1.
	Sequence uint64
	Outcome  Outcome
	Received time.Time
	Payload  []byte
}

// Stats counts what a store holds.
type Stats struct {
	Datasets, Jobs, Runs, Attempts, Events, Derivations int
	// Settling counts what is pending.
	Settling int
	// Bytes is what the store takes on disk, 0 for one in memory; Debt is what of it
	// has yet to be compacted, in bytes.
	Bytes, Debt int64
	// Rows and RowBytes count the rows written since the store was opened, deletions
	// too, and the bytes of their keys and values.
	Rows, RowBytes int64
}
