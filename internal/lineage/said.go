package lineage

import (
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// Basis says why an input is held to feed an output.
type Basis string

// The bases of a pair.
const (
	ByEntry  Basis = "explicit" // an explicit lineage facet names it
	ByColumn Basis = "column"   // column lineage names it
	ByJob    Basis = "job"      // the job reads the one and writes the other
)

// DatasetRef is a dataset with its key.
type DatasetRef struct {
	ID   fact.ID
	Name openlineage.Name
}

// Source is an input of a derivation, with the basis of its pairs.
type Source struct {
	DatasetRef
	Basis Basis
}

// Derivation is a set of inputs that feeds a set of outputs under one job: the
// hyperedge that ancestry walks. It is content-addressed, so a thousand daily
// runs that say the same share one, and a retry cannot make a phantom edge. It
// never holds a pair that no rule gave. One side may be empty.
type Derivation struct {
	ID fact.ID
	// Job is the zero name where a dataset event declares it, under no job.
	Job     openlineage.Name
	Inputs  []Source
	Outputs []DatasetRef
}

// Mapping is the column lineage of one output of a job, content-addressed.
type Mapping struct {
	ID      fact.ID
	Job     openlineage.Name
	Output  DatasetRef
	Entries []fact.ColumnEntry
}

// Dependency says that one job runs before another: control, not data.
type Dependency struct {
	ID                   fact.ID
	Upstream, Downstream openlineage.Name
}

// Rename says that a dataset had another name before.
type Rename struct {
	ID       fact.ID
	From, To DatasetRef
}

// Said is what the events of one episode, or one declaration, say together
// about lineage.
type Said struct {
	Inputs  []InputSaid
	Outputs []OutputSaid
	// Reads are derivations of what is read and feeds nothing.
	Reads []*Derivation
	// Depends are the explicit relations between jobs.
	Depends []Dependency

	// kept is the number under which a store keeps it, 0 before it does.
	kept uint64
}

// InputSaid is one dataset that is read.
type InputSaid struct {
	DatasetRef
	Version string
	Subsets []string
}

// OutputSaid is one dataset that is written.
type OutputSaid struct {
	DatasetRef
	// Version is its version facet; "" means that the attempt is the version.
	Version string
	Subsets []string
	// Dropped says that it was dropped and is fed by nothing.
	Dropped bool
	Rename  *Rename
	// Derivations feed it: one under the job that speaks, or others under jobs
	// that an explicit entry names.
	Derivations []*Derivation
	Mapping     *Mapping
}

func newDerivation(job openlineage.Name, sources []Source, outputs []DatasetRef) *Derivation {
	parts := make([]string, 0, 4+3*len(sources)+2*len(outputs))
	parts = append(parts, job.Namespace, job.Name)
	for i := range sources {
		parts = append(parts, "in", sources[i].ID.String(), string(sources[i].Basis))
	}
	for i := range outputs {
		parts = append(parts, "out", outputs[i].ID.String())
	}
	return &Derivation{ID: fact.Hash("derivation", parts...), Job: job, Inputs: sources, Outputs: outputs}
}

func newMapping(job openlineage.Name, output DatasetRef, entries []fact.ColumnEntry) *Mapping {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, fact.ColumnEntry.Compare)
	entries = slices.Compact(entries)
	parts := make([]string, 0, 3+5*len(entries))
	parts = append(parts, job.Namespace, job.Name, output.ID.String())
	for i := range entries {
		e := &entries[i]
		parts = append(parts, e.Field, e.Source.Namespace, e.Source.Name, e.SourceField, e.Transformations)
	}
	return &Mapping{ID: fact.Hash("mapping", parts...), Job: job, Output: output, Entries: entries}
}

func newDependency(up, down openlineage.Name) Dependency {
	return Dependency{ID: fact.Hash("dependency", up.Namespace, up.Name, down.Namespace, down.Name), Upstream: up, Downstream: down}
}

func newRename(from, to DatasetRef) *Rename {
	return &Rename{ID: fact.Hash("rename", from.ID.String(), to.ID.String()), From: from, To: to}
}
