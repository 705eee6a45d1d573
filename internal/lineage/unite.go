package lineage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// union gathers the mentions of one dataset in an episode: a later facet of one
// name replaces an earlier one, ties are broken by content.
type union struct {
	ref     DatasetRef
	subsets []string
	parts   map[string]*part // by subset
}

// part is what is said of one subset of a dataset, "" for the whole: the facets
// of one partition do not replace those of another.
type part struct {
	version   latest[*fact.Version]
	lifecycle latest[*fact.Lifecycle]
	columns   latest[*fact.Columns]
}

func (p *part) dropped() bool {
	return p.lifecycle.set && !p.lifecycle.value.Deleted && p.lifecycle.value.Change == "DROP"
}

// fate is what becomes of an output.
type fate uint8

const (
	written fate = iota
	// partsDropped: only partitions of it were dropped, which says nothing of what
	// feeds it.
	partsDropped
	// dropped: it is fed by nothing.
	dropped
)

func (d *union) fate() fate {
	for _, p := range d.parts {
		if !p.dropped() {
			return written
		}
	}
	switch {
	case len(d.parts) == 0:
		return written
	case d.parts[""] != nil:
		return dropped
	}
	return partsDropped
}

// columns returns the column lineage of the parts that were not dropped.
func (d *union) columns() (entries []fact.ColumnEntry) {
	several := false
	for _, p := range d.parts {
		if c := p.columns; c.set && !c.value.Deleted && len(c.value.Entries) > 0 && !p.dropped() {
			if several = entries != nil; several {
				entries = slices.Concat(entries, c.value.Entries)
			} else {
				entries = c.value.Entries
			}
		}
	}
	if several {
		slices.SortFunc(entries, fact.ColumnEntry.Compare)
		entries = slices.Compact(entries)
	}
	return entries
}

// version returns the newest version of any part, "" if none is named.
func (d *union) version() string {
	var newest latest[*fact.Version]
	for _, p := range d.parts {
		if p.version.set && !p.version.value.Deleted {
			newest.offer(p.version.value, p.version.at)
		}
	}
	if !newest.set {
		return ""
	}
	return newest.value.Version
}

// previous returns the name before the newest RENAME, zero if there is none.
func (d *union) previous() openlineage.Name {
	var newest latest[*fact.Lifecycle]
	for _, p := range d.parts {
		if p.lifecycle.set && !p.lifecycle.value.Deleted && p.lifecycle.value.Change == "RENAME" {
			newest.offer(p.lifecycle.value, p.lifecycle.at)
		}
	}
	if !newest.set {
		return openlineage.Name{}
	}
	return newest.value.Previous
}

// latest keeps the newest of facets of one name.
type latest[T interface{ Compare(T) int }] struct {
	value T
	at    openlineage.Instant
	set   bool
}

func (l *latest[T]) offer(v T, at openlineage.Instant) {
	if !l.set || cmp.Or(at.Compare(l.at), v.Compare(l.value)) > 0 {
		l.value, l.at, l.set = v, at, true
	}
}

// unite returns what the moments of an episode say together, nil if they name
// no dataset and have no explicit entry, and whether its job is continuous.
func unite(job openlineage.Name, moments []moment) (*Said, bool) {
	var jobType latest[*fact.JobType]
	for _, m := range moments {
		if s := m.obs.Statement; s != nil && s.JobType != nil {
			jobType.offer(s.JobType, m.at)
		}
	}
	said := jobType.set && !jobType.value.Deleted
	continuous := said && jobType.value.Continuous
	if said && jobType.value.Snapshot {
		moments = newestNaming(moments)
	}
	u := newUniter(job)
	for _, m := range moments {
		u.add(m.obs.Statement, m.at)
	}
	return u.said(), continuous
}

