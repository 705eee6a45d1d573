package lineage_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
)

func TestCasesHaveTheirAnswersInEveryOrder(t *testing.T) {
	for _, c := range readCases(t, "testdata/cases.txt") {
		t.Run(strings.ReplaceAll(c.name, "/", "|"), func(t *testing.T) {
			t.Parallel()
			events := decode(t, c.bodies...)
			version := events[0].Version
			whole := lineage.Fold(version, events)
			answers{t, events, whole}.checkAll(c.answers)
			want := snapshot(t, whole)
			for order := range orders(len(events)) {
				rng := rand.New(rand.NewPCG(uint64(len(order)), 7))
				st := lineage.NewMemory(version)
				moments := newMoments(t, c.answers)
				for i, at := range order {
					st.Merge(events[at])
					if rng.IntN(4) == 0 {
						st.Merge(events[order[rng.IntN(i+1)]]) // a repetition
					}
					settle(st)
					if moments.any() {
						moments.check(st.Graph())
					}
				}
				if got := snapshot(t, st.Graph()); got != want {
					t.Fatalf("in order %v the settled state differs:\n%s", order, diff(want, got))
				}
				ordered := make([]*fact.Event, 0, 2*len(events))
				for _, at := range order {
					ordered = append(ordered, events[at])
				}
				if got := snapshot(t, lineage.Fold(version, append(ordered, ordered...))); got != want {
					t.Fatalf("in order %v the fold differs:\n%s", order, diff(want, got))
				}
				if t.Failed() {
					t.Fatalf("in order %v", order)
				}
			}
		})
	}
}

// orders yields every order of n things up to 6, else some; up to 5 where tests
// are slow.
func orders(n int) func(yield func([]int) bool) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	all, some := 6, 300
	if raceEnabled || testing.Short() {
		all, some = 5, 120
	}
	if n > all {
		return func(yield func([]int) bool) {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for range some {
				if !yield(slices.Clone(order)) {
					return
				}
				rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
			}
		}
	}
	var permute func(k int, yield func([]int) bool) bool
	permute = func(k int, yield func([]int) bool) bool {
		if k == n {
			return yield(slices.Clone(order))
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			if !permute(k+1, yield) {
				return false
			}
			order[k], order[i] = order[i], order[k]
		}
		return true
	}
	return func(yield func([]int) bool) { permute(0, yield) }
}

// moments checks what must hold after each delivery: an edge that is never
// current, and one that stays once it is.
type moments struct {
	t            *testing.T
	never, keeps []string
	had          map[string]bool
}

func newMoments(t *testing.T, all []string) *moments {
	m := &moments{t: t, had: map[string]bool{}}
	for _, answer := range all {
		switch word, rest, _ := strings.Cut(answer, " "); word {
		case "never":
			m.never = append(m.never, rest)
		case "keeps":
			m.keeps = append(m.keeps, rest)
		}
	}
	return m
}

func (m *moments) any() bool { return len(m.never)+len(m.keeps) > 0 }

func (m *moments) check(g *lineage.Graph) {
	m.t.Helper()
	now := map[string]bool{}
	for e := range g.CurrentEdges() {
		edge, _, _ := strings.Cut(edgeText(e), "/")
		now[edge] = true
	}
	for _, e := range m.never {
		if now[e] {
			m.t.Errorf("%s is current for a moment", e)
		}
	}
	for _, e := range m.keeps {
		if m.had[e] && !now[e] {
			m.t.Errorf("%s is gone for a moment", e)
		}
		m.had[e] = m.had[e] || now[e]
	}
}

func edgeText(e lineage.Edge) string {
	return fmt.Sprintf("%s:%s>%s/%s", e.Job.Name, e.Input.Name, e.Output.Name, e.Basis)
}

// answers checks the answers of a case against a graph.
type answers struct {
	t      *testing.T
	events []*fact.Event
	g      *lineage.Graph
}

func (a answers) checkAll(all []string) {
	a.t.Helper()
	for _, answer := range all {
		word, rest, _ := strings.Cut(answer, " ")
		if word == "never" || word == "keeps" {
			continue // at every moment: see moments
		}
		subject, want, _ := strings.Cut(rest, " ")
		got, ok := "", true
		switch word {
		case "edges", "datasets":
			want = strings.Join(slices.Sorted(slices.Values(strings.Fields(rest))), " ")
			got = a.set(word)
		case "events", "collisions", "redescribed", "derivations":
			want, got = rest, fmt.Sprint(a.count(word))
		case "reads", "unfed", "depends", "cycle", "together":
			ok = a.has(word, rest)
			want, got = "true", fmt.Sprint(ok)
		default:
			got = a.about(word, subject)
			want = strings.Join(slices.Sorted(slices.Values(strings.Split(want, ","))), ",")
		}
		if got != want {
			a.t.Errorf("%s: got %q", answer, got)
		}
	}
}

// set returns the words of a whole set.
func (a answers) set(word string) string {
	var set []string
	if word == "edges" {
		for e := range a.g.CurrentEdges() {
			set = append(set, edgeText(e))
		}
	} else {
		for _, n := range a.g.Datasets {
			set = append(set, n.Name)
		}
	}
	slices.Sort(set)
	return strings.Join(set, " ")
}

