// Package schema holds the OpenLineage schemas and says whether an event obeys
// them: core 2-0-2 and the standard facets, in this project's own flattened
// wording, embedded.
//
// The core decides whether an event is accepted at all. A standard facet that
// breaks its own schema is reported and does not reject the event. The version
// that an event or a facet names in schemaURL or _schemaURL is not looked at:
// producers state versions they do not follow. What kind of event it is
// follows from its members.
//
// Start at New and Validator.Validate.
package schema

import (
	"github.com/graphd/graphd/internal/jsontree"
)

// EventKind says which of the three events of the standard a document is.
type EventKind uint8

// The kinds of event. The zero EventKind is none of them: the document has no
// member that tells.
const (
	RunEvent EventKind = iota + 1
	JobEvent
	DatasetEvent
)

// String returns the standard's name of the kind.
func (k EventKind) String() string {
	switch k {
	case RunEvent:
		return "RunEvent"
	case JobEvent:
		return "JobEvent"
	case DatasetEvent:
		return "DatasetEvent"
	}
	return "unknown"
}

// Violation is one place where a document breaks a schema.
type Violation struct {
	Pointer string // RFC 6901 pointer into the event; long member names are shortened
	Offset  int    // byte offset of the value at Pointer in the event's text
	Reason  string // what is wrong, in words; quotes at most 100 bytes of the event
}

// InvalidFacet is a facet that breaks the schema of its type.
type InvalidFacet struct {
	Container  Container
	Key        string
	Pointer    string // RFC 6901 pointer into the event
	Value      *jsontree.Value
	Violations []Violation // at least one
}

// Report is the outcome of validating one event. All its lists are in the
// order of the document; they are the same for the same document every time.
type Report struct {
	// Kind is the kind of event that the document was held to.
	Kind EventKind
	// Violations of the core. Empty: the event is accepted; else it is
	// rejected and its facets were not looked at. At most 32.
	Violations []Violation
	// Warnings are strings that break a format (date-time, uri, uuid), in an
	// accepted event and outside the bodies of Invalid. They reject nothing.
	// At most 32.
	Warnings []Violation
	// Invalid lists all typed facets that break their own schema. Each has at
	// most 32 violations, after 256 facets one.
	Invalid []InvalidFacet

	invalid map[*jsontree.Value]struct{} // the Values of Invalid
}

// IsInvalid reports whether facet is one of r.Invalid: the very node of the
// tree that was validated, not one equal to it.
func (r *Report) IsInvalid(facet *jsontree.Value) bool {
	if r.invalid != nil || len(r.Invalid) == 0 {
		_, ok := r.invalid[facet]
		return ok
	}
	for i := range r.Invalid { // a Report that Validate did not make
		if r.Invalid[i].Value == facet {
			return true
		}
	}
	return false
}

// Validator holds the compiled schemas. It is immutable and safe for
// concurrent use.
type Validator struct {
	digest string
	events [DatasetEvent + 1]*node
	facets map[Container]map[string]*node
}

// New compiles the embedded schemas. An error means that this build is broken:
// the program must not go on, since there is nothing to hold events to.
func New() (*Validator, error) {
	return compileAll(embedded)
}

// Digest identifies the rules: the hex SHA-256 over the schemas and over which
// facet is held to which. White space in the files does not count.
func (v *Validator) Digest() string { return v.digest }

// Bounds of what one Report holds.
const (
	maxViolations   = 32
	maxDetailFacets = 256
)

// Validate holds one event to the core rules and, if it is accepted, each of
// its typed facets to the schema of its type. It never fails: what is wrong is
// in the Report.
func (v *Validator) Validate(root *jsontree.Value) Report {
	r := v.core(root)
	if len(r.Violations) > 0 {
		return r
	}
	w := walk{validator: v, report: &r}
	switch r.Kind {
	case RunEvent:
		w.container(Run, root.At("run", "facets"), below(below(nil, "run"), "facets"))
		w.job(root)
	case JobEvent:
		w.job(root)
	case DatasetEvent:
		w.dataset(root.Get("dataset"), below(nil, "dataset"), "")
	}
	r.Warnings = tidy(r.Warnings, maxViolations)
	return r
}

