package fact

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/graphd/graphd/internal/openlineage"
)

// Statement is what one event says about lineage, with dataset names cut by
// the name rules. A facet that its schema rejects is not in it.
//
// Every facet that a later one can replace has a Compare, which breaks ties
// between equal event times by content.
type Statement struct {
	Inputs, Outputs []DatasetUse
	// Lineage is the explicit lineage facet of the job, nil if absent.
	Lineage *Explicit
	// JobType is the job's jobType facet, nil if absent.
	JobType *JobType
	// Declares holds a dataset event's dataset with its columnLineage or lineage
	// facet, nil elsewhere.
	Declares *DatasetUse
}

// NamesDataset reports whether s names a dataset or has an explicit entry that
// says something.
func (s *Statement) NamesDataset() bool {
	if s == nil {
		return false
	}
	return len(s.Inputs) > 0 || len(s.Outputs) > 0 || s.Lineage.Says()
}

// DatasetUse is one mention of a dataset as an input or output.
type DatasetUse struct {
	Dataset openlineage.Name
	// Subset is what the name rules cut, "" if nothing.
	Subset string
	// Version is the version facet, nil if absent.
	Version *Version
	// Lifecycle is the lifecycleStateChange facet, nil if absent.
	Lifecycle *Lifecycle
	// Columns is the columnLineage facet, nil if absent; only outputs have one.
	Columns *Columns
	// Lineage is the explicit lineage facet, nil if absent; only outputs have one.
	Lineage *Explicit
}

// Version is a dataset's version facet.
type Version struct {
	Version string
	// Deleted says that the facet is a tombstone.
	Deleted bool
}

// Compare orders versions bytewise; a tombstone is last.
func (v *Version) Compare(w *Version) int {
	return cmp.Or(compareBools(v.Deleted, w.Deleted), cmp.Compare(v.Version, w.Version))
}

// Lifecycle is a dataset's lifecycleStateChange facet.
type Lifecycle struct {
	// Change is in upper case: ALTER, CREATE, DROP, OVERWRITE, RENAME, TRUNCATE.
	Change string
	// Previous is the name before a RENAME, zero if none.
	Previous openlineage.Name
	// Deleted says that the facet is a tombstone.
	Deleted bool
}

// Compare orders changes by their name, then by the previous name; a tombstone
// is last.
func (l *Lifecycle) Compare(m *Lifecycle) int {
	return cmp.Or(compareBools(l.Deleted, m.Deleted), cmp.Compare(l.Change, m.Change), l.Previous.Compare(m.Previous))
}

// JobType is a job's jobType facet.
type JobType struct {
	// Continuous says that the job is STREAMING or a SERVICE, which asserts what
	// it says while it runs and when it failed.
	Continuous bool
	// Snapshot says that each event is complete in itself (emissionPattern
	// COMPLETE_SNAPSHOT).
	Snapshot bool
	// Deleted says that the facet is a tombstone.
	Deleted bool
}

// Compare orders job types: those that assert more last, a tombstone behind all.
func (j *JobType) Compare(k *JobType) int {
	return cmp.Or(compareBools(j.Deleted, k.Deleted), compareBools(j.Continuous, k.Continuous), compareBools(j.Snapshot, k.Snapshot))
}

// Columns is a columnLineage facet.
type Columns struct {
	// Entries are sorted and distinct; an entry with an empty Field is of the
	// whole dataset (indirect).
	Entries []ColumnEntry
	// Deleted says that the facet is a tombstone.
	Deleted bool
}

// Compare orders facets by their entries; a tombstone is last.
func (c *Columns) Compare(d *Columns) int {
	return cmp.Or(compareBools(c.Deleted, d.Deleted), slices.CompareFunc(c.Entries, d.Entries, ColumnEntry.Compare))
}

// ColumnEntry says that a field of a source feeds a field of the output.
type ColumnEntry struct {
	// Field is the output's field, "" for an entry of the whole dataset.
	Field string
	// Source and SourceField name the input's field; SourceField is "" where an
	// explicit entry names a source as a whole.
	Source      openlineage.Name
	SourceField string
	// Transformations is the canonical JSON array of what is done, "" if unsaid.
	Transformations string
}

// Compare orders entries by output field, source, source field and transformation.
func (e ColumnEntry) Compare(f ColumnEntry) int {
	return cmp.Or(
		cmp.Compare(e.Field, f.Field), e.Source.Compare(f.Source),
		cmp.Compare(e.SourceField, f.SourceField), cmp.Compare(e.Transformations, f.Transformations))
}

// Explicit is a lineage facet of a job or an output dataset, in one form: a
// list of entries, each with its target.
type Explicit struct {
	Entries []ExplicitEntry
	// Deleted says that the facet is a tombstone: it retires a declaration and
	// says nothing else.
	Deleted bool
}

// Says reports whether x has an entry that says something. A nil facet has none.
func (x *Explicit) Says() bool {
	return x != nil && !x.Deleted && slices.ContainsFunc(x.Entries, func(e ExplicitEntry) bool { return e.Says })
}

// Compare orders facets by their entries; a tombstone is last.
func (x *Explicit) Compare(y *Explicit) int {
	return cmp.Or(compareBools(x.Deleted, y.Deleted), slices.CompareFunc(x.Entries, y.Entries, ExplicitEntry.Compare))
}

// End is one end of an explicit relation: a dataset or a job.
type End struct {
	Job  bool
	Name openlineage.Name
}

// Compare orders ends: datasets first, then by name.
func (e End) Compare(f End) int {
	return cmp.Or(compareBools(e.Job, f.Job), e.Name.Compare(f.Name))
}

// ExplicitEntry says what feeds one target.
type ExplicitEntry struct {
	Target End
	// Says is false for an entry with neither inputs nor fields: it says nothing.
	Says bool
	// Sources are the ends named in inputs and in fields, sorted and distinct.
	Sources []End
	// Columns are the field-level parts of it, sorted and distinct.
	Columns []ColumnEntry
}

// Compare orders entries by target, then by what they say.
func (e ExplicitEntry) Compare(f ExplicitEntry) int {
	return cmp.Or(
		e.Target.Compare(f.Target), compareBools(e.Says, f.Says),
		slices.CompareFunc(e.Sources, f.Sources, End.Compare), slices.CompareFunc(e.Columns, f.Columns, ColumnEntry.Compare))
}

// CompareIDs orders IDs bytewise.
func CompareIDs(a, b ID) int { return bytes.Compare(a[:], b[:]) }

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
