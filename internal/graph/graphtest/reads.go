package graphtest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/openlineage"
)

func dataset(name string) fact.ID {
	return fact.DatasetKey(openlineage.Name{Namespace: "db", Name: name})
}

func job(name string) fact.ID { return fact.JobKey(openlineage.Name{Namespace: "jobs", Name: name}) }

func (s *suite) errors(t *testing.T) {
	store := s.open(t)
	s.write(t, store, run("j", "r", "START", 1, ""))
	ctx := t.Context()
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", what, err, want)
		}
	}
	_, err := store.Dataset(ctx, dataset("none"))
	check("an unknown dataset", err, graph.ErrNotFound)
	_, err = store.Job(ctx, job("none"))
	check("an unknown job", err, graph.ErrNotFound)
	_, err = store.Run(ctx, lineage.RunID{1})
	check("an unknown run", err, graph.ErrNotFound)
	_, err = store.Event(ctx, fact.ID{1})
	check("an unknown event", err, graph.ErrNotFound)
	for _, root := range []graph.Root{{Dataset: dataset("none")}, {Job: job("none")}, {Run: lineage.RunID{1}}} {
		_, err = store.Lineage(ctx, graph.LineageQuery{Root: root, Walk: lineage.Walk{Direction: lineage.Both, Depth: 1, MaxNodes: 10}})
		check("lineage of an unknown root", err, graph.ErrNotFound)
	}
	page := graph.Paging{Limit: 1, Cursor: "bm90IG91cnM"}
	_, err = store.Datasets(ctx, graph.EntityQuery{Paging: page})
	check("a foreign cursor of datasets", err, graph.ErrCursor)
	_, err = store.Runs(ctx, graph.RunQuery{Paging: page})
	check("a foreign cursor of runs", err, graph.ErrCursor)
	_, err = store.Events(ctx, graph.EventQuery{Paging: page})
	check("a foreign cursor of events", err, graph.ErrCursor)

	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = store.Write(gone, store.log.append(s.decode(t, run("j", "r2", "START", 1, ""))...))
	check("a write nobody waits for", err, context.Canceled)
	_, err = store.Stats(gone)
	check("a read nobody waits for", err, context.Canceled)

	if err := store.Close(); err != nil {
		t.Fatalf("closing: %v", err)
	}
	_, err = store.Write(ctx, store.log.append(s.decode(t, run("j", "r3", "START", 1, ""))...))
	check("a write after Close", err, graph.ErrClosed)
	_, err = store.Settle(ctx)
	check("settling after Close", err, graph.ErrClosed)
	_, err = store.Stats(ctx)
	check("a read after Close", err, graph.ErrClosed)
}

