package lineage

import (
	"iter"
	"maps"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// candidate is a generation that asserts an output.
type candidate struct {
	gen      fact.ID
	time     openlineage.Instant // the deciding time for this output
	open     bool
	backfill bool
}

// rank puts generations of a backfill behind all others.
func (c *candidate) rank() byte { return flag(!c.backfill) }

// key orders candidates: the newest is last.
func (c *candidate) key() keyBuilder { return keyBuilder{c.rank()}.time(c.time).id(c.gen) }

// choose returns the generations whose word for an output is current: the
// newest closed one and every newer open one. Generations of a backfill are
// left out wherever another one asserts the output. newestFirst is in the order
// of candidate.key.
func choose(newestFirst iter.Seq[candidate]) (chosen []fact.ID) {
	var rank byte
	for c := range newestFirst {
		if len(chosen) > 0 && c.rank() != rank {
			break
		}
		rank = c.rank()
		chosen = append(chosen, c.gen)
		if !c.open {
			break
		}
	}
	return chosen
}

// jobDeclaration returns what a job's newest declaring event declares, nil if
// that is nothing.
func jobDeclaration(job openlineage.Name, newest *fact.Observation) *Declaration {
	if newest == nil {
		return nil
	}
	u := newUniter(job)
	u.add(newest.Statement, newest.Last)
	if said := u.said(); said != nil {
		return &Declaration{Job: job, Event: newest.Event, Content: newest.Content, Time: newest.Last, Said: said}
	}
	return nil
}

// datasetDeclaration returns what a dataset's newest lineage facet declares for
// it, else its newest columnLineage facet; nil if that is nothing. A lineage
// facet that is empty or a tombstone retires what came before it.
func datasetDeclaration(dataset openlineage.Name, lineage, columns *fact.Observation) *Declaration {
	use := fact.DatasetUse{Dataset: dataset}
	newest := lineage
	if lineage != nil && lineage.Statement.Declares.Lineage.Says() {
		use.Lineage = lineage.Statement.Declares.Lineage
	} else if columns != nil && (lineage == nil || columns.Last.After(lineage.Last)) {
		newest = columns
		use.Columns = columns.Statement.Declares.Columns
	}
	if use.Lineage == nil && (use.Columns == nil || use.Columns.Deleted || len(use.Columns.Entries) == 0) {
		return nil
	}
	u := newUniter(openlineage.Name{})
	u.add(&fact.Statement{Outputs: []fact.DatasetUse{use}}, newest.Last)
	return &Declaration{ByColumns: use.Columns != nil, Dataset: dataset, Event: newest.Event, Content: newest.Content, Time: newest.Last, Said: u.said()}
}

// newest returns the newest declaring observation of a kind, nil if none.
func (s *settlement) newest(subject fact.ID, kind declarationKind) *fact.Observation {
	_, o, ok := first(s.Declarations.ScanBack(keyOf(subject).byte(byte(kind)).String()))
	if !ok {
		return nil
	}
	return &o
}

// settleDeclaration replaces a job's or a dataset's declaration.
func (s *settlement) settleDeclaration(subject fact.ID, d *Declaration, dataset bool) {
	job := subject
	key := keyOf(subject).String()
	if dataset {
		job = fact.ID{}
		key = keyOf(fact.ID{}, subject).String()
	}
	old, _ := s.Declared.Get(key)
	if old == nil && d == nil || old != nil && d != nil && old.same(d) {
		return
	}
	for _, row := range []*Declaration{old, d} {
		if row == nil {
			continue
		}
		n := 1
		if row == old {
			n = -1
		}
		for o, items := range wordsOf(row.Said) {
			s.outputs[jobOutput{job, o.outputID()}] = true
			s.refer(row.Said, o, n)
			if n > 0 && len(items) > 0 {
				s.keep(row.Said, o)
			}
		}
	}
	if d == nil {
		s.Declared.Delete(key)
	} else {
		s.Declared.Put(key, d)
	}
}

// declared is a declaration, by output: one of thousands of outputs is read once.
type declared struct {
	at    openlineage.Instant
	items map[fact.ID][]item
}

// declaredItems returns the items of the declaration in force for an output. read
// has the declarations that were read before.
func (s *settlement) declaredItems(jo jobOutput, read map[string]declared) []item {
	key := keyOf(jo.job).String()
	if jo.job.IsZero() {
		key = keyOf(fact.ID{}, jo.output).String()
	}
	d, known := read[key]
	if !known {
		if row, ok := s.Declared.Get(key); ok {
			d = declared{row.Time, maps.Collect(itemsOf(row.Said))}
		}
		read[key] = d
	}
	items := d.items[jo.output]
	if len(items) == 0 || s.lastDecided(jo).After(d.at) {
		return nil
	}
	return items
}

// lastDecided returns the latest deciding time of a generation of the job, or
// with the zero job of any job, that asserts an output.
func (s *settlement) lastDecided(jo jobOutput) (at openlineage.Instant) {
	if jo.job.IsZero() {
		if key, _, ok := first(s.Writes.ScanBack(keyOf(jo.output).String())); ok {
			at = timeAt(key, idLen)
		}
		return at
	}
	for _, backfill := range []bool{false, true} {
		prefix := keyOf(jo.job, jo.output).byte(flag(!backfill)).String()
		if key, _, ok := first(s.Candidates.ScanBack(prefix)); ok {
			if t := timeAt(key, 2*idLen+1); t.After(at) {
				at = t
			}
		}
	}
	return at
}

// settleGenOutputs brings the candidates of outputs up to date.
func (s *settlement) settleGenOutputs() {
	for place := range s.genOutputs {
		key := keyOf(place.gen, place.output).String()
		old, had := s.GenOutputs.Get(key)
		wordKey, _, worded := first(s.Words.ScanBack(key))
		job := place.job
		if !worded {
			s.GenOutputs.Delete(key)
		}
		row := old
		if worded {
			g, _ := s.Generations.Get(keyOf(place.gen).String())
			row = candidate{gen: place.gen, time: timeAt(wordKey, 2*idLen), open: g.Open, backfill: g.Backfill()}
			s.GenOutputs.Put(key, row)
		}
		if had == worded && row == old {
			continue
		}
		prefix := keyOf(job, place.output).String()
		if had {
			s.Candidates.Delete(prefix + old.key().String())
		}
		if worded {
			s.Candidates.Put(prefix+row.key().String(), struct{}{})
		}
		s.outputs[jobOutput{job, place.output}] = true
		if place.output != readsOutput && has(s.Declared, keyOf(fact.ID{}, place.output).String()) {
			s.outputs[jobOutput{fact.ID{}, place.output}] = true
		}
	}
}

// settleOutputs chooses anew what is current for the stale outputs, and notes
// the difference.
func (s *settlement) settleOutputs() {
	read := map[string]declared{}
	for jo := range s.outputs {
		key := keyOf(jo.job, jo.output).String()
		old, _ := s.Selected.Get(key)
		row := Selection{Declared: s.declaredItems(jo, read)}
		if !jo.job.IsZero() {
			row.Generations = choose(s.candidates(key))
		}
		stays := make(map[fact.ID]bool, len(row.Generations))
		for _, gen := range row.Generations {
			stays[gen] = true
		}
		for _, gen := range old.Generations {
			if !stays[gen] {
				s.pend(key, s.supported(gen, jo.output), -1)
			}
			delete(stays, gen)
		}
		for gen := range stays { // those that are new
			s.pend(key, s.supported(gen, jo.output), 1)
		}
		s.pend(key, slices.Values(old.Declared), -1)
		s.pend(key, slices.Values(row.Declared), 1)
		if len(row.Generations) == 0 && len(row.Declared) == 0 {
			s.Selected.Delete(key)
		} else {
			s.Selected.Put(key, row)
		}
	}
}

func (s *settlement) pend(output string, items iter.Seq[item], n int) {
	for it := range items {
		s.pending[output+it.key()] += n
	}
}

func (i item) key() string { return keyBuilder{byte(i.kind)}.id(i.id).String() }

func itemAt(key string, at int) item { return item{itemKind(key[at]), idAt(key, at+1)} }

// candidates yields the generations that assert an output, newest first.
func (s *settlement) candidates(output string) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		for key := range s.Candidates.ScanBack(output) {
			id := idAt(key, 2*idLen+1+timeLen)
			g, _ := s.Generations.Get(keyOf(id).String())
			c := candidate{gen: id, time: timeAt(key, 2*idLen+1), open: g.Open, backfill: g.Backfill()}
			if !yield(c) {
				return
			}
		}
	}
}

