package lineage

import (
	"iter"
	"strings"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// nameKey orders entities by namespace, then name: the text, and behind each
// part an end that is smaller than any further text.
func nameKey(n openlineage.Name) string {
	return namespaceKey(n.Namespace) + escapeZero(n.Name) + "\x00\x01"
}

func namespaceKey(namespace string) string { return escapeZero(namespace) + "\x00\x01" }

func escapeZero(s string) string { return strings.ReplaceAll(s, "\x00", "\x00\xff") }

// EntitiesFrom yields datasets or jobs with their names, ordered by namespace and
// name, of one namespace or, with "", of all, behind the one that after names.
func (st *State) EntitiesFrom(kind fact.EntityKind, namespace string, after openlineage.Name) func(yield func(fact.ID, openlineage.Name) bool) {
	names, rows := st.DatasetNames, st.Datasets
	if kind == fact.JobEntity {
		names, rows = st.JobNames, st.Jobs
	}
	prefix, start := "", ""
	if namespace != "" {
		prefix = namespaceKey(namespace)
	}
	if after != (openlineage.Name{}) {
		start = nameKey(after) + "\x00"
	}
	return func(yield func(fact.ID, openlineage.Name) bool) {
		for _, id := range names.Scan(prefix, start) {
			n, _ := rows.Get(keyOf(id).String())
			if !yield(id, n) {
				return
			}
		}
	}
}

// Names yields every dataset or every job with its name, in no particular order.
func (st *State) Names(kind fact.EntityKind) iter.Seq2[fact.ID, openlineage.Name] {
	rows := st.Datasets
	if kind == fact.JobEntity {
		rows = st.Jobs
	}
	return func(yield func(fact.ID, openlineage.Name) bool) {
		for key, name := range rows.Scan("", "") {
			if !yield(idAt(key, 0), name) {
				return
			}
		}
	}
}
