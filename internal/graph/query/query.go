// Package query answers what graph.Reader asks from a lineage.State of one moment.
// Drivers that have their graph as a State share it, and so give one answer.
package query

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/namesearch"
	"github.com/graphd/graphd/internal/openlineage"
)

// View is a graph at one moment. Its State is read by one goroutine at a time.
type View struct {
	State *lineage.State
	// Archive has the bodies of the log.
	Archive graph.Archive
	// Names is the index of names, Indexing whether it is still being made.
	Names    *namesearch.Index
	Indexing bool
}

// Lineage answers as graph.Reader's.
func (v *View) Lineage(q graph.LineageQuery) (*graph.Lineage, error) {
	st := v.State
	answer := &graph.Lineage{Settling: st.Pending(maxPending)}
	switch {
	case !q.Root.Dataset.IsZero():
		name, ok := st.Dataset(q.Root.Dataset)
		if !ok {
			return nil, notFound("dataset", q.Root.Dataset)
		}
		answer.Reached = q.Walk.From(st, lineage.DatasetRef{ID: q.Root.Dataset, Name: name})
		answer.Root = q.Root.Dataset.String()
		for _, n := range answer.Datasets {
			if slices.ContainsFunc(n.Names, func(r lineage.DatasetRef) bool { return r.ID == q.Root.Dataset }) {
				answer.Root = n.ID.String()
			}
		}
	case !q.Root.Job.IsZero():
		if _, ok := st.Job(q.Root.Job); !ok {
			return nil, notFound("job", q.Root.Job)
		}
		answer.Reached = q.Walk.Through(st, slices.Collect(st.DerivationsOf(q.Root.Job))...)
		answer.Root = q.Root.Job.String()
	default:
		run := st.Run(q.Root.Run)
		if run == nil {
			return nil, notFound("run", q.Root.Run)
		}
		answer.Reached = q.Walk.Through(st, run.Derivations()...)
		answer.Root = run.ID.String()
	}
	return answer, nil
}

func notFound(what string, id fmt.Stringer) error {
	return graph.NotFound{What: what + " " + id.String()}
}

// maxPending bounds how far pending work is counted.
const maxPending = 10_000

// Entities answers as graph.Reader's Datasets and Jobs.
func (v *View) Entities(kind fact.EntityKind, q graph.EntityQuery) (page graph.Page[graph.Entity], err error) {
	contains := strings.ToLower(q.Contains)
	after, err := entityCursor(v.State, kind, q.Cursor)
	if err != nil {
		return page, err
	}
	matching := func(yield func(graph.Entity) bool) {
		for id, n := range v.State.EntitiesFrom(kind, q.Namespace, after) {
			if strings.Contains(strings.ToLower(n.Name), contains) && !yield(graph.Entity{ID: id, Name: n}) {
				return
			}
		}
	}
	return pageOf(matching, q.Limit, func(e graph.Entity) string { return cursor(string(kind), e.ID.String()) }), nil
}

// Search answers as graph.Reader's.
func (v *View) Search(q graph.SearchQuery) graph.Found {
	hits, more := v.Names.Search(namesearch.Query{Text: q.Text, Kind: q.Kind, Namespace: q.Namespace, Limit: q.Limit})
	found := graph.Found{More: more, Indexing: v.Indexing}
	for _, h := range hits {
		found.Hits = append(found.Hits, graph.Hit{Entity: graph.Entity{ID: h.ID, Name: h.Name}, Kind: h.Kind, Match: h.Match.String()})
	}
	return found
}

// pageOf takes limit elements and, if there are more, the cursor of the last.
func pageOf[T any](elems iter.Seq[T], limit int, cursorOf func(T) string) (page graph.Page[T]) {
	for e := range elems {
		if len(page.Items) == limit {
			page.Next = cursorOf(page.Items[limit-1])
			break
		}
		page.Items = append(page.Items, e)
	}
	return page
}

// cursor writes the name of a listing and parts as an opaque text; parts reads
// them.
func cursor(listing string, parts ...string) string {
	var b strings.Builder
	parts = append([]string{listing}, parts...)
	for _, p := range parts {
		b.WriteString(strconv.Itoa(len(p)))
		b.WriteByte(':')
		b.WriteString(p)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(b.String()))
}

func parts(cursor, listing string, want int) ([]string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, graph.ErrCursor
	}
	rest := string(raw)
	var parts []string
	for rest != "" {
		length, after, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(length)
		if !ok || err != nil || n < 0 || n > len(after) {
			return nil, graph.ErrCursor
		}
		parts, rest = append(parts, after[:n]), after[n:]
	}
	if len(parts) != want+1 || parts[0] != listing {
		return nil, graph.ErrCursor
	}
	return parts[1:], nil
}