// supported yields the items that a generation asserts for an output.
func (s *settlement) supported(gen, output fact.ID) iter.Seq[item] {
	return func(yield func(item) bool) {
		for key := range s.Supports.Scan(keyOf(gen, output).String(), "") {
			if !yield(itemAt(key, 2*idLen)) {
				return
			}
		}
	}
}

// applyCurrent applies the net change of what is current.
func (s *settlement) applyCurrent() {
	for key, n := range s.pending {
		if n == 0 || !count(s.Current, key, n) {
			continue
		}
		s.expose(idAt(key, idLen), itemAt(key, 2*idLen), sign(n))
	}
}

// expose adds a current item to what walks see, or with n = -1 takes it away.
func (s *settlement) expose(output fact.ID, it item, n int) {
	content := keyOf(it.id).String()
	switch it.kind {
	case derivationItem:
		d, _ := s.Derivations.Get(content)
		if output != readsOutput && count(s.Upstream, keyOf(output, it.id).String(), n) {
			s.degree(output, Degree{Up: sign(n)})
		}
		// Its inputs feed it once, however many of its outputs are current: 500 inputs
		// and 300 outputs are 800 rows and no 150,000 changes of a row.
		if count(s.JobDerivations, keyOf(fact.JobKey(d.Job), it.id).String(), n) {
			for i := range d.Inputs {
				count(s.Downstream, keyOf(d.Inputs[i].ID, it.id).String(), sign(n))
				s.degree(d.Inputs[i].ID, Degree{Down: sign(n)})
			}
		}
	case mappingItem:
		m, _ := s.Mappings.Get(content)
		s.exposeFields(m, n)
	case renameItem:
		r, _ := s.Renames.Get(content)
		s.join(r.From.ID, r.To.ID, n)
	case dependencyItem:
		count(s.DependsNow, content, n)
	}
}

