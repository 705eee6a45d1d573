package lineage

import "slices"

// TableID names a table of a State in a store for good: numbers are never used
// again for another table.
type TableID uint8

// The tables, as State lists them.
const (
	EventsTable TableID = 1 + iota
	EventBodiesTable
	EntityBodiesTable
	ObservationsTable
	DetailsTable
	GroupsTable
	DeclarationsTable
	DatasetsTable
	JobsTable
	DatasetNamesTable
	JobNamesTable
	FacetsTable
	FacetsNowTable
	AttemptsTable
	ChildrenTable
	RunningChildrenTable
	RunsTable
	TalliesTable
	RunsByTimeTable
	JobRunsTable
	MembersTable
	MemberFirstTable
	MemberLastTable
	GenerationsTable
	GenFirstTable
	GenLastTable
	JobFirstTable
	JobLastTable
	TopsTable
	OpenTopsTable
	WordsTable
	SupportsTable
	GenOutputsTable
	CandidatesTable
	SelectedTable
	DeclaredTable
	CurrentTable
	WritesTable
	RefsTable
	DerivationsTable
	MappingsTable
	DependenciesTable
	RenamesTable
	JobDerivationsTable
	UpstreamTable
	DownstreamTable
	FieldsTable
	DegreesTable
	DependsNowTable
	LinksTable
	TodosTable
	// ValuesTable keeps what many rows say in the same words once, by the number of
	// its digest: statements, words of episodes, values of facets. It only grows.
	ValuesTable
	// NumbersTable gives IDs short numbers, and has under "" the last one given;
	// NumberedTable gives numbers' IDs.
	NumbersTable
	NumberedTable
	// LastTable is the greatest TableID.
	LastTable = NumberedTable
)

// cachedTables are those whose rows are read again and again: what many events
// name, and the runs and generations above the ones that change.
var cachedTables = []TableID{
	DatasetsTable, JobsTable, FacetsTable, FacetsNowTable, AttemptsTable, RunsTable, GenerationsTable, SelectedTable,
	DerivationsTable, MappingsTable,
}

// numbered says how many IDs the keys of a table begin with that are written as
// numbers: those of jobs and datasets, in indexes of what comes with every event.
var numbered = [LastTable + 1]int{
	EntityBodiesTable: 1, JobRunsTable: 1, JobFirstTable: 1, JobLastTable: 1, CandidatesTable: 2, WritesTable: 1,
}

// NewMemory returns an empty State in memory.
func NewMemory(version string) *State { return newState(version, nil) }

// NewStored returns the State that a driver keeps in rows. It reads rows as they
// are asked for; what Merge and Settle change stays in it until Flush, which a
// State that is only read never needs. It is for one goroutine.
func NewStored(version string, rows Rows) *State { return newState(version, rows) }

