package lineage

import (
	"iter"
	"reflect"
	"strings"
)

// counted is a Table that counts the rows that it is asked for, gives or takes.
type counted[V any] struct {
	Table[V]
	rows *int
}

func (c counted[V]) Get(key string) (V, bool)   { *c.rows++; return c.Table.Get(key) }
func (c counted[V]) Put(key string, row V)      { *c.rows++; c.Table.Put(key, row) }
func (c counted[V]) PutLater(key string, row V) { *c.rows++; c.Table.PutLater(key, row) }
func (c counted[V]) Delete(key string)          { *c.rows++; c.Table.Delete(key) }

func (c counted[V]) Scan(prefix, start string) iter.Seq2[string, V] {
	return c.count(c.Table.Scan(prefix, start))
}

func (c counted[V]) ScanBack(prefix string) iter.Seq2[string, V] {
	return c.count(c.Table.ScanBack(prefix))
}

func (c counted[V]) ScanBefore(prefix, end string) iter.Seq2[string, V] {
	return c.count(c.Table.ScanBefore(prefix, end))
}

func (c counted[V]) count(rows iter.Seq2[string, V]) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		*c.rows++ // a scan costs even where it finds nothing
		for key, row := range rows {
			*c.rows++
			if !yield(key, row) {
				return
			}
		}
	}
}

func count1[V any](t *Table[V], rows *int) { *t = counted[V]{*t, rows} }

// CountRows wraps every table of a State and returns the count of rows touched.
func CountRows(st *State) *int {
	n := new(int)
	count1(&st.Events, n)
	count1(&st.EventBodies, n)
	count1(&st.EntityBodies, n)
	count1(&st.Observations, n)
	count1(&st.Details, n)
	count1(&st.Groups, n)
	count1(&st.Declarations, n)
	count1(&st.Datasets, n)
	count1(&st.Jobs, n)
	count1(&st.DatasetNames, n)
	count1(&st.JobNames, n)
	count1(&st.Facets, n)
	count1(&st.FacetsNow, n)
	count1(&st.Attempts, n)
	count1(&st.Children, n)
	count1(&st.RunningChildren, n)
	count1(&st.Runs, n)
	count1(&st.Tallies, n)
	count1(&st.RunsByTime, n)
	count1(&st.JobRuns, n)
	count1(&st.Members, n)
	count1(&st.MemberFirst, n)
	count1(&st.MemberLast, n)
	count1(&st.Generations, n)
	count1(&st.GenFirst, n)
	count1(&st.GenLast, n)
	count1(&st.JobFirst, n)
	count1(&st.JobLast, n)
	count1(&st.Tops, n)
	count1(&st.OpenTops, n)
	count1(&st.Words, n)
	count1(&st.Supports, n)
	count1(&st.GenOutputs, n)
	count1(&st.Candidates, n)
	count1(&st.Selected, n)
	count1(&st.Declared, n)
	count1(&st.Current, n)
	count1(&st.Writes, n)
	count1(&st.Refs, n)
	count1(&st.Derivations, n)
	count1(&st.Mappings, n)
	count1(&st.Dependencies, n)
	count1(&st.Renames, n)
	count1(&st.JobDerivations, n)
	count1(&st.Upstream, n)
	count1(&st.Downstream, n)
	count1(&st.Fields, n)
	count1(&st.Degrees, n)
	count1(&st.DependsNow, n)
	count1(&st.Links, n)
	count1(&st.Todos, n)
	v := reflect.ValueOf(st).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Interface && !strings.Contains(v.Field(i).Elem().Type().String(), "counted[") {
			panic("CountRows does not wrap " + v.Type().Field(i).Name)
		}
	}
	return n
}
