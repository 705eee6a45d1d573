package lineage

import (
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// How attempts and runs are written, and what they refer to: the statements of
// events and the words of episodes, each kept once by its digest.

var runStates = []RunState{Running, Complete, Failed, Aborted}

// putPlace writes which one of a list a value is.
func putPlace[T comparable](e *encoder, list []T, v T) { e.byte(byte(slices.Index(list, v))) }

func getPlace[T comparable](d *decoder, list []T) (v T) {
	if i := d.byte(); int(i) < len(list) {
		return list[i]
	}
	d.bad = true
	return v
}

func (e *encoder) state(s RunState) { putPlace(e, runStates, s) }

func (d *decoder) state() RunState { return getPlace(d, runStates) }

// eventTypes have their places for numbers.
var eventTypes = []openlineage.EventType{
	"", openlineage.Start, openlineage.Running, openlineage.Complete, openlineage.Abort, openlineage.Fail, openlineage.Other,
}

func (e *encoder) eventType(t openlineage.EventType) { putPlace(e, eventTypes, t) }

func (d *decoder) eventType() openlineage.EventType { return getPlace(d, eventTypes) }

var attemptRow = codec[*AttemptRow]{
	put: func(e *encoder, a *AttemptRow) {
		e.attempt(a.Attempt)
		e.slot(a.Own.Slot)
		e.runRef(a.Own.Parent)
		e.byte(flag(a.Own.Backfill) | flag(a.Terminal)<<1 | flag(a.Placement.Backfill)<<2 | flag(a.Cycle)<<3)
		e.time(a.Completed)
		e.time(a.First)
		e.time(a.Last)
		putList(e, a.Episodes, func(v Episode) {
			e.time(v.First)
			e.time(v.Last)
			e.state(v.State)
			e.time(v.Ended)
			e.bool(v.Continuous)
			e.mark(v.digest)
			e.said(v.Said)
		})
		putList(e, a.Warnings, e.text)
		e.run(a.Run)
		if e.ifSet(a.Placement.Slot != a.Own.Slot) {
			e.slot(a.Placement.Slot)
		}
		e.runIfSet(a.Under)
		if e.ifSet(!a.Placement.Parent.IsZero()) {
			e.id(a.Placement.Parent)
			e.run(a.ParentRun)
		}
		e.run(a.Root)
		e.run(a.Top)
		e.mark(a.seen)
		e.time(a.ParentCompleted)
	},
	get: func(d *decoder, key string) *AttemptRow {
		a := &AttemptRow{Key: idAt(key, 0)}
		a.Attempt, a.Own.Slot, a.Own.Parent = d.attempt(), d.slot(), d.runRef()
		flags := d.byte()
		a.Own.Backfill, a.Terminal, a.Placement.Backfill, a.Cycle = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
		a.Completed, a.First, a.Last = d.time(), d.time(), d.time()
		a.Episodes = getList(d, func() Episode {
			return Episode{
				First: d.time(), Last: d.time(), State: d.state(), Ended: d.time(), Continuous: d.bool(), digest: d.mark(), Said: d.said(),
			}
		})
		a.Warnings, a.Run = getList(d, d.text), d.run()
		a.Placement.Slot = a.Own.Slot
		if d.bool() {
			a.Placement.Slot = d.slot()
		}
		if a.Under = d.runIfSet(); d.bool() {
			a.Placement.Parent, a.ParentRun = d.id(), d.run()
		}
		a.Root, a.Top, a.seen, a.ParentCompleted = d.run(), d.run(), d.mark(), d.time()
		d.bad = d.bad || len(a.Episodes) == 0
		return a
	},
}

var runRow = codec[*RunRow]{
	put: func(e *encoder, r *RunRow) {
		e.job(r.Job)
		e.slot(r.Slot)
		e.runIfSet(r.Under)
		e.int(r.Attempts)
		e.id(r.Newest)
		e.state(r.State)
		e.runIfSet(r.Parent)
		e.byte(flag(r.Backfill) | flag(r.Terminal)<<1 | flag(r.Root != r.ID)<<2 | flag(r.Top != r.Root)<<3)
		if r.Root != r.ID { // one that is under no other is its own root
			e.run(r.Root)
		}
		if r.Top != r.Root {
			e.run(r.Top)
		}
		e.time(r.First)
		e.time(r.Last)
		putList(e, r.Word, func(a Assertion) {
			e.id(a.Attempt)
			e.time(a.Time)
			e.bool(a.Finished)
			e.said(a.Said)
		})
	},
	get: func(d *decoder, key string) *RunRow {
		r := &RunRow{ID: runAt(key, 0)}
		r.Job, r.Slot, r.Under, r.Attempts, r.Newest, r.State = d.job(), d.slot(), d.runIfSet(), d.int(), d.id(), d.state()
		r.Parent = d.runIfSet()
		flags := d.byte()
		r.Backfill, r.Terminal, r.Root = flags&1 != 0, flags&2 != 0, r.ID
		if flags&4 != 0 {
			r.Root = d.run()
		}
		if r.Top = r.Root; flags&8 != 0 {
			r.Top = d.run()
		}
		r.First, r.Last = d.time(), d.time()
		r.Word = getList(d, func() Assertion {
			return Assertion{Attempt: d.id(), Time: d.time(), Finished: d.bool(), Said: d.said()}
		})
		return r
	},
}

// said writes a reference to what was said.
func (e *encoder) said(s *Said) {
	if !e.ifSet(s != nil) {
		return
	}
	if s.kept != 0 { // it was written or read before
		e.uint(s.kept)
		return
	}
	s.kept = e.value("said", func(v *encoder) { v.saidText(s) })
	e.values.said.put(numberKey(s.kept), s, len(s.Outputs)*saidBytes)
}

// saidBytes is about what one output of a Said takes in memory.
const saidBytes = 512

func (d *decoder) said() *Said {
	if !d.bool() {
		return nil
	}
	number := d.uint()
	key := numberKey(number)
	if s, ok := d.values.said.get(key); ok {
		return s
	}
	v := d.value(number)
	size := len(v.rest)
	s := v.saidText()
	if v.bad {
		d.bad = true
		return nil
	}
	s.kept = number
	d.values.said.put(key, s, 2*size)
	return s
}

// saidText writes derivations once and refers to them by number: a job of 300
// outputs has one.
func (e *encoder) saidText(s *Said) {
	var derivations []*Derivation
	number := map[*Derivation]int{}
	refer := func(list []*Derivation) {
		for _, d := range list {
			if _, known := number[d]; !known {
				number[d] = len(derivations)
				derivations = append(derivations, d)
			}
		}
	}
	for i := range s.Outputs {
		refer(s.Outputs[i].Derivations)
	}
	refer(s.Reads)
	ref := func(d *Derivation) { e.len(number[d]) }

	putList(e, derivations, e.derivation)
	putList(e, s.Inputs, func(in InputSaid) {
		e.dataset(in.DatasetRef)
		e.text(in.Version)
		putList(e, in.Subsets, e.text)
	})
	putList(e, s.Outputs, func(out OutputSaid) {
		e.dataset(out.DatasetRef)
		e.text(out.Version)
		putList(e, out.Subsets, e.text)
		e.bool(out.Dropped)
		if e.ifSet(out.Rename != nil) {
			e.rename(out.Rename)
		}
		putList(e, out.Derivations, ref)
		if e.ifSet(out.Mapping != nil) {
			e.mapping(out.Mapping)
		}
	})
	putList(e, s.Reads, ref)
	putList(e, s.Depends, e.dependency)
}

func (d *decoder) saidText() *Said {
	derivations := getList(d, d.derivation)
	ref := func() *Derivation {
		if n := d.uint(); n < uint64(len(derivations)) {
			return derivations[n]
		}
		d.bad = true
		return &Derivation{}
	}
	return &Said{
		Inputs: getList(d, func() InputSaid {
			return InputSaid{DatasetRef: d.dataset(), Version: d.text(), Subsets: getList(d, d.text)}
		}),
		Outputs: getList(d, func() (out OutputSaid) {
			out.DatasetRef, out.Version, out.Subsets, out.Dropped = d.dataset(), d.text(), getList(d, d.text), d.bool()
			if d.bool() {
				out.Rename = d.rename()
			}
			out.Derivations = getList(d, ref)
			if d.bool() {
				out.Mapping = d.mapping()
			}
			return out
		}),
		Reads:   getList(d, ref),
		Depends: getList(d, d.dependency),
	}
}

// statement writes a reference to what an event said.
func (e *encoder) statement(s *fact.Statement) {
	if !e.ifSet(s != nil) {
		return
	}
	number := e.value("statement", func(v *encoder) { v.statementText(s) })
	e.values.statements.put(numberKey(number), s, statementBytes*(len(s.Inputs)+len(s.Outputs)))
}

// statementBytes is about what one dataset of a Statement takes in memory.
const statementBytes = 512

func (d *decoder) statement() *fact.Statement {
	if !d.bool() {
		return nil
	}
	number := d.uint()
	key := numberKey(number)
	if s, ok := d.values.statements.get(key); ok {
		return s
	}
	v := d.value(number)
	size := len(v.rest)
	s := v.statementText()
	d.bad = d.bad || v.bad
	d.values.statements.put(key, s, 2*size)
	return s
}

func (e *encoder) statementText(s *fact.Statement) {
	putList(e, s.Inputs, e.use)
	putList(e, s.Outputs, e.use)
	e.explicit(s.Lineage)
	if e.ifSet(s.JobType != nil) {
		e.byte(flag(s.JobType.Continuous) | flag(s.JobType.Snapshot)<<1 | flag(s.JobType.Deleted)<<2)
	}
	if e.ifSet(s.Declares != nil) {
		e.use(*s.Declares)
	}
}

func (d *decoder) statementText() *fact.Statement {
	s := &fact.Statement{Inputs: getList(d, d.use), Outputs: getList(d, d.use), Lineage: d.explicit()}
	if d.bool() {
		flags := d.byte()
		s.JobType = &fact.JobType{Continuous: flags&1 != 0, Snapshot: flags&2 != 0, Deleted: flags&4 != 0}
	}
	if d.bool() {
		use := d.use()
		s.Declares = &use
	}
	return s
}

func (e *encoder) use(u fact.DatasetUse) {
	e.name(u.Dataset)
	e.text(u.Subset)
	if e.ifSet(u.Version != nil) {
		e.text(u.Version.Version)
		e.bool(u.Version.Deleted)
	}
	if e.ifSet(u.Lifecycle != nil) {
		e.text(u.Lifecycle.Change)
		e.name(u.Lifecycle.Previous)
		e.bool(u.Lifecycle.Deleted)
	}
	if e.ifSet(u.Columns != nil) {
		e.columns(u.Columns.Entries)
		e.bool(u.Columns.Deleted)
	}
	e.explicit(u.Lineage)
}

func (d *decoder) use() (u fact.DatasetUse) {
	u.Dataset, u.Subset = d.name(), d.text()
	if d.bool() {
		u.Version = &fact.Version{Version: d.text(), Deleted: d.bool()}
	}
	if d.bool() {
		u.Lifecycle = &fact.Lifecycle{Change: d.text(), Previous: d.name(), Deleted: d.bool()}
	}
	if d.bool() {
		u.Columns = &fact.Columns{Entries: d.columns(), Deleted: d.bool()}
	}
	u.Lineage = d.explicit()
	return u
}

func (e *encoder) explicit(x *fact.Explicit) {
	if !e.ifSet(x != nil) {
		return
	}
	e.bool(x.Deleted)
	putList(e, x.Entries, func(v fact.ExplicitEntry) {
		e.end(v.Target)
		e.bool(v.Says)
		putList(e, v.Sources, e.end)
		e.columns(v.Columns)
	})
}

func (d *decoder) explicit() *fact.Explicit {
	if !d.bool() {
		return nil
	}
	return &fact.Explicit{Deleted: d.bool(), Entries: getList(d, func() fact.ExplicitEntry {
		return fact.ExplicitEntry{Target: d.end(), Says: d.bool(), Sources: getList(d, d.end), Columns: d.columns()}
	})}
}

func (e *encoder) end(v fact.End) {
	e.bool(v.Job)
	e.name(v.Name)
}

func (d *decoder) end() fact.End {
	return fact.End{Job: d.bool(), Name: openlineage.Name{Namespace: d.text(), Name: d.text()}}
}