// collect reads a listing to its end, n elements a page.
func collect[T any](t *testing.T, n int, read func(graph.Paging) (graph.Page[T], error)) (all []T) {
	t.Helper()
	p := graph.Paging{Limit: n}
	for range 10_000 {
		page, err := read(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > n {
			t.Fatalf("a page of %d elements, at most %d were asked for", len(page.Items), n)
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all
		}
		p.Cursor = page.Next
	}
	t.Fatal("a listing without an end")
	return nil
}

func (s *suite) listings(t *testing.T) {
	store := s.open(t)
	names := []string{"", " ", "a", "a b", "a/b", "a:b", "a#%", "a\x00", "a\x00b", "B", "b", "é", "😀", "￿"}
	for i, n := range names {
		if n == "" {
			continue
		}
		s.write(t, store, complete(n, i*2, nil, []string{n})...)
	}
	names = names[1:]
	want := slices.Sorted(slices.Values(names))
	for _, size := range []int{1, 2, 5, 100} {
		for what, list := range map[string]func(context.Context, graph.EntityQuery) (graph.Page[graph.Entity], error){
			"datasets": store.Datasets, "jobs": store.Jobs,
		} {
			var got []string
			for _, e := range collect(t, size, func(p graph.Paging) (graph.Page[graph.Entity], error) {
				return list(t.Context(), graph.EntityQuery{Paging: p})
			}) {
				got = append(got, e.Name.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s by %d: %q, want %q", what, size, got, want)
			}
		}
		runs := collect(t, size, func(p graph.Paging) (graph.Page[*lineage.RunRow], error) {
			return store.Runs(t.Context(), graph.RunQuery{Paging: p})
		})
		if len(runs) != len(names) {
			t.Errorf("runs by %d: %d, want %d", size, len(runs), len(names))
		}
		if !slices.IsSortedFunc(runs, func(a, b *lineage.RunRow) int { return b.First.Compare(a.First) }) {
			t.Errorf("runs by %d are not those that began last first", size)
		}
	}
	only := collect(t, 2, func(p graph.Paging) (graph.Page[graph.Entity], error) {
		return store.Datasets(t.Context(), graph.EntityQuery{Paging: p, Namespace: "db", Contains: "B"})
	})
	if len(only) != 6 {
		t.Errorf("%d datasets contain b, want 6: %v", len(only), only)
	}
	none, err := store.Datasets(t.Context(), graph.EntityQuery{Paging: graph.Paging{Limit: 5}, Namespace: "d"})
	if err != nil || len(none.Items) > 0 {
		t.Errorf("namespace d has %v (%v), want nothing: a namespace is no prefix", none.Items, err)
	}
}

func (s *suite) eventFilters(t *testing.T) {
	store := s.open(t)
	s.write(t, store, complete("j", 1, []string{"A"}, []string{"B"})...)
	s.write(t, store, complete("k", 3, []string{"B"}, []string{"C"})...)
	again, err := store.Standings(t.Context(), []fact.Attempt{{Job: openlineage.Name{Namespace: "jobs", Name: "k"}, RunID: "k-3", Map: fact.NoMap}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		q    graph.EventQuery
		want int
	}{
		{"all", graph.EventQuery{}, 4},
		{"of job j", graph.EventQuery{Job: job("j")}, 2},
		{"that name B", graph.EventQuery{Dataset: dataset("B")}, 2},
		{"that name A", graph.EventQuery{Dataset: dataset("A")}, 1},
		{"of k's run", graph.EventQuery{Run: again[0].Run}, 2},
		{"COMPLETE", graph.EventQuery{Type: openlineage.Complete}, 2},
		{"COMPLETE of j", graph.EventQuery{Type: openlineage.Complete, Job: job("j")}, 1},
		{"new", graph.EventQuery{Outcome: graph.New}, 4},
		{"collisions", graph.EventQuery{Outcome: graph.Collision}, 0},
	} {
		for _, size := range []int{1, 3} {
			got := collect(t, size, func(p graph.Paging) (graph.Page[graph.LoggedEvent], error) {
				c.q.Paging = p
				return store.Events(t.Context(), c.q)
			})
			if len(got) != c.want {
				t.Errorf("events %s by %d: %d, want %d", c.what, size, len(got), c.want)
			}
			if !slices.IsSortedFunc(got, func(a, b graph.LoggedEvent) int { return cmp.Compare(b.Sequence, a.Sequence) }) {
				t.Errorf("events %s are not those received last first", c.what)
			}
		}
	}
	last, err := store.Events(t.Context(), graph.EventQuery{Paging: graph.Paging{Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	bodies, err := store.Event(t.Context(), last.Items[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	want := complete("k", 3, []string{"B"}, []string{"C"})[1]
	if len(bodies) != 1 || string(bodies[0].Payload) != string(want) {
		t.Errorf("the event has %d bodies, the first is %s", len(bodies), bodies[0].Payload)
	}
}

func (s *suite) search(t *testing.T) {
	store := s.open(t)
	s.write(t, store, complete("load orders", 1, []string{"raw.orders"}, []string{"mart.orders_daily"})...)
	s.write(t, store, complete("other", 3, nil, []string{"mart.customers"})...)
	for _, c := range []struct {
		q    graph.SearchQuery
		want []string
	}{
		{graph.SearchQuery{Text: "ORDERS", Kind: fact.DatasetEntity}, []string{"raw.orders", "mart.orders_daily"}},
		{graph.SearchQuery{Text: "orders", Kind: fact.JobEntity}, []string{"load orders"}},
		{graph.SearchQuery{Text: "ustom"}, []string{"mart.customers"}},
		{graph.SearchQuery{Text: "mart", Namespace: "elsewhere"}, nil},
	} {
		c.q.Limit = 10
		for _, store := range s.reopened(t, store) {
			found, err := store.Search(t.Context(), c.q)
			for range 1000 { // an index that is being made
				if err != nil || !found.Indexing {
					break
				}
				time.Sleep(time.Millisecond)
				found, err = store.Search(t.Context(), c.q)
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range found.Hits {
				got = append(got, h.Name.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("search for %+v: %q, want %q", c.q, got, c.want)
			}
		}
	}
}

// reopened returns a store, and what a crash of it leaves.
func (s *suite) reopened(t *testing.T, old *store) []*store {
	if s.Crash == nil {
		return []*store{old}
	}
	return []*store{old, s.crash(t, old)}
}

func (s *suite) entities(t *testing.T) {
	store := s.open(t)
	s.write(t, store, complete("j", 1, []string{"A|" + symlinks("A2")}, []string{"B"})...)
	d, err := store.Dataset(t.Context(), dataset("A"))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Aliases) != 1 || d.Aliases[0].Name.Name != "A2" || d.Degree != (lineage.Degree{Down: 1}) || len(d.Facets) != 1 {
		t.Errorf("dataset A: aliases %v, degree %v, facets %v", d.Aliases, d.Degree, d.Facets)
	}
	j, err := store.Job(t.Context(), job("j"))
	if err != nil {
		t.Fatal(err)
	}
	if j.Latest == nil || j.Latest.State != lineage.Complete || len(j.Derivations) != 1 {
		t.Errorf("job j: latest run %v, %d derivations", j.Latest, len(j.Derivations))
	}
}