// newState makes the tables: in memory where rows is nil.
func newState(version string, rows Rows) *State {
	st := &State{Version: version}
	b := &builder{rows: rows}
	if rows != nil {
		b.values = newValues(rows)
		st.stored = b
	}
	add(b, &st.Events, EventsTable, contentsRow)
	add(b, &st.EventBodies, EventBodiesTable, emptyRow)
	add(b, &st.EntityBodies, EntityBodiesTable, emptyRow)
	add(b, &st.Observations, ObservationsTable, observationRow)
	add(b, &st.Details, DetailsTable, textRow)
	add(b, &st.Groups, GroupsTable, attemptNameRow)
	add(b, &st.Declarations, DeclarationsTable, observationRow)
	add(b, &st.Datasets, DatasetsTable, nameRow)
	add(b, &st.Jobs, JobsTable, nameRow)
	if rows != nil {
		b.values.jobs = st.Jobs
	}
	add(b, &st.DatasetNames, DatasetNamesTable, idRow)
	add(b, &st.JobNames, JobNamesTable, idRow)
	add(b, &st.Facets, FacetsTable, facetRow)
	add(b, &st.FacetsNow, FacetsNowTable, idRow)
	add(b, &st.Attempts, AttemptsTable, attemptRow)
	add(b, &st.Children, ChildrenTable, attemptNameRow)
	add(b, &st.RunningChildren, RunningChildrenTable, attemptNameRow)
	add(b, &st.Runs, RunsTable, runRow)
	add(b, &st.Tallies, TalliesTable, tallyRow)
	add(b, &st.RunsByTime, RunsByTimeTable, emptyRow)
	add(b, &st.JobRuns, JobRunsTable, emptyRow)
	add(b, &st.Members, MembersTable, idRow)
	add(b, &st.MemberFirst, MemberFirstTable, emptyRow)
	add(b, &st.MemberLast, MemberLastTable, emptyRow)
	add(b, &st.Generations, GenerationsTable, generationRow)
	add(b, &st.GenFirst, GenFirstTable, emptyRow)
	add(b, &st.GenLast, GenLastTable, emptyRow)
	add(b, &st.JobFirst, JobFirstTable, emptyRow)
	add(b, &st.JobLast, JobLastTable, emptyRow)
	add(b, &st.Tops, TopsTable, countRow)
	add(b, &st.OpenTops, OpenTopsTable, emptyRow)
	add(b, &st.Words, WordsTable, itemsRow)
	add(b, &st.Supports, SupportsTable, countRow)
	add(b, &st.GenOutputs, GenOutputsTable, candidateRow)
	add(b, &st.Candidates, CandidatesTable, emptyRow)
	add(b, &st.Selected, SelectedTable, selectionRow)
	add(b, &st.Declared, DeclaredTable, declarationRow)
	add(b, &st.Current, CurrentTable, countRow)
	add(b, &st.Writes, WritesTable, emptyRow)
	add(b, &st.Refs, RefsTable, countRow)
	add(b, &st.Derivations, DerivationsTable, derivationRow)
	add(b, &st.Mappings, MappingsTable, mappingRow)
	add(b, &st.Dependencies, DependenciesTable, dependencyRow)
	add(b, &st.Renames, RenamesTable, renameRow)
	add(b, &st.JobDerivations, JobDerivationsTable, countRow)
	add(b, &st.Upstream, UpstreamTable, countRow)
	add(b, &st.Downstream, DownstreamTable, countRow)
	add(b, &st.Fields, FieldsTable, fieldEdgeRow)
	add(b, &st.Degrees, DegreesTable, degreeRow)
	add(b, &st.DependsNow, DependsNowTable, countRow)
	add(b, &st.Links, LinksTable, countRow)
	add(b, &st.Todos, TodosTable, todoRow)
	return st
}

// builder makes the tables of a State.
type builder struct {
	rows   Rows
	values *values
	tables []flusher
}

func add[V any](b *builder, t *Table[V], id TableID, c codec[V]) {
	if b.rows == nil {
		*t = &memoryTable[V]{}
		return
	}
	s := &storedTable[V]{id: id, rows: b.rows, codec: c, values: b.values, numbered: numbered[id]}
	if slices.Contains(cachedTables, id) {
		s.clean = &cache[V]{}
	}
	if id == JobFirstTable {
		s.lastOf = idLen
	}
	b.tables = append(b.tables, s)
	*t = s
}

// Changes takes what Flush writes: the new value of a row, nil for a row that is
// to be deleted. value is valid during the call only.
type Changes func(t TableID, key string, value []byte)

// Flush gives changes all that was changed since the last Flush, table by table in
// no particular order of keys; rows put by PutLater only with all. The caller commits
// them in one transaction; if it cannot, the State is of no use any more.
func (st *State) Flush(all bool, changes Changes) {
	for _, t := range st.stored.tables {
		t.flush(all, changes)
	}
	st.stored.values.flush(changes)
	st.stored.values.numbers.flush(changes)
}
