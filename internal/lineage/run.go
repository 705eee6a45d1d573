package lineage

import (
	"cmp"
	"iter"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// AttemptRow is a settled attempt.
type AttemptRow struct {
	Key fact.ID
	Own
	Placement
	// ParentCompleted is the latest standing COMPLETE of the parent attempt.
	ParentCompleted openlineage.Instant
}

// place finds the attempt's place.
func (a *AttemptRow) place(w way, version string) {
	a.Placement = place(w, version, a.Attempt)
	if a.Cycle {
		a.Warnings = append(a.Warnings, "parents in a cycle")
	}
}

// State returns the attempt's state: that of its last episode.
func (a *AttemptRow) State() RunState { return a.last().State }

// order is what newest means among the attempts of a logical run: the first
// event time of the last episode, then the last event time, then the key. So a
// killed first try that reports late does not win.
func (a *AttemptRow) order() keyBuilder {
	return keyBuilder{}.time(a.last().First).time(a.Last).id(a.Key)
}

// Assertion is one episode's word as a logical run asserts it.
type Assertion struct {
	Attempt fact.ID
	// Time is the deciding time: of the standing terminal observation, or of the
	// last event while it runs.
	Time openlineage.Instant
	// Finished is false for the word of an episode that still runs.
	Finished bool
	Said     *Said
}

// RunRow is a settled logical run: all attempts of one job in one slot.
type RunRow struct {
	ID       RunID
	Job      openlineage.Name
	Slot     fact.Slot
	Under    RunID
	Attempts int
	// Newest is the attempt that State is of.
	Newest fact.ID
	State  RunState
	// Parent is the logical run of the newest attempt's parent that names one,
	// zero if none does.
	Parent RunID
	// Root and Top place it in a generation: see Placement.
	Root, Top RunID
	Backfill  bool
	Terminal  bool
	// First and Last are the first and last event time of all its attempts.
	First, Last openlineage.Instant
	// Word is what it asserts: at most a finished and a newer running episode.
	Word []Assertion
}

// finished reports whether the run has a finished assertion.
func (r *RunRow) finished() bool { return len(r.Word) > 0 && r.Word[0].Finished }

// tally is what a logical run's attempts amount to together; it is kept so that
// a change of one attempt need not read the others.
type tally struct {
	attempts, terminal, backfill int
	// placed counts those that name a parent, asserting those that assert.
	placed, asserting int
}

func (t tally) add(a *AttemptRow, n int) tally {
	t.attempts += n
	if a.Terminal {
		t.terminal += n
	}
	if a.Placement.Backfill {
		t.backfill += n
	}
	if !a.Placement.Parent.IsZero() {
		t.placed += n
	}
	if a.asserts() {
		t.asserting += n
	}
	return t
}

// asserts reports whether an episode of the attempt asserts.
func (a *AttemptRow) asserts() bool {
	return slices.ContainsFunc(a.Episodes, func(e Episode) bool { return e.Asserts(a.ParentCompleted) })
}

// readRun concludes on a logical run from its attempts, newest first; it reads
// only as many of them as it needs: a slot that was tried ten thousand times in
// vain has ten thousand. There is at least one.
func readRun(t tally, first, last openlineage.Instant, newestFirst iter.Seq[*AttemptRow]) RunRow {
	var r RunRow
	r.Attempts, r.Terminal, r.Backfill = t.attempts, t.terminal > 0, t.backfill > 0
	r.First, r.Last = first, last
	var running *Assertion
	placed, worded := false, false
	for a := range newestFirst {
		if r.ID.IsZero() {
			r.ID, r.Job, r.Slot, r.Under = a.Run, a.Attempt.Job, a.Placement.Slot, a.Under
			r.Newest, r.State = a.Key, a.State()
			r.Root, r.Top = a.Run, a.Run // until an attempt names a parent
		}
		if !placed && !a.Placement.Parent.IsZero() {
			r.Parent, r.Root, r.Top, placed = a.ParentRun, a.Root, a.Top, true
		}
		if !worded && a.asserts() {
			t.asserting--
			var finished *Assertion
			if finished, running = a.word(running); finished != nil {
				r.Word, worded = append(r.Word, *finished), true
			}
		}
		if (placed || t.placed == 0) && (worded || t.asserting == 0) {
			break
		}
	}
	if running != nil {
		r.Word = append(r.Word, *running)
	}
	return r
}

// word returns the newest finished asserting episode of an attempt, and its
// running one if that asserts and no newer one was found before.
func (a *AttemptRow) word(newer *Assertion) (finished, running *Assertion) {
	running = newer
	for i := len(a.Episodes) - 1; i >= 0; i-- {
		e := &a.Episodes[i]
		if !e.Asserts(a.ParentCompleted) {
			continue
		}
		said := &Assertion{Attempt: a.Key, Time: e.decides(), Finished: e.State != Running, Said: e.Said}
		if said.Finished {
			return said, running
		}
		if running == nil {
			running = said
		}
	}
	return nil, running
}

// itemKind says what an item is.
type itemKind byte

// The kinds of item that a run asserts for an output, or for what it reads.
const (
	derivationItem itemKind = 'd'
	mappingItem    itemKind = 'm'
	dependencyItem itemKind = 'j'
	renameItem     itemKind = 'n'
)

// item is one thing asserted for an output: the unit of support.
type item struct {
	kind itemKind
	id   fact.ID
}

func (i item) compare(j item) int {
	return cmp.Or(cmp.Compare(i.kind, j.kind), fact.CompareIDs(i.id, j.id))
}

// readsOutput is the output under which what a job only reads is kept.
var readsOutput fact.ID

// itemsOf yields, for each output that said speaks of, its items; what is only
// read and the relations between jobs stand under readsOutput, which is yielded
// last and always, since the deciding time of reads is that of every word.
func itemsOf(said *Said) iter.Seq2[fact.ID, []item] {
	return func(yield func(fact.ID, []item) bool) {
		for o, items := range wordsOf(said) {
			if !yield(o.outputID(), items) {
				return
			}
		}
	}
}

func (o *OutputSaid) outputID() fact.ID {
	if o == nil {
		return readsOutput
	}
	return o.ID
}

// wordsOf is itemsOf with all that is said of an output, nil for readsOutput.
func wordsOf(said *Said) iter.Seq2[*OutputSaid, []item] {
	return func(yield func(*OutputSaid, []item) bool) {
		for i := range said.Outputs {
			o := &said.Outputs[i]
			var items []item
			for _, d := range o.Derivations {
				items = append(items, item{derivationItem, d.ID})
			}
			if o.Mapping != nil {
				items = append(items, item{mappingItem, o.Mapping.ID})
			}
			if o.Rename != nil {
				items = append(items, item{renameItem, o.Rename.ID})
			}
			if !yield(o, items) {
				return
			}
		}
		var items []item
		for _, d := range said.Reads {
			items = append(items, item{derivationItem, d.ID})
		}
		for _, d := range said.Depends {
			items = append(items, item{dependencyItem, d.ID})
		}
		yield(nil, items)
	}
}
