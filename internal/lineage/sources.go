package lineage

import (
	"slices"
	"strings"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// sourceSet is a set of sources, which outputs may share.
type sourceSet struct {
	basis map[openlineage.Name]Basis
	// sorted and key are computed once, when the set is complete.
	sorted []Source
	key    string
}

func newSourceSet(size int) *sourceSet {
	return &sourceSet{basis: make(map[openlineage.Name]Basis, size)}
}

// complete sorts the set and returns it; nil is the empty set.
func (s *sourceSet) complete(u *uniter) *sourceSet {
	if s == nil {
		return &sourceSet{}
	}
	if s.sorted != nil || len(s.basis) == 0 {
		return s
	}
	s.sorted = make([]Source, 0, len(s.basis))
	for name, basis := range s.basis {
		s.sorted = append(s.sorted, Source{u.ref(name), basis})
	}
	slices.SortFunc(s.sorted, func(a, b Source) int { return a.Name.Compare(b.Name) })
	var key strings.Builder
	for i := range s.sorted {
		key.Write(s.sorted[i].ID[:])
		key.WriteString(string(s.sorted[i].Basis))
		key.WriteByte(0)
	}
	s.key = key.String()
	return s
}

// add adds a source to a set, which is made if need be.
func (s *sourceSet) add(name openlineage.Name, basis Basis) *sourceSet {
	if s == nil {
		s = newSourceSet(1)
	}
	s.basis[name] = basis
	return s
}

// sourcesOf returns the datasets that entries name, each once, sorted by key.
func (u *uniter) sourcesOf(entries []fact.ColumnEntry) (sources []DatasetRef) {
	seen := map[openlineage.Name]bool{}
	for i := range entries {
		if source := entries[i].Source; !seen[source] {
			seen[source] = true
			sources = append(sources, u.ref(source))
		}
	}
	slices.SortFunc(sources, func(a, b DatasetRef) int { return fact.CompareIDs(a.ID, b.ID) })
	return sources
}

func idsKey(refs []DatasetRef) string {
	key := make([]byte, 0, len(refs)*idLen)
	for i := range refs {
		key = append(key, refs[i].ID[:]...)
	}
	return string(key)
}
