package normalize

import (
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

// statementFacets are what a run says, not what an entity is: they are read
// into the Statement.
var statementFacets = map[openlineage.Container][]string{
	job:     {"lineage"},
	dataset: {"lineage", "columnLineage", "version", "lifecycleStateChange"},
}

// entityFacets returns what the event says of its job and of its datasets.
func (r *eventReader) entityFacets() (out []fact.EntityFacet) {
	if r.kind != openlineage.DatasetEvent {
		out = r.appendEntity(out, fact.JobEntity, fact.JobKey(r.job), r.jobFacets, r.place.member("job").member("facets"))
	}
	place := r.place.member("dataset").member("facets")
	add := func(v *jsontree.Value) {
		facets := v.Get("facets")
		if facets.Len() == 0 {
			return
		}
		if entity, _, ok := r.names.Entity(nameOf(v)); ok {
			out = r.appendEntity(out, fact.DatasetEntity, fact.DatasetKey(entity), facets, place)
		}
	}
	for _, list := range []string{"inputs", "outputs"} {
		items := r.root.Get(list)
		for i := range items.Len() {
			add(&items.Items[i].Value)
		}
	}
	if r.kind == openlineage.DatasetEvent {
		add(r.root.Get("dataset"))
	}
	return out
}

func (r *eventReader) appendEntity(dst []fact.EntityFacet, kind fact.EntityKind, id fact.ID, facets *jsontree.Value, place *node) []fact.EntityFacet {
	container := dataset
	if kind == fact.JobEntity {
		container = job
	}
	for i := range facets.Len() {
		key, v := facets.Items[i].Key, &facets.Items[i].Value
		if v.Kind != jsontree.Object || slices.Contains(statementFacets[container], key) {
			continue
		}
		f := fact.EntityFacet{Kind: kind, Entity: id, Key: key}
		if !deleted(v) {
			value, kept := project(nil, v, place.member(key), Identity, Identity|Drifting|Fixed)
			if !kept {
				continue
			}
			f.Value, f.Invalid = string(value), r.invalid(v)
			if container == dataset && key == "symlinks" && !f.Invalid {
				f.Symlinks = r.symlinks(v)
			}
		}
		dst = append(dst, f)
	}
	return dst
}

// symlinks returns the entities that a symlinks facet names.
func (r *eventReader) symlinks(f *jsontree.Value) (names []openlineage.Name) {
	ids := f.Get("identifiers")
	for i := range ids.Len() {
		if entity, _, ok := r.names.Entity(nameOf(&ids.Items[i].Value)); ok && entity.Name != "" {
			names = append(names, entity)
		}
	}
	return sortedDistinct(names, openlineage.Name.Compare)
}
