package lineage

import (
	"iter"
	"maps"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// settleRuns reads the stale logical runs anew and moves what they assert.
func (s *settlement) settleRuns() {
	for run := range s.runs {
		key := keyBuilder{}.run(run).String()
		old, _ := s.Runs.Get(key)
		row := s.readRun(key)
		if row != nil {
			s.Runs.Put(key, row)
		} else {
			s.Runs.Delete(key)
		}
		s.indexRun(old, row)
		s.moveRun(old, row)
		if wasTerminal, isTerminal := old != nil && old.Terminal, row != nil && row.Terminal; wasTerminal != isTerminal {
			for k := range s.Tops.Scan(key, "") {
				s.todo(Todo{Kind: TodoTop, Run: run, Generation: idAt(k, runLen)})
			}
		}
	}
}

// indexRun keeps the indexes by time of the first event, which seldom moves.
func (s *settlement) indexRun(old, row *RunRow) {
	keys := func(r *RunRow) (byTime, byJob string) {
		byTime = keyBuilder{}.time(r.First).run(r.ID).String()
		return byTime, keyOf(fact.JobKey(r.Job)).String() + byTime
	}
	if old != nil && row != nil && old.First == row.First {
		return
	}
	if old != nil {
		byTime, byJob := keys(old)
		s.RunsByTime.Delete(byTime)
		s.JobRuns.Delete(byJob)
	}
	if row != nil {
		byTime, byJob := keys(row)
		s.RunsByTime.Put(byTime, struct{}{})
		s.JobRuns.Put(byJob, struct{}{})
	}
}

func (s *settlement) readRun(key string) *RunRow {
	t, ok := s.Tallies.Get(key)
	if !ok {
		return nil
	}
	firstKey, _, _ := first(s.MemberFirst.Scan(key, ""))
	lastKey, _, _ := first(s.MemberLast.ScanBack(key))
	members := func(yield func(*AttemptRow) bool) {
		for _, id := range s.Members.ScanBack(key) {
			row, ok := s.Attempts.Get(keyOf(id).String())
			if ok && !yield(row) {
				return
			}
		}
	}
	row := readRun(t, timeAt(firstKey, runLen), timeAt(lastKey, runLen), iter.Seq[*AttemptRow](members))
	return &row
}

// moveRun replaces a logical run's part in its generation, and its word.
func (s *settlement) moveRun(old, row *RunRow) {
	for _, r := range []*RunRow{old, row} {
		if r == nil {
			continue
		}
		n := 1
		if r == old {
			n = -1
		}
		s.joinGeneration(r, n)
	}
	was, is := s.wordRows(old), s.wordRows(row)
	for key, w := range was {
		if _, stays := is[key]; !stays {
			s.Words.Delete(key)
			s.Writes.Delete(w.writeKey)
			s.support(w, -1)
		}
	}
	for key, w := range is {
		if before, stayed := was[key]; stayed {
			if !slices.Equal(before.items, w.items) || before.writeKey != w.writeKey {
				s.Words.Put(key, w.items)
				s.Writes.Delete(before.writeKey)
				s.write(w)
				s.support(before, -1)
				s.support(w, 1)
			}
			continue
		}
		s.Words.Put(key, w.items)
		s.write(w)
		s.support(w, 1)
	}
	s.settleSupports(was, is)
}

// joinGeneration adds a logical run to its generation, or with n = -1 takes it
// out.
func (s *settlement) joinGeneration(r *RunRow, n int) {
	id := generationKey(r.Job, r.Root)
	key := keyOf(id).String()
	g, _ := s.Generations.Get(key)
	s.noteFlags(&g, id)
	g.ID, g.Job, g.Root = id, r.Job, r.Root
	g.Runs += n
	if r.finished() {
		g.Finished += n
	}
	if r.Backfill {
		g.Backfills += n
	}
	s.Generations.Put(key, g)
	s.gens[id] = true
	firstKey := keyOf(id).time(r.First).run(r.ID).String()
	lastKey := keyOf(id).time(r.Last).run(r.ID).String()
	if n > 0 {
		s.GenFirst.Put(firstKey, struct{}{})
		s.GenLast.Put(lastKey, struct{}{})
	} else {
		s.GenFirst.Delete(firstKey)
		s.GenLast.Delete(lastKey)
	}
	if count(s.Tops, keyBuilder{}.run(r.Top).id(id).String(), n) {
		s.settleTop(r.Top, id)
	}
}

// noteFlags keeps what the candidates of a generation have of it, before it
// changes.
func (s *settlement) noteFlags(g *GenerationRow, id fact.ID) {
	if _, noted := s.flags[id]; !noted {
		s.flags[id] = g.flags()
	}
}

// settleTop notes whether a top run holds a generation open: it does while it
// was never seen to end.
func (s *settlement) settleTop(top RunID, gen fact.ID) {
	key := keyOf(gen).run(top).String()
	run, known := s.Runs.Get(keyBuilder{}.run(top).String())
	open := has(s.Tops, keyBuilder{}.run(top).id(gen).String()) && !(known && run.Terminal)
	if open {
		s.OpenTops.Put(key, struct{}{})
	} else {
		s.OpenTops.Delete(key)
	}
}

// wordRow is one output of one assertion of a logical run.
type wordRow struct {
	gen, output, job fact.ID
	items            []item
	said             *Said
	of               *OutputSaid // nil for readsOutput
	writeKey         string
}

// wordRows returns the rows of Words that a logical run makes.
func (s *settlement) wordRows(r *RunRow) map[string]wordRow {
	if r == nil {
		return nil
	}
	rows := map[string]wordRow{}
	gen, job := generationKey(r.Job, r.Root), fact.JobKey(r.Job)
	for i, a := range r.Word {
		for o, items := range wordsOf(a.Said) {
			output := o.outputID()
			w := wordRow{gen: gen, output: output, job: job, items: items, said: a.Said, of: o}
			if o != nil {
				w.writeKey = keyOf(output).time(a.Time).byte(flag(o.Dropped)).id(gen).run(r.ID).byte(byte(i)).String()
			}
			rows[keyOf(gen, output).time(a.Time).run(r.ID).byte(byte(i)).String()] = w
		}
	}
	return rows
}

func (s *settlement) write(w wordRow) {
	if w.writeKey != "" {
		s.Writes.Put(w.writeKey, struct{}{})
	}
}

// support notes that the words for an output of a generation gained or lost
// items; settleSupports applies it.
func (s *settlement) support(w wordRow, n int) {
	s.refer(w.said, w.of, n)
	if n > 0 && len(w.items) > 0 {
		s.keep(w.said, w.of)
	}
}

// ref is an item under the job whose it is, zero for one of no job's own.
type ref struct {
	home fact.ID
	item
}

func (r ref) key() string { return keyOf(r.home).String() + r.item.key() }

// refer notes that somebody asserts or declares, or with n = -1 no longer does, what
// is said of an output, nil for readsOutput.
func (s *settlement) refer(said *Said, o *OutputSaid, n int) {
	derivations := said.Reads
	if o == nil {
		for _, d := range said.Depends {
			s.refs[ref{item: item{dependencyItem, d.ID}}] += n
		}
	} else {
		derivations = o.Derivations
		if o.Mapping != nil {
			s.refs[ref{fact.JobKey(o.Mapping.Job), item{mappingItem, o.Mapping.ID}}] += n
		}
		if o.Rename != nil {
			s.refs[ref{item: item{renameItem, o.Rename.ID}}] += n
		}
	}
	for _, d := range derivations {
		s.refs[ref{fact.JobKey(d.Job), item{derivationItem, d.ID}}] += n
	}
}

// settleSupports applies the net change of a run's word, so that what stays is
// not withdrawn and given again, and marks the outputs concerned.
func (s *settlement) settleSupports(was, is map[string]wordRow) {
	net := map[string]int{}
	add := func(rows map[string]wordRow, n int) {
		for _, w := range rows {
			s.genOutputs[genOutput{w.gen, w.output, w.job}] = true
			for _, it := range w.items {
				net[keyOf(w.gen, w.output).String()+it.key()] += n
			}
		}
	}
	add(was, -1)
	add(is, 1)
	for key, n := range net {
		if n == 0 || !count(s.Supports, key, n) {
			continue
		}
		// An item that a selected generation gained or lost is current, or not.
		gen := idAt(key, 0)
		g, _ := s.Generations.Get(keyOf(gen).String())
		output := keyOf(fact.JobKey(g.Job), idAt(key, idLen)).String()
		if sel, _ := s.Selected.Get(output); slices.Contains(sel.Generations, gen) {
			s.pending[output+key[2*idLen:]] += sign(n)
		}
	}
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// settleGenerations brings the stale generations up to date, and those that a
// newer one closes.
func (s *settlement) settleGenerations() {
	for len(s.gens) > 0 {
		gens := slices.SortedFunc(maps.Keys(s.gens), fact.CompareIDs)
		clear(s.gens)
		for _, id := range gens {
			s.dateGeneration(id)
		}
		for _, id := range gens {
			s.openGeneration(id)
		}
	}
}

// dateGeneration settles the first and last event time of a generation, and
// marks the generations of its job that the change closes or opens.
func (s *settlement) dateGeneration(id fact.ID) {
	key := keyOf(id).String()
	g, ok := s.Generations.Get(key)
	if !ok {
		return
	}
	job := fact.JobKey(g.Job)
	before := s.lastBeginning(job)
	old := g
	if g.Runs > 0 {
		firstKey, _, _ := first(s.GenFirst.Scan(key, ""))
		lastKey, _, _ := first(s.GenLast.ScanBack(key))
		g.First, g.Last = timeAt(firstKey, idLen), timeAt(lastKey, idLen)
		s.Generations.Put(key, g)
	}
	// A generation that is not dated yet has a First of zero and is in none.
	index := func(t Table[struct{}], was, is openlineage.Instant) {
		if g.Runs > 0 && was == is {
			return
		}
		if !old.First.IsZero() {
			t.Delete(keyOf(job).time(was).id(id).String())
		}
		if g.Runs > 0 {
			t.Put(keyOf(job).time(is).id(id).String(), struct{}{})
		}
	}
	index(s.JobFirst, old.First, g.First)
	if g.listed = s.mayBeOpen(&g, key); g.listed != old.listed {
		s.Generations.Put(key, g)
	}
	if old.listed && (!g.listed || old.Last != g.Last) {
		s.JobLast.Delete(keyOf(job).time(old.Last).id(id).String())
	}
	if g.listed && (!old.listed || old.Last != g.Last) {
		s.JobLast.Put(keyOf(job).time(g.Last).id(id).String(), struct{}{})
	}
	after := before
	if old.First != g.First || g.Runs == 0 {
		after = s.lastBeginning(job)
	}
	if after != before {
		low, high := before, after
		if after.Before(before) {
			low, high = after, before
		}
		for k := range s.JobLast.Scan(keyOf(job).String(), keyOf(job).time(low).String()) {
			if !timeAt(k, idLen).Before(high) {
				break
			}
			s.gens[idAt(k, idLen+timeLen)] = true
		}
	}
}

// mayBeOpen reports whether a generation is open as long as no other one of its job
// began after its last event. Those that may are listed in JobLast.
func (s *settlement) mayBeOpen(g *GenerationRow, key string) bool {
	if g.Runs == 0 || g.Finished == 0 {
		return g.Runs > 0
	}
	_, _, held := first(s.OpenTops.Scan(key, ""))
	return held
}

// lastBeginning returns the latest first event time of a job's generations.
func (s *settlement) lastBeginning(job fact.ID) (at openlineage.Instant) {
	if key, ok := s.JobFirst.Last(keyOf(job).String()); ok {
		at = timeAt(key, idLen)
	}
	return at
}

// openGeneration settles whether a generation is open; its outputs are stale if
// that or its being a backfill changed.
func (s *settlement) openGeneration(id fact.ID) {
	key := keyOf(id).String()
	g, ok := s.Generations.Get(key)
	if !ok {
		return
	}
	if g.Runs == 0 {
		s.Generations.Delete(key)
		return
	}
	s.noteFlags(&g, id)
	open := s.mayBeOpen(&g, key) && !s.lastBeginning(fact.JobKey(g.Job)).After(g.Last)
	if open != g.Open {
		g.Open = open
		s.Generations.Put(key, g)
	}
	if g.flags() == s.flags[id] {
		return // and so its outputs need not be read: there may be many
	}
	s.flags[id] = g.flags()
	for k := range s.GenOutputs.Scan(key, "") {
		s.genOutputs[genOutput{id, idAt(k, idLen), fact.JobKey(g.Job)}] = true
	}
}
