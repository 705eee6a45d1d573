package lineage

import (
	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// State is everything that Merge and Settle read and write: the facts, which
// only grow, and what was concluded from them, which only Settle writes. A
// driver provides the tables; NewMemory has them in memory. Rows are never
// changed in place: a change is a new row.
//
// The comment behind a table is its key.
type State struct {
	// Version is the identity version that names of logical runs carry.
	Version string
	// NewName, if set, is told of each dataset and job that is named for the first
	// time.
	NewName func(fact.EntityKind, fact.ID, openlineage.Name)

	// Facts.
	Events       Table[Contents]         // event
	EventBodies  Table[struct{}]         // event, place in the log
	EntityBodies Table[struct{}]         // job of a run or job event, or dataset of a dataset event; place in the log
	Observations Table[fact.Observation] // subject, hash of observation key; without Detail
	Details      Table[string]           // the same -> Detail
	Groups       Table[fact.Attempt]     // run reference, map index -> attempt as events name it
	Declarations Table[fact.Observation] // job or dataset, kind, last time, event, content
	Datasets     Table[openlineage.Name] // dataset
	Jobs         Table[openlineage.Name] // job
	DatasetNames Table[fact.ID]          // namespace, name -> dataset
	JobNames     Table[fact.ID]          // namespace, name -> job
	Facets       Table[FacetRow]         // entity, hash of facet key, digest of value
	FacetsNow    Table[fact.ID]          // entity, hash of facet key -> digest of the current value

	// Runs.
	Attempts        Table[*AttemptRow]   // attempt
	Children        Table[fact.Attempt]  // run reference of the parent, attempt
	RunningChildren Table[fact.Attempt]  // the same, of attempts that run
	Runs            Table[*RunRow]       // run
	Tallies         Table[tally]         // run
	RunsByTime      Table[struct{}]      // first time, run
	JobRuns         Table[struct{}]      // job, first time, run
	Members         Table[fact.ID]       // run, order -> attempt
	MemberFirst     Table[struct{}]      // run, first time, attempt
	MemberLast      Table[struct{}]      // run, last time, attempt
	Generations     Table[GenerationRow] // generation
	GenFirst        Table[struct{}]      // generation, first time, run
	GenLast         Table[struct{}]      // generation, last time, run
	JobFirst        Table[struct{}]      // job, first time, generation
	JobLast         Table[struct{}]      // job, last time, generation that may be open
	Tops            Table[int]           // top run, generation -> runs
	OpenTops        Table[struct{}]      // generation, top run

	// What runs assert and what is current of it.
	Words          Table[[]item]       // generation, output, time, run, place in word
	Supports       Table[int]          // generation, output, item -> words
	GenOutputs     Table[candidate]    // generation, output
	Candidates     Table[struct{}]     // job, output, rank, time, generation
	Selected       Table[Selection]    // job, output
	Declared       Table[*Declaration] // job, or dataset after the zero ID
	Current        Table[int]          // job, output, item -> generations and declarations
	Writes         Table[struct{}]     // output, time, dropped, generation, run, place in word
	Refs           Table[int]          // job whose it is or none, item -> words and declarations
	Derivations    Table[*Derivation]  // derivation
	Mappings       Table[*Mapping]     // mapping
	Dependencies   Table[Dependency]   // dependency
	Renames        Table[*Rename]      // rename
	JobDerivations Table[int]          // job, derivation -> current outputs
	Upstream       Table[int]          // output, derivation -> jobs
	Downstream     Table[int]          // input, derivation -> 1
	Fields         Table[FieldRow]     // output, hash of edge
	Degrees        Table[Degree]       // dataset
	DependsNow     Table[int]          // dependency -> jobs
	Links          Table[int]          // dataset, dataset -> facets and renames
	Todos          Table[Todo]         // kind, what

	stored *builder // nil where the tables are in memory
}

// Degree counts the current derivations at a dataset, so that a walk that stops
// can say what it left out without counting.
type Degree struct {
	// Up are those that feed it, Down those that it feeds or that read it.
	Up   int `json:"upstream"`
	Down int `json:"downstream"`
}

// Contents are the content digests seen under one event ID, sorted.
type Contents struct {
	Kind    openlineage.Kind
	Digests []fact.ID
}

// FacetRow is one value that a facet of an entity ever had, with the first and
// last event time that gave it. The one with the greatest (last time, digest)
// is current.
type FacetRow struct {
	fact.EntityFacet
	Digest      fact.ID
	First, Last openlineage.Instant
}

// newer reports whether r is current against q.
func (r *FacetRow) newer(q *FacetRow) bool {
	c := r.Last.Compare(q.Last)
	return c > 0 || c == 0 && fact.CompareIDs(r.Digest, q.Digest) > 0
}

// GenerationRow is all logical runs of one job under one root.
type GenerationRow struct {
	ID   fact.ID
	Job  openlineage.Name
	Root RunID
	// Open says that it has no finished assertion, or that a topmost known
	// ancestor of one of its runs was never seen to end; and that no other
	// generation of the job began after its last event.
	Open        bool
	Runs        int
	Finished    int
	Backfills   int
	First, Last openlineage.Instant
	// listed says that it is in JobLast.
	listed bool
}

// Backfill reports whether the generation is of a backfill.
func (g *GenerationRow) Backfill() bool { return g.Backfills > 0 }

// Selection is what is current for one output of a job.
type Selection struct {
	Generations []fact.ID
	// Declared are the items of the declaration that stands beside them.
	Declared []item
}

// Declaration is what a job event or a dataset event declares, with no run.
type Declaration struct {
	// Job or Dataset declares; the other is zero.
	Job     openlineage.Name
	Dataset openlineage.Name
	// ByColumns says that a dataset's columnLineage facet declares, and not its
	// lineage facet.
	ByColumns bool
	// Event and Content are of the observation that declares, Time is its last.
	Event, Content fact.ID
	Time           openlineage.Instant
	Said           *Said
}

// same reports whether d and e are of one observation and one facet of it, and
// so say the same.
func (d *Declaration) same(e *Declaration) bool {
	return d.Event == e.Event && d.Content == e.Content && d.Time == e.Time && d.ByColumns == e.ByColumns
}

// FieldRow is a current edge between columns. ToField is "" for an edge to the
// whole dataset, FromField for one from a whole dataset.
type FieldRow struct {
	Job                openlineage.Name
	From, To           DatasetRef
	FromField, ToField string
	Transformations    string
	Mappings           int
}

// Todo is work that a change left for another settlement: it outlives the
// process, and any process does it.
type Todo struct {
	Kind TodoKind
	// Attempt is whom it concerns, by kind.
	Attempt fact.Attempt
	// Run and Generation are set for TodoTop.
	Run        RunID
	Generation fact.ID
	// After is how far a scan of children came.
	After string
}

// TodoKind says what is to be done.
type TodoKind byte

// The kinds of Todo, in the order in which they are done.
const (
	TodoAttempt  TodoKind = 1 + iota // read the attempt anew
	TodoJob                          // choose the job's declaration anew
	TodoDataset                      // choose the dataset's declaration anew
	TodoChildren                     // read the children of the attempt anew
	TodoRunning                      // read those of them that run anew
	TodoTop                          // a top run of the generation ended, or no longer did
)