func (s *settlement) degree(dataset fact.ID, by Degree) {
	key := keyOf(dataset).String()
	d, _ := s.Degrees.Get(key)
	d.Up += by.Up
	d.Down += by.Down
	if d == (Degree{}) {
		s.Degrees.Delete(key)
	} else {
		s.Degrees.Put(key, d)
	}
}

// maxMaterialised bounds the entries of a mapping whose field edges are kept; a
// larger one is stored and read as a whole.
const maxMaterialised = 50_000

func (s *settlement) exposeFields(m *Mapping, n int) {
	if len(m.Entries) > maxMaterialised {
		return
	}
	for i := range m.Entries {
		row := fieldRow(m, &m.Entries[i])
		key := row.key()
		if old, ok := s.Fields.Get(key); ok {
			row.Mappings = old.Mappings
		}
		if row.Mappings += n; row.Mappings == 0 {
			s.Fields.Delete(key)
		} else {
			s.Fields.Put(key, row)
		}
	}
}

func fieldRow(m *Mapping, e *fact.ColumnEntry) FieldRow {
	return FieldRow{
		Job: m.Job, From: DatasetRef{fact.DatasetKey(e.Source), e.Source}, FromField: e.SourceField,
		To: m.Output, ToField: e.Field, Transformations: e.Transformations,
	}
}

func (r *FieldRow) key() string {
	return keyOf(r.To.ID, fact.Hash("field edge", r.Job.Namespace, r.Job.Name, r.ToField, r.From.ID.String(), r.FromField, r.Transformations)).String()
}

// keep stores what the items of an output of said are, if that is not known yet; o is
// nil for readsOutput.
func (s *settlement) keep(said *Said, o *OutputSaid) {
	derivations := said.Reads
	if o == nil {
		for _, d := range said.Depends {
			s.Dependencies.Put(keyOf(d.ID).String(), d)
		}
	} else {
		derivations = o.Derivations
		if o.Mapping != nil && !has(s.Mappings, keyOf(o.Mapping.ID).String()) {
			s.Mappings.Put(keyOf(o.Mapping.ID).String(), o.Mapping)
		}
		if o.Rename != nil {
			s.Renames.Put(keyOf(o.Rename.ID).String(), o.Rename)
		}
	}
	for _, d := range derivations {
		if key := keyOf(d.ID).String(); !has(s.Derivations, key) {
			s.Derivations.Put(key, d)
		}
	}
}

// intern lets all who say the same share one copy of it. row is not stored yet;
// what it has from before is, and readers may be reading it.
func (s *settlement) intern(row *AttemptRow, before *Own) {
	stored := map[*Said]bool{nil: true}
	if before != nil {
		for i := range before.Episodes {
			stored[before.Episodes[i].Said] = true
		}
	}
	for i := range row.Episodes {
		said := row.Episodes[i].Said
		if stored[said] {
			continue
		}
		s.internDerivations(said.Reads)
		for j := range said.Outputs {
			o := &said.Outputs[j]
			s.internDerivations(o.Derivations)
			if o.Mapping != nil {
				if kept, ok := s.Mappings.Get(keyOf(o.Mapping.ID).String()); ok {
					o.Mapping = kept
				}
			}
		}
	}
}

func (s *settlement) internDerivations(derivations []*Derivation) {
	for i, d := range derivations {
		if kept, ok := s.Derivations.Get(keyOf(d.ID).String()); ok {
			derivations[i] = kept
		}
	}
}

// applyRefs forgets what nobody asserts or declares any more.
func (s *settlement) applyRefs() {
	for it, n := range s.refs {
		if n == 0 || !count(s.Refs, it.key(), n) || n > 0 {
			continue
		}
		content := keyOf(it.id).String()
		switch it.kind {
		case derivationItem:
			s.Derivations.Delete(content)
		case mappingItem:
			s.Mappings.Delete(content)
		case renameItem:
			s.Renames.Delete(content)
		case dependencyItem:
			s.Dependencies.Delete(content)
		}
	}
}
