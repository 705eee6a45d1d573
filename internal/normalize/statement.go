package normalize

import (
	"slices"
	"strings"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

// statement reads what an event says about lineage. Facets that their schema
// rejects are left out.
func (e *eventReader) statement() *fact.Statement {
	if e.kind != openlineage.DatasetEvent {
		e.leaveOut(e.jobFacets, []string{"job"}, "jobType", "lineage")
	}
	s := &fact.Statement{
		Inputs:  e.uses("inputs"),
		Outputs: e.uses("outputs"),
		Lineage: e.jobLineage(),
		JobType: e.jobType(),
	}
	if e.kind == openlineage.DatasetEvent {
		if use, ok := e.use(e.root.Get("dataset"), "dataset"); ok && (use.Columns != nil || use.Lineage != nil) {
			s.Declares = &use
		}
	}
	return s
}

// leaveOut notes which of the facets that speak of lineage their schema rejects.
// They are part of the content digest: whether a facet is rejected can hang on a
// null or on a transport field, and two events of which only one is understood
// must not pass for the same.
func (e *eventReader) leaveOut(facets *jsontree.Value, owner []string, keys ...string) {
	for _, key := range keys {
		if f := facets.Get(key); f != nil && e.invalid(f) {
			var path []jsontree.Value
			for _, s := range append(owner, key) {
				path = append(path, jsontree.NewString(s))
			}
			e.leftOut = append(e.leftOut, canonicalArray(path...))
		}
	}
}

// leftOutList returns the facets left out as a canonical JSON array.
func (e *eventReader) leftOutList() string {
	slices.Sort(e.leftOut)
	return "[" + strings.Join(slices.Compact(e.leftOut), ",") + "]"
}

func (e *eventReader) uses(list string) (uses []fact.DatasetUse) {
	items := e.root.Get(list)
	if items.Len() == 0 {
		return nil
	}
	uses = make([]fact.DatasetUse, 0, items.Len())
	for i := range items.Items {
		if use, ok := e.use(&items.Items[i].Value, list); ok {
			uses = append(uses, use)
		}
	}
	return uses
}

// use reads one mention of a dataset in inputs, outputs or dataset; ok is false
// for a pseudo-dataset.
func (e *eventReader) use(v *jsontree.Value, role string) (use fact.DatasetUse, ok bool) {
	sent := nameOf(v)
	use.Dataset, use.Subset, ok = e.names.Entity(sent)
	if !ok {
		return use, false
	}
	facets, owner := v.Get("facets"), []string{role, sent.Namespace, sent.Name}
	e.leaveOut(facets, owner, "version", "symlinks")
	if f := e.facet(facets, "version"); deleted(f) {
		use.Version = &fact.Version{Deleted: true}
	} else if version, ok := f.Get("datasetVersion").Str(); ok && version != "" {
		use.Version = &fact.Version{Version: version}
	}
	if role == "inputs" {
		return use, true
	}
	e.leaveOut(facets, owner, "lifecycleStateChange", "columnLineage", "lineage")
	if f := e.facet(facets, "lifecycleStateChange"); deleted(f) {
		use.Lifecycle = &fact.Lifecycle{Deleted: true}
	} else if f != nil {
		use.Lifecycle = &fact.Lifecycle{Change: strings.ToUpper(f.Get("lifecycleStateChange").StrOr(""))}
		if previous := nameOf(f.Get("previousIdentifier")); previous != (openlineage.Name{}) {
			if entity, _, ok := e.names.Entity(previous); ok {
				use.Lifecycle.Previous = entity
			}
		}
	}
	if f := e.facet(facets, "columnLineage"); f != nil {
		use.Columns = e.columns(f)
	}
	if f := e.facet(facets, "lineage"); f != nil {
		use.Lineage = &fact.Explicit{Deleted: deleted(f)}
		if entry, ok := e.explicitEntry(f, fact.End{Name: use.Dataset}); ok && !use.Lineage.Deleted {
			use.Lineage.Entries = []fact.ExplicitEntry{entry}
		}
	}
	return use, true
}

func nameOf(v *jsontree.Value) openlineage.Name {
	return openlineage.Name{Namespace: v.Get("namespace").StrOr(""), Name: v.Get("name").StrOr("")}
}

func deleted(facet *jsontree.Value) bool {
	d := facet.Get("_deleted")
	return d != nil && d.Kind == jsontree.Bool && d.Bool
}

func (e *eventReader) jobType() *fact.JobType {
	f := e.facet(e.jobFacets, "jobType")
	if f == nil {
		return nil
	}
	if deleted(f) {
		return &fact.JobType{Deleted: true}
	}
	is := func(member string, words ...string) bool {
		return slices.Contains(words, strings.ToUpper(f.Get(member).StrOr("")))
	}
	return &fact.JobType{
		Continuous: is("processingType", "STREAMING", "SERVICE") || is("jobType", "STREAMING", "SERVICE"),
		Snapshot:   strings.EqualFold(f.At("emissionPattern", "eventContentMode").StrOr(""), "COMPLETE_SNAPSHOT"),
	}
}

// columns reads a columnLineage facet. One that names no source at all counts as
// absent, as it does in the identity document.
func (e *eventReader) columns(f *jsontree.Value) *fact.Columns {
	c := &fact.Columns{Deleted: deleted(f)}
	sources := f.Get("dataset").Len()
	if fields := f.Get("fields"); fields != nil {
		for i := range fields.Items {
			field := &fields.Items[i]
			old := field.Value.Get("transformationType").StrOr("")
			sources += field.Value.Get("inputFields").Len()
			c.Entries = e.appendColumns(c.Entries, field.Key, field.Value.Get("inputFields"), old)
		}
	}
	if sources == 0 && !c.Deleted {
		return nil
	}
	c.Entries = e.appendColumns(c.Entries, "", f.Get("dataset"), "")
	c.Entries = sortedDistinct(c.Entries, fact.ColumnEntry.Compare)
	return c
}

func (e *eventReader) appendColumns(dst []fact.ColumnEntry, field string, sources *jsontree.Value, oldType string) []fact.ColumnEntry {
	if sources == nil {
		return dst
	}
	for i := range sources.Items {
		v := &sources.Items[i].Value
		source, _, ok := e.names.Entity(nameOf(v))
		if !ok || source.Name == "" {
			continue
		}
		dst = append(dst, fact.ColumnEntry{
			Field: field, Source: source, SourceField: v.Get("field").StrOr(""),
			Transformations: transformations(v.Get("transformations"), oldType),
		})
	}
	return dst
}

// transformations returns the canonical set of what is done to a field: type,
// subtype and masking. Descriptions are left out, since they hold rendered SQL
// that differs every day; the event keeps them. oldType is the deprecated
// transformationType, which speaks only where the newer list is empty.
func transformations(list *jsontree.Value, oldType string) string {
	var set []string
	if list != nil {
		for i := range list.Items {
			t := &list.Items[i].Value
			var items []jsontree.Item
			for _, member := range []string{"type", "subtype", "masking"} {
				if m := t.Get(member); !m.IsNull() && !(m.Kind == jsontree.String && m.Text == "") {
					items = append(items, jsontree.Item{Key: member, Value: *m})
				}
			}
			if len(items) > 0 {
				o := jsontree.NewObject(items...)
				set = append(set, string(jsontree.AppendCanonical(nil, &o)))
			}
		}
	}
	if len(set) == 0 && oldType != "" {
		o := jsontree.NewObject(jsontree.Item{Key: "type", Value: jsontree.NewString(oldType)})
		set = append(set, string(jsontree.AppendCanonical(nil, &o)))
	}
	if len(set) == 0 {
		return ""
	}
	slices.Sort(set)
	return "[" + strings.Join(slices.Compact(set), ",") + "]"
}

// jobLineage reads the explicit lineage facet of the event's job.
func (e *eventReader) jobLineage() *fact.Explicit {
	f := e.facet(e.jobFacets, "lineage")
	if f == nil {
		return nil
	}
	x := &fact.Explicit{Deleted: deleted(f)}
	if x.Deleted {
		return x
	}
	if entries := f.Get("entries"); entries != nil {
		for i := range entries.Items {
			v := &entries.Items[i].Value
			target, ok := e.end(v)
			if !ok {
				continue
			}
			if entry, ok := e.explicitEntry(v, target); ok {
				x.Entries = append(x.Entries, entry)
			}
		}
	}
	x.Entries = sortedDistinct(x.Entries, fact.ExplicitEntry.Compare)
	return x
}

// end reads a dataset or a job named in an explicit entry; ok is false for one
// that names nothing and for a pseudo-dataset. A job without a name is the
// event's own.
func (e *eventReader) end(v *jsontree.Value) (fact.End, bool) {
	if v.Get("type").StrOr("") == "JOB" {
		if v.Get("name") == nil {
			return fact.End{Job: true, Name: e.job}, true
		}
		return fact.End{Job: true, Name: nameOf(v)}, true
	}
	entity, _, ok := e.names.Entity(nameOf(v))
	return fact.End{Name: entity}, ok && entity.Name != ""
}

// explicitEntry reads what feeds a target: its inputs and its fields.
func (e *eventReader) explicitEntry(v *jsontree.Value, target fact.End) (fact.ExplicitEntry, bool) {
	entry := fact.ExplicitEntry{Target: target}
	add := func(field string, inputs *jsontree.Value) {
		if inputs == nil || inputs.Kind != jsontree.Array {
			return
		}
		entry.Says = true
		for i := range inputs.Items {
			in := &inputs.Items[i].Value
			source, ok := e.end(in)
			if !ok {
				continue
			}
			entry.Sources = append(entry.Sources, source)
			sourceField := in.Get("field").StrOr("")
			if !source.Job && !target.Job && (field != "" || sourceField != "") {
				entry.Columns = append(entry.Columns, fact.ColumnEntry{
					Field: field, Source: source.Name, SourceField: sourceField,
					Transformations: transformations(in.Get("transformations"), ""),
				})
			}
		}
	}
	add("", v.Get("inputs"))
	if fields := v.Get("fields"); fields != nil {
		for i := range fields.Items {
			add(fields.Items[i].Key, fields.Items[i].Value.Get("inputs"))
		}
	}
	entry.Sources = sortedDistinct(entry.Sources, fact.End.Compare)
	entry.Columns = sortedDistinct(entry.Columns, fact.ColumnEntry.Compare)
	return entry, target.Name != openlineage.Name{}
}

func sortedDistinct[T any](s []T, compare func(a, b T) int) []T {
	slices.SortFunc(s, compare)
	return slices.CompactFunc(s, func(a, b T) bool { return compare(a, b) == 0 })
}
