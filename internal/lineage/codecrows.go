package lineage

import (
	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// How the rows of each type are written. What a row's key says is not written
// again.

var (
	emptyRow = codec[struct{}]{
		put: func(*encoder, struct{}) {},
		get: func(*decoder, string) struct{} { return struct{}{} },
	}
	textRow = codec[string]{
		put: func(e *encoder, s string) { e.buf = append(e.buf, s...) },
		get: func(d *decoder, _ string) string { return string(d.rest) },
	}
	idRow = codec[fact.ID]{
		put: func(e *encoder, id fact.ID) { e.id(id) },
		get: func(d *decoder, _ string) fact.ID { return d.id() },
	}
	nameRow = codec[openlineage.Name]{
		put: func(e *encoder, n openlineage.Name) { e.name(n) },
		get: func(d *decoder, _ string) openlineage.Name { return d.name() },
	}
	countRow = codec[int]{
		put: func(e *encoder, n int) { e.int(n) },
		get: func(d *decoder, _ string) int { return d.int() },
	}
	attemptNameRow = codec[fact.Attempt]{
		put: func(e *encoder, a fact.Attempt) { e.attempt(a) },
		get: func(d *decoder, _ string) fact.Attempt { return d.attempt() },
	}
	contentsRow = codec[Contents]{
		put: func(e *encoder, c Contents) {
			e.byte(c.Kind[0])
			putList(e, c.Digests, e.id)
		},
		get: func(d *decoder, _ string) (c Contents) {
			switch d.byte() {
			case 'r':
				c.Kind = openlineage.RunEvent
			case 'j':
				c.Kind = openlineage.JobEvent
			case 'd':
				c.Kind = openlineage.DatasetEvent
			default:
				d.bad = true
			}
			c.Digests = getList(d, d.id)
			return c
		},
	}
	tallyRow = codec[tally]{
		put: func(e *encoder, t tally) {
			for _, n := range []int{t.attempts, t.terminal, t.backfill, t.placed, t.asserting} {
				e.int(n)
			}
		},
		get: func(d *decoder, _ string) tally {
			return tally{attempts: d.int(), terminal: d.int(), backfill: d.int(), placed: d.int(), asserting: d.int()}
		},
	}
	itemsRow = codec[[]item]{
		put: func(e *encoder, items []item) { putList(e, items, e.item) },
		get: func(d *decoder, _ string) []item { return getList(d, d.item) },
	}
	candidateRow = codec[candidate]{
		put: func(e *encoder, c candidate) {
			e.time(c.time)
			e.bool(c.open)
			e.bool(c.backfill)
		},
		get: func(d *decoder, key string) candidate {
			return candidate{gen: idAt(key, 0), time: d.time(), open: d.bool(), backfill: d.bool()}
		},
	}
	selectionRow = codec[Selection]{
		put: func(e *encoder, s Selection) {
			putList(e, s.Generations, e.id)
			putList(e, s.Declared, e.item)
		},
		get: func(d *decoder, _ string) Selection {
			return Selection{Generations: getList(d, d.id), Declared: getList(d, d.item)}
		},
	}
	degreeRow = codec[Degree]{
		put: func(e *encoder, v Degree) { e.int(v.Up); e.int(v.Down) },
		get: func(d *decoder, _ string) Degree { return Degree{Up: d.int(), Down: d.int()} },
	}
	generationRow = codec[GenerationRow]{
		put: func(e *encoder, g GenerationRow) {
			e.job(g.Job)
			e.run(g.Root)
			e.byte(flag(g.Open) | flag(g.listed)<<1)
			e.int(g.Runs)
			e.int(g.Finished)
			e.int(g.Backfills)
			e.time(g.First)
			e.time(g.Last)
		},
		get: func(d *decoder, key string) GenerationRow {
			g := GenerationRow{ID: idAt(key, 0), Job: d.job(), Root: d.run()}
			flags := d.byte()
			g.Open, g.listed = flags&1 != 0, flags&2 != 0
			g.Runs, g.Finished, g.Backfills, g.First, g.Last = d.int(), d.int(), d.int(), d.time(), d.time()
			return g
		},
	}
	dependencyRow = codec[Dependency]{
		put: func(e *encoder, v Dependency) { e.dependency(v) },
		get: func(d *decoder, _ string) Dependency { return d.dependency() },
	}
	renameRow = codec[*Rename]{
		put: func(e *encoder, r *Rename) { e.rename(r) },
		get: func(d *decoder, _ string) *Rename { return d.rename() },
	}
	derivationRow = codec[*Derivation]{
		put: func(e *encoder, v *Derivation) { e.derivation(v) },
		get: func(d *decoder, _ string) *Derivation { return d.derivation() },
	}
	mappingRow = codec[*Mapping]{
		put: func(e *encoder, m *Mapping) { e.mapping(m) },
		get: func(d *decoder, _ string) *Mapping { return d.mapping() },
	}
	fieldEdgeRow = codec[FieldRow]{
		put: func(e *encoder, r FieldRow) {
			e.name(r.Job)
			e.dataset(r.From)
			e.dataset(r.To)
			e.text(r.FromField)
			e.text(r.ToField)
			e.text(r.Transformations)
			e.int(r.Mappings)
		},
		get: func(d *decoder, _ string) FieldRow {
			return FieldRow{
				Job: d.name(), From: d.dataset(), To: d.dataset(), FromField: d.text(), ToField: d.text(),
				Transformations: d.text(), Mappings: d.int(),
			}
		},
	}
	todoRow = codec[Todo]{
		put: func(e *encoder, t Todo) {
			e.byte(byte(t.Kind))
			e.name(t.Attempt.Job) // of TodoDataset it is a dataset's
			e.runID(t.Attempt.RunID)
			e.int(t.Attempt.Map)
			if t.Kind == TodoTop {
				e.run(t.Run)
				e.id(t.Generation)
			}
			e.text(t.After)
		},
		get: func(d *decoder, _ string) Todo {
			t := Todo{Kind: TodoKind(d.byte()), Attempt: fact.Attempt{Job: d.name(), RunID: d.runID(), Map: d.int()}}
			if t.Kind == TodoTop {
				t.Run, t.Generation = d.run(), d.id()
			}
			t.After = d.text()
			return t
		},
	}
	declarationRow = codec[*Declaration]{
		put: func(e *encoder, v *Declaration) {
			e.name(v.Job)
			e.name(v.Dataset)
			e.bool(v.ByColumns)
			e.id(v.Event)
			e.id(v.Content)
			e.time(v.Time)
			e.said(v.Said)
		},
		get: func(d *decoder, _ string) *Declaration {
			return &Declaration{
				Job: d.name(), Dataset: d.name(), ByColumns: d.bool(), Event: d.id(), Content: d.id(), Time: d.time(), Said: d.said(),
			}
		},
	}
	// observationRow leaves Detail to its own table.
	observationRow = codec[fact.Observation]{
		put: func(e *encoder, o fact.Observation) {
			e.byte(byte(o.Kind)<<1 | flag(o.Backfill))
			e.id(o.Event)
			e.id(o.Content)
			e.eventType(o.Type)
			e.time(o.First)
			if e.ifSet(o.Last != o.First) {
				e.time(o.Last)
			}
			e.runRef(o.Parent)
			e.slot(o.Slot)
			e.statement(o.Statement)
		},
		get: func(d *decoder, _ string) (o fact.Observation) {
			b := d.byte()
			o.Kind, o.Backfill = fact.SubjectKind(b>>1), b&1 != 0
			o.Event, o.Content, o.Type, o.First = d.id(), d.id(), d.eventType(), d.time()
			o.Last = o.First
			if d.bool() {
				o.Last = d.time()
			}
			o.Parent, o.Slot, o.Statement = d.runRef(), d.slot(), d.statement()
			return o
		},
	}
	// facetRow keeps the value once for all that have it: the digest is in the key.
	facetRow = codec[FacetRow]{
		put: func(e *encoder, r FacetRow) {
			e.bool(r.Kind == fact.JobEntity)
			e.text(r.Key)
			e.time(r.First)
			e.time(r.Last)
			e.values.keep(r.Digest, func() []byte {
				var v encoder
				v.bool(r.Invalid)
				putList(&v, r.Symlinks, v.name)
				v.text(r.Value)
				return v.buf
			})
		},
		get: func(d *decoder, key string) FacetRow {
			r := FacetRow{EntityFacet: fact.EntityFacet{Kind: fact.DatasetEntity, Entity: idAt(key, 0)}, Digest: idAt(key, 2*idLen)}
			if d.bool() {
				r.Kind = fact.JobEntity
			}
			r.Key, r.First, r.Last = d.text(), d.time(), d.time()
			v := d.value(d.values.numbers.of(r.Digest))
			r.Invalid, r.Symlinks, r.Value = v.bool(), getList(v, v.name), v.text()
			d.bad = d.bad || v.bad
			return r
		},
	}
)

func (e *encoder) item(it item) {
	e.byte(byte(it.kind))
	e.id(it.id)
}

func (d *decoder) item() item { return item{itemKind(d.byte()), d.id()} }

func (e *encoder) dependency(v Dependency) {
	e.id(v.ID)
	e.name(v.Upstream)
	e.name(v.Downstream)
}

func (d *decoder) dependency() Dependency {
	return Dependency{ID: d.id(), Upstream: d.name(), Downstream: d.name()}
}

func (e *encoder) rename(r *Rename) {
	e.id(r.ID)
	e.dataset(r.From)
	e.dataset(r.To)
}

func (d *decoder) rename() *Rename { return &Rename{ID: d.id(), From: d.dataset(), To: d.dataset()} }

func (e *encoder) derivation(v *Derivation) {
	e.id(v.ID)
	e.name(v.Job)
	putList(e, v.Inputs, func(s Source) {
		e.dataset(s.DatasetRef)
		e.text(string(s.Basis))
	})
	putList(e, v.Outputs, e.dataset)
}

func (d *decoder) derivation() *Derivation {
	return &Derivation{
		ID: d.id(), Job: d.name(),
		Inputs:  getList(d, func() Source { return Source{d.dataset(), Basis(d.text())} }),
		Outputs: getList(d, d.dataset),
	}
}

func (e *encoder) mapping(m *Mapping) {
	e.id(m.ID)
	e.name(m.Job)
	e.dataset(m.Output)
	e.columns(m.Entries)
}

func (d *decoder) mapping() *Mapping {
	return &Mapping{ID: d.id(), Job: d.name(), Output: d.dataset(), Entries: d.columns()}
}

func (e *encoder) columns(entries []fact.ColumnEntry) {
	putList(e, entries, func(c fact.ColumnEntry) {
		e.text(c.Field)
		e.name(c.Source)
		e.text(c.SourceField)
		e.text(c.Transformations)
	})
}

func (d *decoder) columns() []fact.ColumnEntry {
	return getList(d, func() fact.ColumnEntry {
		return fact.ColumnEntry{Field: d.text(), Source: d.name(), SourceField: d.text(), Transformations: d.text()}
	})
}
