package lineage

import (
	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// childrenAtOnce bounds how many children of one attempt a settlement reads.
const childrenAtOnce = 500

// Settle does up to limit Todos, oldest kinds first, and brings everything that
// follows from them up to date, except for what it leaves as new Todos. It
// returns how many Todos it did; 0 means that nothing is pending.
//
// The result is a function of the facts: whatever the order in which facts were
// merged and Todos done, a State without Todos has the same rows. Its cost
// follows what changed. The caller makes Merge and Settle atomic.
func (st *State) Settle(limit int) int {
	s := &settlement{
		State: st,
		runs:  map[RunID]bool{}, gens: map[fact.ID]bool{}, flags: map[fact.ID]genFlags{}, genOutputs: map[genOutput]bool{},
		outputs: map[jobOutput]bool{}, pending: map[string]int{}, refs: map[ref]int{},
	}
	var todos []Todo
	var keys []string
	for key, t := range st.Todos.Scan("", "") {
		todos, keys = append(todos, t), append(keys, key)
		if len(todos) == limit {
			break
		}
	}
	for _, key := range keys {
		st.Todos.Delete(key)
	}
	for i := range todos {
		s.do(&todos[i])
	}
	s.settleRuns()
	s.settleGenerations()
	s.settleGenOutputs()
	s.settleOutputs()
	s.applyCurrent()
	s.applyRefs()
	return len(todos)
}

// settlement is one run of Settle: what became stale on each level. The levels
// are settled in turn, each from the rows of the one before.
type settlement struct {
	*State
	runs       map[RunID]bool
	gens       map[fact.ID]bool
	flags      map[fact.ID]genFlags // of generations, as their outputs have them
	genOutputs map[genOutput]bool
	outputs    map[jobOutput]bool
	pending    map[string]int // of Current: by how much its rows change
	refs       map[ref]int    // by how much Refs change
}

// genFlags are what the candidates of a generation have of it.
type genFlags struct{ open, backfill bool }

func (g *GenerationRow) flags() genFlags { return genFlags{g.Open, g.Backfill()} }

// genOutput is an output of a generation, and the generation's job.
type genOutput struct{ gen, output, job fact.ID }

// jobOutput is an output of a job; the zero job stands for the declarations of
// dataset events.
type jobOutput struct{ job, output fact.ID }

func (s *settlement) do(t *Todo) {
	switch t.Kind {
	case TodoAttempt:
		s.settleGroup(t.Attempt)
	case TodoJob:
		s.settleDeclaration(fact.JobKey(t.Attempt.Job), jobDeclaration(t.Attempt.Job, s.newest(fact.JobKey(t.Attempt.Job), declaresJob)), false)
	case TodoDataset:
		id := fact.DatasetKey(t.Attempt.Job)
		s.settleDeclaration(id, datasetDeclaration(t.Attempt.Job, s.newest(id, declaresLineage), s.newest(id, declaresColumns)), true)
	case TodoChildren:
		s.readChildren(s.Children, t)
	case TodoRunning:
		s.readChildren(s.RunningChildren, t)
	case TodoTop:
		s.settleTop(t.Run, t.Generation)
		s.gens[t.Generation] = true
	}
}

// readChildren leaves a Todo for each child, some at once.
func (s *settlement) readChildren(children Table[fact.Attempt], t *Todo) {
	prefix := keyOf(t.Attempt.Ref().Key()).String()
	n := 0
	for key, child := range children.Scan(prefix, t.After) {
		if n == childrenAtOnce {
			t.After = key
			s.todo(*t)
			return
		}
		s.todo(Todo{Kind: TodoAttempt, Attempt: child})
		n++
	}
}

// settleGroup reads the attempts anew that an event of attempt a concerns. An
// event without a map index belongs to the one mapped attempt of its run; so
// where a run has two attempts, both are read.
func (s *settlement) settleGroup(a fact.Attempt) {
	group := s.group(a.Ref())
	if len(group) != 2 {
		group = []fact.Attempt{a}
	}
	for _, b := range group {
		s.settleAttempt(b)
	}
}

// group returns the first few attempts that events of a run name, the unmapped
// one first.
func (st *State) group(ref fact.RunRef) (attempts []fact.Attempt) {
	for _, a := range st.Groups.Scan(keyOf(ref.Key()).String(), "") {
		if attempts = append(attempts, a); len(attempts) == 3 {
			break
		}
	}
	return attempts
}

// adopt says what the attempts of a run have to do with its events without a
// map index: sole is the one mapped attempt that has them, false if none has.
func adopt(group []fact.Attempt) (sole fact.Attempt, ok bool) {
	mapped := 0
	for _, a := range group {
		if a.Map != fact.NoMap {
			mapped++
			sole = a
		}
	}
	return sole, mapped == 1
}

// apart reports whether an attempt without a map index stands beside several
// that have one, so that nobody can tell whose its events are.
func apart(a fact.Attempt, group []fact.Attempt) bool {
	_, adopted := adopt(group)
	return a.Map == fact.NoMap && !adopted && len(group) > 1
}

// resolve returns the attempt that a reference to a run means: a reference has
// no map index.
func (s *settlement) resolve(ref fact.RunRef) fact.Attempt {
	if sole, ok := adopt(s.group(ref)); ok {
		return sole
	}
	return fact.Attempt{Job: ref.Job, RunID: ref.RunID, Map: fact.NoMap}
}

func (s *settlement) linkOf(a fact.Attempt) link {
	key := a.Key()
	if row, ok := s.Attempts.Get(keyOf(key).String()); ok {
		return row.link()
	}
	return link{attempt: a, key: key, slot: unheard(a)}
}

func (a *AttemptRow) link() link {
	return link{
		attempt: a.Attempt, key: a.Key, known: true, slot: a.Own.Slot, parent: a.Own.Parent, backfill: a.Own.Backfill,
	}
}

// observationsOf returns what an attempt was observed of: its own events, and
// those of its run without a map index where it is the only mapped one.
func (s *settlement) observationsOf(a fact.Attempt) (observations []fact.Observation) {
	group := s.group(a.Ref())
	sole, adopted := adopt(group)
	if adopted && a.Map == fact.NoMap {
		return nil // they are the mapped attempt's
	}
	read := func(a fact.Attempt) {
		for _, o := range s.Observations.Scan(keyOf(a.Key()).String(), "") {
			observations = append(observations, o)
		}
	}
	read(a)
	if adopted && sole == a {
		read(fact.Attempt{Job: a.Job, RunID: a.RunID, Map: fact.NoMap})
	}
	return observations
}

// settleAttempt reads an attempt anew and finds its place.
func (s *settlement) settleAttempt(a fact.Attempt) {
	id := a.Key()
	key := keyOf(id).String()
	old, _ := s.Attempts.Get(key)
	var row *AttemptRow
	if observations := s.observationsOf(a); len(observations) > 0 {
		var before *Own
		if old != nil {
			before = &old.Own
		}
		row = &AttemptRow{Key: id, Own: readAttempt(a, s.group(a.Ref()), observations, before)}
		s.intern(row, before)
		s.Attempts.Put(key, row) // place finds it as its first link
		row.place(s, s.Version)
		row.ParentCompleted = s.completed(row)
	} else if old == nil {
		return
	} else {
		s.Attempts.Delete(key)
	}
	s.cascade(a, old, row)
	s.indexChild(old, row)
	s.member(old, row)
}

// completed returns the latest standing COMPLETE of a row's parent.
func (s *settlement) completed(row *AttemptRow) (at openlineage.Instant) {
	if row.Placement.Parent.IsZero() {
		return at
	}
	if parent, ok := s.Attempts.Get(keyOf(row.Placement.Parent).String()); ok {
		at = parent.Completed
	}
	return at
}

// cascade leaves Todos for the children of an attempt whose place changed, and
// for those that run if the time of its COMPLETE did.
func (s *settlement) cascade(a fact.Attempt, old, row *AttemptRow) {
	ref := fact.Attempt{Job: a.Job, RunID: a.RunID, Map: fact.NoMap}
	switch {
	case old == nil || row == nil || old.Placement.seen != row.Placement.seen:
		s.todoIfAny(s.Children, Todo{Kind: TodoChildren, Attempt: ref})
	case old.Completed != row.Completed:
		s.todoIfAny(s.RunningChildren, Todo{Kind: TodoRunning, Attempt: ref})
	}
}

// todoIfAny leaves a Todo for the children of an attempt, if it has any. One that
// comes later finds the attempt as it is now.
func (s *settlement) todoIfAny(children Table[fact.Attempt], t Todo) {
	if _, _, any := first(children.Scan(keyOf(t.Attempt.Ref().Key()).String(), "")); any {
		s.todo(t)
	}
}

// indexChild keeps the indexes by parent reference.
func (s *settlement) indexChild(old, row *AttemptRow) {
	index := func(t Table[fact.Attempt], holds func(*AttemptRow) bool) {
		key := func(r *AttemptRow) string {
			if r == nil || r.Own.Parent.IsZero() || !holds(r) {
				return ""
			}
			return keyOf(r.Own.Parent.Key(), r.Key).String()
		}
		was, is := key(old), key(row)
		if was == is {
			return
		}
		if was != "" {
			t.Delete(was)
		}
		if is != "" {
			t.Put(is, row.Attempt)
		}
	}
	index(s.Children, func(*AttemptRow) bool { return true })
	index(s.RunningChildren, func(r *AttemptRow) bool { return r.State() == Running })
}

// member keeps an attempt's rows under its logical run.
func (s *settlement) member(old, row *AttemptRow) {
	for _, r := range []*AttemptRow{old, row} {
		if r == nil {
			continue
		}
		s.runs[r.Run] = true
		run := keyBuilder{}.run(r.Run).String()
		n := 1
		if r == old {
			n = -1
			s.Members.Delete(run + r.order().String())
			s.MemberFirst.Delete(run + keyBuilder{}.time(r.First).id(r.Key).String())
			s.MemberLast.Delete(run + keyBuilder{}.time(r.Last).id(r.Key).String())
		} else {
			s.Members.Put(run+r.order().String(), r.Key)
			s.MemberFirst.Put(run+keyBuilder{}.time(r.First).id(r.Key).String(), struct{}{})
			s.MemberLast.Put(run+keyBuilder{}.time(r.Last).id(r.Key).String(), struct{}{})
		}
		t, _ := s.Tallies.Get(run)
		if t = t.add(r, n); t == (tally{}) {
			s.Tallies.Delete(run)
		} else {
			s.Tallies.Put(run, t)
		}
	}
}