// core decides the kind by the members present and gives the verdict that the
// standard's oneOf over the three kinds gives:
//
//   - with run and job only a run event is possible,
//   - with run alone only a dataset event (a job event must not have run),
//   - with job alone a job event, or a dataset event if dataset is there too;
//     exactly one of them must hold.
func (v *Validator) core(root *jsontree.Value) Report {
	if root == nil || root.Kind != jsontree.Object {
		return reject(root, "expected object, got "+describe(root))
	}
	run, job, dataset := root.Get("run"), root.Get("job"), root.Get("dataset")
	switch {
	case run != nil && job != nil:
		return v.event(RunEvent, root)
	case dataset != nil && job != nil:
		j, d := v.event(JobEvent, root), v.event(DatasetEvent, root)
		switch jobOK, datasetOK := len(j.Violations) == 0, len(d.Violations) == 0; {
		case jobOK && datasetOK:
			return reject(root, `both "job" and "dataset": a job event and a dataset event in one; send two events`)
		case datasetOK:
			return d
		}
		return j
	case dataset != nil:
		return v.event(DatasetEvent, root)
	case job != nil:
		return v.event(JobEvent, root)
	case run != nil:
		return v.event(RunEvent, root) // says that job is missing
	}
	return reject(root, `not an OpenLineage event: none of "run" with "job", "job", "dataset"`)
}

func (v *Validator) event(kind EventKind, root *jsontree.Value) Report {
	f := findings{max: maxViolations}
	f.check(v.events[kind], root, nil)
	if len(f.violations) > 0 {
		return Report{Kind: kind, Violations: tidy(f.violations, maxViolations)}
	}
	return Report{Kind: kind, Warnings: tidy(f.warnings, maxViolations)}
}

func reject(v *jsontree.Value, reason string) Report {
	return Report{Violations: []Violation{{Offset: offset(v), Reason: reason}}}
}

// walk visits the typed facets of an accepted event.
type walk struct {
	validator *Validator
	report    *Report
}

// job visits what a run event and a job event share.
func (w *walk) job(root *jsontree.Value) {
	w.container(Job, root.At("job", "facets"), below(below(nil, "job"), "facets"))
	w.datasets(root.Get("inputs"), below(nil, "inputs"), Input)
	w.datasets(root.Get("outputs"), below(nil, "outputs"), Output)
}

func (w *walk) datasets(list *jsontree.Value, p *place, c Container) {
	if list == nil {
		return
	}
	for i := range list.Items {
		w.dataset(&list.Items[i].Value, &place{parent: p, index: i}, c)
	}
}

// dataset visits the facets of one dataset; c is Input or Output for one that
// has facets of that kind too, else empty.
func (w *walk) dataset(d *jsontree.Value, p *place, c Container) {
	w.container(Dataset, d.Get("facets"), below(p, "facets"))
	switch c {
	case Input:
		w.container(c, d.Get("inputFacets"), below(p, "inputFacets"))
	case Output:
		w.container(c, d.Get("outputFacets"), below(p, "outputFacets"))
	}
}

func (w *walk) container(c Container, facets *jsontree.Value, p *place) {
	if facets == nil {
		return
	}
	types := w.validator.facets[c]
	for i := range facets.Items {
		it := &facets.Items[i]
		n := types[it.Key]
		if n == nil {
			continue
		}
		// A tombstone says which facet is gone, not what it was.
		if tombstones(c) {
			if d := it.Value.Get("_deleted"); d != nil && d.Kind == jsontree.Bool && d.Bool {
				continue
			}
		}
		w.facet(c, it, n, below(p, it.Key))
	}
}

func (w *walk) facet(c Container, it *jsontree.Item, n *node, p *place) {
	r := w.report
	f := findings{max: maxViolations}
	if len(r.Invalid) >= maxDetailFacets {
		f.max = 1
	}
	f.check(n, &it.Value, p)
	if len(f.violations) == 0 {
		// The bound leaves room for tidy to drop repetitions.
		if len(r.Warnings) < 2*maxViolations {
			r.Warnings = append(r.Warnings, f.warnings...)
		}
		return
	}
	if r.invalid == nil {
		r.invalid = map[*jsontree.Value]struct{}{}
	}
	r.invalid[&it.Value] = struct{}{}
	r.Invalid = append(r.Invalid, InvalidFacet{
		Container: c, Key: it.Key, Pointer: p.pointer(), Value: &it.Value,
		Violations: tidy(f.violations, f.max),
	})
}