// newestNaming returns the newest moment that names a dataset: where each event
// is complete in itself, it replaces all earlier ones.
func newestNaming(moments []moment) []moment {
	newest := -1
	for i, m := range moments {
		if !m.obs.Statement.NamesDataset() {
			continue
		}
		if newest < 0 || cmp.Or(
			m.at.Compare(moments[newest].at), fact.CompareIDs(m.obs.Event, moments[newest].obs.Event),
			fact.CompareIDs(m.obs.Content, moments[newest].obs.Content)) > 0 {
			newest = i
		}
	}
	if newest < 0 {
		return nil
	}
	return moments[newest : newest+1]
}

// uniter builds a Said out of statements.
type uniter struct {
	job     openlineage.Name
	ids     map[openlineage.Name]fact.ID
	inputs  map[openlineage.Name]*union
	outputs map[openlineage.Name]*union

	explicit []timedExplicit
	deleted  map[openlineage.Name]openlineage.Instant // of the newest tombstone of a lineage facet, by its owner
}

type timedExplicit struct {
	of    openlineage.Name // the output that has the facet, zero for the job
	at    openlineage.Instant
	facet *fact.Explicit
}

func newUniter(job openlineage.Name) *uniter {
	return &uniter{
		job: job, ids: map[openlineage.Name]fact.ID{}, deleted: map[openlineage.Name]openlineage.Instant{},
		inputs: map[openlineage.Name]*union{}, outputs: map[openlineage.Name]*union{},
	}
}

func (u *uniter) ref(n openlineage.Name) DatasetRef {
	id, ok := u.ids[n]
	if !ok {
		id = fact.DatasetKey(n)
		u.ids[n] = id
	}
	return DatasetRef{ID: id, Name: n}
}

func (u *uniter) of(m map[openlineage.Name]*union, n openlineage.Name) *union {
	if m[n] == nil {
		m[n] = &union{ref: u.ref(n)}
	}
	return m[n]
}

func (u *uniter) add(s *fact.Statement, at openlineage.Instant) {
	if s == nil {
		return
	}
	for i := range s.Inputs {
		u.mention(u.inputs, &s.Inputs[i], at)
	}
	for i := range s.Outputs {
		use := &s.Outputs[i]
		p := u.mention(u.outputs, use, at)
		if use.Lifecycle != nil {
			p.lifecycle.offer(use.Lifecycle, at)
		}
		if use.Columns != nil {
			p.columns.offer(use.Columns, at)
		}
		u.addExplicit(use.Lineage, use.Dataset, at)
	}
	u.addExplicit(s.Lineage, openlineage.Name{}, at)
}

func (u *uniter) mention(m map[openlineage.Name]*union, use *fact.DatasetUse, at openlineage.Instant) *part {
	d := u.of(m, use.Dataset)
	p := d.parts[use.Subset]
	if p == nil {
		if use.Subset != "" {
			d.subsets = append(d.subsets, use.Subset)
		}
		p = &part{}
		if d.parts == nil {
			d.parts = map[string]*part{}
		}
		d.parts[use.Subset] = p
	}
	if use.Version != nil {
		p.version.offer(use.Version, at)
	}
	return p
}

func (u *uniter) addExplicit(x *fact.Explicit, of openlineage.Name, at openlineage.Instant) {
	switch {
	case x == nil:
	case x.Deleted:
		if u.deleted[of].Before(at) {
			u.deleted[of] = at
		}
	default:
		u.explicit = append(u.explicit, timedExplicit{of, at, x})
	}
}

// feeding is the sources of one output while they are gathered.
type feeding struct {
	sources *sourceSet
	columns []fact.ColumnEntry
	// writers are other jobs that an explicit entry names as its source.
	writers []openlineage.Name
	own     bool // the job itself writes it
}