func (a answers) count(word string) (n int) {
	switch word {
	case "events":
		return len(a.g.Events)
	case "derivations":
		return len(a.g.Derivations)
	case "redescribed": // bodies of one event and content that another drift tells apart
		drifts := map[[2]fact.ID]map[fact.ID]bool{}
		for _, e := range a.events {
			k := [2]fact.ID{e.ID, e.Content}
			if drifts[k] == nil {
				drifts[k] = map[fact.ID]bool{}
			}
			drifts[k][e.Drift] = true
		}
		for _, d := range drifts {
			n += len(d) - 1
		}
	case "collisions":
		for _, c := range a.g.Events {
			n += len(c.Digests) - 1
		}
	}
	return n
}

// has reports whether the graph has a thing.
func (a answers) has(word, what string) bool {
	job, rest, _ := strings.Cut(what, ":")
	switch word {
	case "reads", "unfed":
		for _, d := range a.g.Derivations {
			if d.Job.Name != job {
				continue
			}
			if word == "reads" && len(d.Outputs) == 0 && len(d.Inputs) == 1 && d.Inputs[0].Name.Name == rest {
				return true
			}
			if word == "unfed" && len(d.Inputs) == 0 && len(d.Outputs) == 1 && d.Outputs[0].Name.Name == rest {
				return true
			}
		}
	case "depends":
		for id, d := range a.g.Dependencies {
			if d.Upstream.Name+">"+d.Downstream.Name == what {
				return a.g.DependsNow[id]
			}
		}
	case "cycle":
		return a.attempt(what).Cycle
	case "together":
		one, other, _ := strings.Cut(what, ",")
		return a.g.Links[[2]fact.ID{fact.DatasetKey(lineagetest.Table(one)), fact.DatasetKey(lineagetest.Table(other))}]
	}
	return false
}

// attempt finds the attempt JOB/run#map.
func (a answers) attempt(word string) *lineage.AttemptRow {
	a.t.Helper()
	e, err := parseEvent([]string{"START", "0", word})
	if err != nil {
		a.t.Fatal(err)
	}
	key := fact.Attempt{Job: e.Job, RunID: lineagetest.RunID(e.Run), Map: fact.NoMap}
	if _, m, ok := strings.Cut(word, "#"); ok {
		fmt.Sscan(m, &key.Map)
	}
	row := attemptsOf(a.g).of(key)
	if row == nil {
		a.t.Fatalf("no attempt %s", word)
	}
	return row
}

// about returns what the graph says about one subject.
func (a answers) about(word, subject string) string {
	var got []string
	edges := func(said *lineage.Said) {
		if said == nil {
			return
		}
		for _, o := range said.Outputs {
			for _, d := range o.Derivations {
				for _, in := range d.Inputs {
					got = append(got, in.Name.Name+">"+o.Name.Name)
				}
			}
		}
	}
	switch word {
	case "runs":
		for _, r := range a.g.Runs {
			if r.Job.Name == subject {
				got = append(got, string(r.State))
			}
		}
	case "attempts":
		n := 0
		for _, row := range a.g.Attempts {
			if row.Attempt.Job.Name == subject {
				n++
			}
		}
		got = append(got, fmt.Sprint(n))
	case "open":
		n := 0
		for _, gen := range a.g.Generations {
			if gen.Job.Name == subject && gen.Open {
				n++
			}
		}
		got = append(got, fmt.Sprint(n))
	case "asserts":
		row := a.attempt(subject)
		for _, w := range a.g.Runs[row.Run].Word {
			if w.Attempt == row.Key {
				edges(w.Said)
			}
		}
	case "provisional":
		row := a.attempt(subject)
		for _, w := range a.g.Runs[row.Run].Word {
			if w.Attempt == row.Key {
				return "asserted"
			}
		}
		edges(row.Episodes[len(row.Episodes)-1].Said)
	case "warns":
		got = a.attempt(subject).Warnings
	case "rule":
		got = append(got, a.attempt(subject).Own.Slot.Rule.String())
	case "dropped":
		at, ok := a.g.Dropped[fact.DatasetKey(lineagetest.Table(subject))]
		if !ok {
			return "never"
		}
		got = append(got, fmt.Sprint(at.Time().Sub(scriptStart).Minutes()))
	case "declared":
		for _, d := range a.g.Declared {
			if d.Job.Name == subject {
				edges(d.Said)
			}
		}
	case "versions":
		for _, r := range a.g.Runs {
			for _, w := range r.Word {
				for _, o := range w.Said.Outputs {
					if o.Name.Name == subject {
						got = append(got, cmp.Or(o.Version, "unsaid"))
					}
				}
			}
		}
	case "described":
		got = append(got, a.described(subject))
	default:
		a.t.Fatalf("no such answer: %s", word)
	}
	slices.Sort(got)
	return strings.Join(got, ",")
}

// described returns the description that is current for a dataset.
func (a answers) described(dataset string) string {
	var newest lineage.FacetRow
	for _, row := range a.g.Facets {
		if row.Entity == fact.DatasetKey(lineagetest.Table(dataset)) && row.Key == "documentation" && row.Last.After(newest.Last) {
			newest = row
		}
	}
	var facet struct{ Description string }
	if err := json.Unmarshal([]byte(newest.Value), &facet); err != nil {
		a.t.Fatal(err)
	}
	return facet.Description
}
