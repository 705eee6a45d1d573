// Package openlineage holds the words of the OpenLineage standard that the
// rest of graphd speaks: kinds of event, states of a run, names, and the
// spellings of a time. It is a leaf: it imports nothing of graphd.
package openlineage

import "cmp"

// Kind is what an event speaks of. It follows from the event's shape, never
// from its schemaURL.
type Kind string

// The kinds of event of OpenLineage 2-0-2.
const (
	RunEvent     Kind = "run"
	JobEvent     Kind = "job"
	DatasetEvent Kind = "dataset"
)

// EventType is the transition that a run event reports, as sent; "" where the
// event has none (the standard leaves it optional).
type EventType string

// The event types of OpenLineage 2-0-2.
const (
	Start    EventType = "START"
	Running  EventType = "RUNNING"
	Complete EventType = "COMPLETE"
	Abort    EventType = "ABORT"
	Fail     EventType = "FAIL"
	Other    EventType = "OTHER"
)

// Terminal reports whether t ends an episode of a run.
func (t EventType) Terminal() bool { return t == Complete || t == Fail || t == Abort }

// Container is where a facet stands.
type Container string

// The containers of facets. Input and Output are the inputFacets and
// outputFacets of a dataset in an event; Dataset is its facets anywhere.
const (
	RunFacets     Container = "run"
	JobFacets     Container = "job"
	DatasetFacets Container = "dataset"
	InputFacets   Container = "input"
	OutputFacets  Container = "output"
)

// Name names a job or a dataset. Names hold colons, slashes and spaces, so
// nothing is ever split out of one string.
type Name struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Compare orders names by namespace, then name, bytewise.
func (n Name) Compare(m Name) int {
	return cmp.Or(cmp.Compare(n.Namespace, m.Namespace), cmp.Compare(n.Name, m.Name))
}