// entityCursor returns the name behind which a listing of entities continues. A
// cursor holds the key and not the name, which may be long.
func entityCursor(st *lineage.State, kind fact.EntityKind, c string) (n openlineage.Name, err error) {
	if c == "" {
		return n, nil
	}
	p, err := parts(c, string(kind), 1)
	if err != nil {
		return n, err
	}
	id, err := fact.ParseID(p[0])
	if err != nil {
		return n, graph.ErrCursor
	}
	known := false
	if kind == fact.JobEntity {
		n, known = st.Job(id)
	} else {
		n, known = st.Dataset(id)
	}
	if !known {
		return n, graph.ErrCursor
	}
	return n, nil
}

// Dataset answers as graph.Reader's.
func (v *View) Dataset(id fact.ID) (*graph.Dataset, error) {
	st := v.State
	name, ok := st.Dataset(id)
	if !ok {
		return nil, notFound("dataset", id)
	}
	d := &graph.Dataset{
		Entity: graph.Entity{ID: id, Name: name}, Facets: facets(st, fact.DatasetEntity, id),
		Degree: st.DegreeOf(id), Upstream: slices.Collect(st.UpstreamOf(id)),
	}
	d.Dropped, _ = st.Dropped(id)
	for other := range st.SameAs(id) {
		d.Aliases = append(d.Aliases, other)
	}
	slices.SortFunc(d.Aliases, func(a, b lineage.DatasetRef) int { return a.Name.Compare(b.Name) })
	return d, nil
}

func facets(st *lineage.State, kind fact.EntityKind, id fact.ID) []lineage.FacetRow {
	rows := st.FacetsOf(kind, id)
	slices.SortFunc(rows, func(a, b lineage.FacetRow) int { return cmp.Compare(a.Key, b.Key) })
	return rows
}

// Job answers as graph.Reader's.
func (v *View) Job(id fact.ID) (*graph.Job, error) {
	st := v.State
	name, ok := st.Job(id)
	if !ok {
		return nil, notFound("job", id)
	}
	j := &graph.Job{
		Entity: graph.Entity{ID: id, Name: name}, Facets: facets(st, fact.JobEntity, id),
		Derivations: slices.Collect(st.DerivationsOf(id)),
	}
	for run := range st.RunsNewestFirst(id, nil) {
		j.Latest = run
		break
	}
	return j, nil
}

// Runs answers as graph.Reader's.
func (v *View) Runs(q graph.RunQuery) (page graph.Page[*lineage.RunRow], err error) {
	var after *lineage.RunRow
	if q.Cursor != "" {
		if after, err = runCursor(q.Cursor); err != nil {
			return page, err
		}
	}
	matching := func(yield func(*lineage.RunRow) bool) {
		for run := range v.State.RunsNewestFirst(q.Job, after) {
			if (q.State == "" || run.State == q.State) && !yield(run) {
				return
			}
		}
	}
	return pageOf(matching, q.Limit, func(r *lineage.RunRow) string {
		return cursor("run", r.ID.String(), strconv.FormatInt(r.First.Sec, 10), strconv.Itoa(int(r.First.Nano)))
	}), nil
}

func runCursor(c string) (*lineage.RunRow, error) {
	p, err := parts(c, "run", 3)
	if err != nil {
		return nil, err
	}
	id, err1 := lineage.ParseRunID(p[0])
	sec, err2 := strconv.ParseInt(p[1], 10, 64)
	nano, err3 := strconv.ParseInt(p[2], 10, 32)
	if err1 != nil || err2 != nil || err3 != nil {
		return nil, graph.ErrCursor
	}
	return &lineage.RunRow{ID: id, First: openlineage.Instant{Sec: sec, Nano: int32(nano)}}, nil
}

// Run answers as graph.Reader's.
func (v *View) Run(id lineage.RunID) (*graph.Run, error) {
	row := v.State.Run(id)
	if row == nil {
		return nil, notFound("run", id)
	}
	return &graph.Run{RunRow: row, Members: slices.Collect(v.State.AttemptsOf(id))}, nil
}

// Standings answers as graph.Reader's.
func (v *View) Standings(attempts []fact.Attempt) []graph.Standing {
	out := make([]graph.Standing, len(attempts))
	for i, a := range attempts {
		out[i] = standing(v.State, a)
	}
	return out
}

// Standings returns what the attempts of deliveries are settled as.
func Standings(st *lineage.State, deliveries []graph.Delivery) []graph.Standing {
	out := make([]graph.Standing, len(deliveries))
	for i, d := range deliveries {
		out[i] = standing(st, d.Event.Attempt)
	}
	return out
}

func standing(st *lineage.State, a fact.Attempt) (out graph.Standing) {
	if a.RunID == "" { // of a job or dataset event
		return graph.Standing{Settled: true}
	}
	row, settled := st.Standing(a)
	if out.Settled = settled; row != nil {
		out.Run, out.Attempt = row.Run, row.Key
	}
	return out
}

// Stats answers as graph.Reader's.
func (v *View) Stats() graph.Stats {
	st := v.State
	return graph.Stats{
		Datasets: st.Datasets.Len(), Jobs: st.Jobs.Len(), Runs: st.Runs.Len(), Attempts: st.Attempts.Len(),
		Events: st.Events.Len(), Derivations: st.Derivations.Len(), Settling: st.Pending(maxPending),
	}
}