// said concludes from what was added.
func (u *uniter) said() *Said {
	explicit := slices.DeleteFunc(u.explicit, func(x timedExplicit) bool { return !x.at.After(u.deleted[x.of]) })
	entries := 0
	for _, x := range explicit {
		for i := range x.facet.Entries {
			if x.facet.Entries[i].Says {
				entries++
			}
		}
	}
	if len(u.inputs) == 0 && len(u.outputs) == 0 && entries == 0 {
		return nil
	}
	s := &Said{}
	feeds := map[openlineage.Name]*feeding{}
	for name, o := range u.outputs {
		if o.fate() != partsDropped {
			feeds[name] = &feeding{own: true}
		}
	}
	reads := map[openlineage.Name]*sourceSet{} // by job
	if len(explicit) > 0 {
		u.feedByEntries(explicit, feeds, reads, s)
	} else {
		u.feedByRules(feeds)
	}
	u.readRest(feeds, reads)
	u.derive(s, feeds, reads)
	return s
}

// feedByEntries applies explicit lineage facets: their merged entries are the
// whole dataset lineage of the union, nothing more is inferred.
func (u *uniter) feedByEntries(explicit []timedExplicit, feeds map[openlineage.Name]*feeding, reads map[openlineage.Name]*sourceSet, s *Said) {
	for _, x := range explicit {
		for _, e := range x.facet.Entries {
			if !e.Says {
				continue
			}
			if e.Target.Job {
				u.entryToJob(e, reads, s)
				continue
			}
			u.entryToDataset(e, feeds)
		}
	}
	for name, o := range u.outputs {
		if o.fate() == dropped {
			feeds[name].sources, feeds[name].columns = nil, nil
		}
	}
}

func (u *uniter) entryToJob(e fact.ExplicitEntry, reads map[openlineage.Name]*sourceSet, s *Said) {
	for _, source := range e.Sources {
		if source.Job {
			if source.Name != e.Target.Name {
				s.Depends = append(s.Depends, newDependency(source.Name, e.Target.Name))
			}
			continue
		}
		reads[e.Target.Name] = reads[e.Target.Name].add(source.Name, ByEntry)
		if e.Target.Name == u.job {
			u.of(u.inputs, source.Name)
		}
	}
}

func (u *uniter) entryToDataset(e fact.ExplicitEntry, feeds map[openlineage.Name]*feeding) {
	f := feeds[e.Target.Name]
	if f == nil {
		f = &feeding{}
		feeds[e.Target.Name] = f
		u.of(u.outputs, e.Target.Name)
	}
	others := 0
	for _, source := range e.Sources {
		switch {
		case !source.Job:
			f.sources = f.sources.add(source.Name, ByEntry)
			u.of(u.inputs, source.Name)
		case source.Name == u.job:
			f.own = true
		default:
			f.writers = append(f.writers, source.Name)
			others++
		}
	}
	// Only where every source is another job is it not this job that writes.
	f.own = f.own || others < len(e.Sources) || len(e.Sources) == 0
	f.columns = append(f.columns, e.Columns...)
}

// feedByRules applies the rules of column lineage and of the job.
func (u *uniter) feedByRules(feeds map[openlineage.Name]*feeding) {
	columns := map[openlineage.Name][]fact.ColumnEntry{}
	named := map[openlineage.Name]bool{} // by the column lineage of any output
	for name, o := range u.outputs {
		if o.fate() != written {
			continue
		}
		columns[name] = o.columns()
		for i := range columns[name] {
			named[columns[name][i].Source] = true
		}
	}
	all, unnamed := newSourceSet(len(u.inputs)), newSourceSet(len(u.inputs))
	for name := range u.inputs {
		all.add(name, ByJob)
		if !named[name] {
			unnamed.add(name, ByJob)
		}
	}
	// Outputs whose columns name the same datasets share a set, so that what is not
	// named is copied once a set and not once an output.
	byNamed := map[string]*sourceSet{}
	for name, o := range u.outputs {
		f := feeds[name]
		switch entries := columns[name]; {
		case o.fate() != written:
		case entries == nil:
			f.sources = all // shared: nobody writes to it
		default:
			sources := u.sourcesOf(entries)
			key := idsKey(sources)
			if byNamed[key] == nil {
				byNamed[key] = &sourceSet{basis: maps.Clone(unnamed.basis)}
				for _, source := range sources {
					byNamed[key].add(source.Name, ByColumn)
				}
			}
			f.sources = byNamed[key]
			f.columns = entries
		}
	}
	for name := range named {
		u.of(u.inputs, name)
	}
}

