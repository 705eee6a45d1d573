package httpapi

import (
	"encoding/json"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
)

// run is a logical run: all attempts of one job in one slot.
type run struct {
	ID       lineage.RunID    `json:"id"`
	Job      named            `json:"job"`
	Slot     *slot            `json:"slot"`
	State    lineage.RunState `json:"state"`
	Attempts int              `json:"attempts"`
	// Newest is the attempt that the state is of.
	Newest fact.ID `json:"newestAttempt"`
	// Parent is the logical run of its parent, Root of its topmost ancestor.
	Parent   string `json:"parent,omitempty"`
	Root     string `json:"root,omitempty"`
	Backfill bool   `json:"backfill"`
	First    string `json:"firstEventTime"`
	Last     string `json:"lastEventTime"`
}

func runText(id lineage.RunID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

func showRun(r *lineage.RunRow) run {
	return run{
		ID: r.ID, Job: jobNamed(r.Job), Slot: newSlot(r.Slot), State: r.State, Attempts: r.Attempts, Newest: r.Newest,
		Parent: runText(r.Parent), Root: runText(r.Root), Backfill: r.Backfill, First: when(r.First), Last: when(r.Last),
	}
}

var runStates = []lineage.RunState{lineage.Running, lineage.Complete, lineage.Failed, lineage.Aborted}

func (s *Server) getRuns(c echo.Context, q *query) error {
	rq := graph.RunQuery{Paging: q.paging(), Job: q.id("job"), State: choice(q, "state", "", runStates...)}
	if err := q.err(); err != nil {
		return err
	}
	found, err := s.opt.Node.Store.Runs(c.Request().Context(), rq)
	if err != nil {
		return err
	}
	return writeRead(c, newPage(found, showRun))
}

// runDetail is a logical run with all that is known of it.
type runDetail struct {
	run
	Members []attempt `json:"members"`
	// Asserts is its word: of a finished episode and of a newer one that runs.
	Asserts []assertion `json:"asserts"`
	// Derivations and Mappings are those that the members' and its own words name.
	Derivations []derivation `json:"derivations"`
	Mappings    []mapping    `json:"mappings"`
}

// attempt is what one producer calls a run.
type attempt struct {
	ID       fact.ID          `json:"id"`
	RunID    text             `json:"runId"`
	MapIndex *int             `json:"mapIndex,omitempty"`
	State    lineage.RunState `json:"state"`
	Slot     *slot            `json:"slot"`
	// Parent is the run that it names as its parent.
	Parent   *parent   `json:"parent,omitempty"`
	Backfill bool      `json:"backfill"`
	First    string    `json:"firstEventTime"`
	Last     string    `json:"lastEventTime"`
	Episodes []episode `json:"episodes"`
	Warnings []text    `json:"warnings"`
}

type parent struct {
	Job   named `json:"job"`
	RunID text  `json:"runId"`
	// Run is the logical run that it is.
	Run string `json:"run,omitempty"`
}

// episode is a stretch of an attempt, from a START to what ended it.
type episode struct {
	State      lineage.RunState `json:"state"`
	First      string           `json:"firstEventTime"`
	Last       string           `json:"lastEventTime"`
	Ended      string           `json:"ended,omitempty"`
	Continuous bool             `json:"continuous"`
	// Asserts says whether what it says counts: a failed batch episode is evidence,
	// one that runs is provisional.
	Asserts bool  `json:"asserts"`
	Said    *said `json:"said"`
}

type assertion struct {
	Attempt fact.ID `json:"attempt"`
	// Time is the one that decides which word is newer.
	Time     string `json:"time"`
	Finished bool   `json:"finished"`
	Said     *said  `json:"said"`
}

// said is what events say together of lineage.
type said struct {
	Inputs  []use        `json:"inputs"`
	Outputs []output     `json:"outputs"`
	Reads   []fact.ID    `json:"reads"` // derivations of what feeds nothing
	Depends []dependency `json:"depends"`
}

type use struct {
	named
	Version text   `json:"version,omitempty"`
	Subsets []text `json:"subsets,omitempty"`
}

type output struct {
	use
	Dropped     bool      `json:"dropped"`
	RenamedFrom *named    `json:"renamedFrom,omitempty"`
	Derivations []fact.ID `json:"derivations"`
	Mapping     *fact.ID  `json:"mapping,omitempty"`
}

type dependency struct {
	Upstream   named `json:"upstream"`
	Downstream named `json:"downstream"`
}

// mapping is the column lineage of one output.
type mapping struct {
	ID      fact.ID  `json:"id"`
	Job     *named   `json:"job"`
	Output  named    `json:"output"`
	Entries []column `json:"entries"`
}

type column struct {
	Field           text            `json:"field,omitempty"`
	Source          named           `json:"source"`
	SourceField     text            `json:"sourceField,omitempty"`
	Transformations json.RawMessage `json:"transformations,omitempty"`
}

func (s *Server) getRun(c echo.Context, q *query) error {
	id := q.parseRun("id", c.Param("id"))
	if err := q.err(); err != nil {
		return err
	}
	r, err := s.opt.Node.Store.Run(c.Request().Context(), id)
	if err != nil {
		return err
	}
	w := words{seen: map[fact.ID]bool{}}
	out := runDetail{run: showRun(r.RunRow), Members: showAll(r.Members, w.attempt), Asserts: []assertion{}}
	for _, a := range r.Word {
		out.Asserts = append(out.Asserts, assertion{a.Attempt, when(a.Time), a.Finished, w.said(a.Said)})
	}
	out.Derivations, out.Mappings = w.derivations, w.mappings
	if out.Derivations == nil {
		out.Derivations = []derivation{}
	}
	if out.Mappings == nil {
		out.Mappings = []mapping{}
	}
	return writeRead(c, out)
}

// words shows what is said, and gathers once each what it names.
type words struct {
	seen        map[fact.ID]bool
	derivations []derivation
	mappings    []mapping
}

func (w *words) attempt(a *lineage.AttemptRow) attempt {
	out := attempt{
		ID: a.Key, RunID: text(a.Attempt.RunID), State: a.State(), Slot: newSlot(a.Own.Slot), Backfill: a.Placement.Backfill,
		First: when(a.First), Last: when(a.Last), Warnings: showAll(a.Warnings, func(s string) text { return text(s) }),
	}
	if a.Attempt.Map != fact.NoMap {
		out.MapIndex = &a.Attempt.Map
	}
	if p := a.Own.Parent; !p.IsZero() {
		out.Parent = &parent{jobNamed(p.Job), text(p.RunID), runText(a.ParentRun)}
	}
	for i := range a.Episodes {
		e := &a.Episodes[i]
		out.Episodes = append(out.Episodes, episode{e.State, when(e.First), when(e.Last), when(e.Ended), e.Continuous, e.Asserts(a.ParentCompleted), w.said(e.Said)})
	}
	return out
}

func (w *words) said(s *lineage.Said) *said {
	if s == nil {
		return nil
	}
	out := &said{Inputs: []use{}, Outputs: []output{}, Reads: w.refer(s.Reads), Depends: []dependency{}}
	for i := range s.Inputs {
		in := &s.Inputs[i]
		out.Inputs = append(out.Inputs, newUse(in.DatasetRef, in.Version, in.Subsets))
	}
	for i := range s.Outputs {
		o := &s.Outputs[i]
		shown := output{use: newUse(o.DatasetRef, o.Version, o.Subsets), Dropped: o.Dropped, Derivations: w.refer(o.Derivations)}
		if o.Rename != nil {
			from := newNamed(o.Rename.From.ID, o.Rename.From.Name)
			shown.RenamedFrom = &from
		}
		if o.Mapping != nil {
			shown.Mapping = &o.Mapping.ID
			w.mapping(o.Mapping)
		}
		out.Outputs = append(out.Outputs, shown)
	}
	for _, d := range s.Depends {
		out.Depends = append(out.Depends, dependency{jobNamed(d.Upstream), jobNamed(d.Downstream)})
	}
	return out
}

func newUse(r lineage.DatasetRef, version string, subsets []string) use {
	return use{newNamed(r.ID, r.Name), text(version), showAll(subsets, func(s string) text { return text(s) })}
}

func (w *words) refer(list []*lineage.Derivation) []fact.ID {
	ids := make([]fact.ID, len(list))
	for i, d := range list {
		ids[i] = d.ID
		if !w.seen[d.ID] {
			w.seen[d.ID] = true
			w.derivations = append(w.derivations, showDerivation(d))
		}
	}
	return ids
}

func (w *words) mapping(m *lineage.Mapping) {
	if w.seen[m.ID] {
		return
	}
	w.seen[m.ID] = true
	out := mapping{ID: m.ID, Job: jobOrNone(m.Job), Output: newNamed(m.Output.ID, m.Output.Name), Entries: make([]column, len(m.Entries))}
	for i := range m.Entries {
		e := &m.Entries[i]
		out.Entries[i] = column{text(e.Field), newNamed(fact.DatasetKey(e.Source), e.Source), text(e.SourceField), json.RawMessage(e.Transformations)}
	}
	w.mappings = append(w.mappings, out)
}
