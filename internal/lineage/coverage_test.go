package lineage_test

import (
	"math/rand/v2"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
)

// TestStreamsMeetWhatIsHard holds the generator to its purpose: an invariant that
// is tested on streams without cycles says nothing of cycles.
func TestStreamsMeetWhatIsHard(t *testing.T) {
	met := map[string]int{}
	meet := func(what string, yes bool) {
		if yes {
			met[what]++
		} else {
			met[what] += 0
		}
	}
	for seed := range uint64(300) {
		events := decode(t, lineagetest.Stream(rand.New(rand.NewPCG(seed, 0)), streamLength)...)
		g := lineage.Fold(decoder(t).Version(), events)
		attempts := attemptsOf(g)
		for _, e := range events {
			if row := attempts.of(e.Attempt); row != nil {
				meet("an event of the one mapped attempt", row.Attempt.Map != e.Attempt.Map)
			}
		}
		for _, c := range g.Events {
			meet("a collision", len(c.Digests) > 1)
		}
		details := map[[2]fact.ID]map[string]bool{}
		for _, e := range events {
			_, subject := e.Subject()
			obs := fact.ObservationOf(e)
			k := [2]fact.ID{subject, fact.Hash("test", obs.Event.String(), obs.Content.String(), e.Time.String(), obs.Parent.RunID)}
			if details[k] == nil {
				details[k] = map[string]bool{}
			}
			details[k][e.Detail] = true
			meet("bodies that differ in transport only", len(details[k]) > 1)
		}
		for _, a := range g.Attempts {
			meet("a cycle of parents", a.Cycle)
			meet("a backfill", a.Placement.Backfill)
			meet("a second episode", len(a.Episodes) > 1)
			meet("an end that was lost", !a.ParentCompleted.IsZero() && a.State() == lineage.Running)
			meet("a place under a parent's run", a.Own.Slot.Rule == fact.RulePlace && !a.Under.IsZero())
			meet("an Airflow slot", a.Own.Slot.Rule == fact.RuleAirflow)
			meet("a nominal slot", a.Own.Slot.Rule == fact.RuleNominal)
			meet("a parent never heard from", !a.Placement.Parent.IsZero() && g.Attempts[a.Placement.Parent] == nil)
			for _, w := range a.Warnings {
				meet(w, true)
			}
			above, up := 0, a
			for ; up != nil && above < 20 && !up.Placement.Parent.IsZero(); above++ {
				up = g.Attempts[up.Placement.Parent]
			}
			meet("a chain longer than is followed", above > 16)
		}
		for _, r := range g.Runs {
			meet("several attempts of a run", r.Attempts > 1)
			meet("a running word beside a finished one", len(r.Word) > 1)
			for _, w := range r.Word {
				meet("a word that still runs", !w.Finished)
				meet("reads beside outputs", len(w.Said.Reads) > 0 && len(w.Said.Outputs) > 0)
				for _, o := range w.Said.Outputs {
					meet("a version", o.Version != "")
					meet("a subset", len(o.Subsets) > 0)
					meet("several writers of an output", len(o.Derivations) > 1)
				}
			}
		}
		for _, gen := range g.Generations {
			meet("an open generation that finished", gen.Open && gen.Finished > 0)
			meet("a generation of several runs", gen.Runs > 1)
		}
		for _, sel := range g.Selected {
			meet("several generations side by side", len(sel.Generations) > 1)
			meet("a declaration beside runs", len(sel.Generations) > 0 && len(sel.Declared) > 0)
		}
		for e := range g.CurrentEdges() {
			meet("basis "+string(e.Basis), true)
			meet("an edge that a dataset declares", e.Job.Name == "")
			meet("a dataset that feeds itself", e.Input == e.Output)
		}
		for id := range g.Dependencies {
			meet("a dependency that is current", g.DependsNow[id])
			meet("a dependency that is not", !g.DependsNow[id])
		}
		meet("a dropped dataset", len(g.Dropped) > 0)
		meet("a rename", len(g.Renames) > 0)
		meet("linked datasets", len(g.Links) > 0)
		meet("field edges", len(g.Fields) > 0)
	}
	for _, what := range []string{"several slots", "several parents", "several outcomes", "several mapped attempts",
		"basis job", "basis column", "basis explicit"} {
		meet(what, false)
	}
	for what, n := range met {
		if n < 5 {
			t.Errorf("%d of 300 streams meet %s", n, what)
		}
	}
}