// readRest makes reads of the inputs that feed nothing.
func (u *uniter) readRest(feeds map[openlineage.Name]*feeding, reads map[openlineage.Name]*sourceSet) {
	fed := map[openlineage.Name]bool{}
	seen := map[*sourceSet]bool{}
	for _, f := range feeds {
		if f.sources == nil || seen[f.sources] {
			continue
		}
		seen[f.sources] = true
		for name := range f.sources.basis {
			fed[name] = true
		}
	}
	if own := reads[u.job]; own != nil {
		for name := range own.basis {
			fed[name] = true
		}
	}
	for name := range u.inputs {
		if !fed[name] {
			reads[u.job] = reads[u.job].add(name, ByJob)
		}
	}
}

// derive groups the pairs by output: outputs with the same set of (input,
// basis) share one derivation.
func (u *uniter) derive(s *Said, feeds map[openlineage.Name]*feeding, reads map[openlineage.Name]*sourceSet) {
	for _, name := range sortedNames(u.inputs) {
		in := u.inputs[name]
		slices.Sort(in.subsets)
		said := InputSaid{DatasetRef: in.ref, Version: in.version(), Subsets: in.subsets}
		s.Inputs = append(s.Inputs, said)
	}
	groups := u.group(feeds)
	outputs := sortedNames(feeds)
	for _, name := range outputs {
		f, o := feeds[name], u.outputs[name]
		slices.Sort(o.subsets)
		said := OutputSaid{DatasetRef: o.ref, Version: o.version(), Subsets: o.subsets, Dropped: o.fate() == dropped}
		if previous := o.previous(); previous.Name != "" && previous != name {
			said.Rename = newRename(u.ref(previous), o.ref)
		}
		if f.own {
			said.Derivations = append(said.Derivations, groups[name])
		}
		slices.SortFunc(f.writers, openlineage.Name.Compare)
		for _, writer := range slices.Compact(f.writers) {
			said.Derivations = append(said.Derivations, newDerivation(writer, nil, []DatasetRef{o.ref}))
		}
		if len(f.columns) > 0 {
			said.Mapping = newMapping(u.job, o.ref, f.columns)
		}
		s.Outputs = append(s.Outputs, said)
	}
	for _, job := range sortedNames(reads) {
		s.Reads = append(s.Reads, newDerivation(job, reads[job].complete(u).sorted, nil))
	}
	slices.SortFunc(s.Depends, func(a, b Dependency) int { return fact.CompareIDs(a.ID, b.ID) })
	s.Depends = slices.Compact(s.Depends)
}

// group returns the derivation of each output that the job writes.
func (u *uniter) group(feeds map[openlineage.Name]*feeding) map[openlineage.Name]*Derivation {
	type group struct {
		sources []Source
		outputs []DatasetRef
	}
	groups := map[string]*group{}
	for _, name := range sortedNames(feeds) {
		if !feeds[name].own {
			continue
		}
		sources := feeds[name].sources.complete(u)
		g := groups[sources.key]
		if g == nil {
			g = &group{sources: sources.sorted}
			groups[sources.key] = g
		}
		g.outputs = append(g.outputs, u.ref(name))
	}
	derivations := make(map[openlineage.Name]*Derivation, len(feeds))
	for _, g := range groups {
		d := newDerivation(u.job, g.sources, g.outputs)
		for _, o := range g.outputs {
			derivations[o.Name] = d
		}
	}
	return derivations
}

func sortedNames[V any](m map[openlineage.Name]V) []openlineage.Name {
	names := make([]openlineage.Name, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.SortFunc(names, openlineage.Name.Compare)
	return names
}
