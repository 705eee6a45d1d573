package lineage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/openlineage"
)

// TestAParentThatMovesWhileItsChildrenMove moves a parent with more children
// than one settlement reads, and moves it again when half of them are read.
func TestAParentThatMovesWhileItsChildrenMove(t *testing.T) {
	const children = 1_200
	version := decoder(t).Version()
	var bodies [][]byte
	for i := range children {
		e := lineagetest.Event{
			Type: openlineage.Complete, Time: scriptStart, Producer: lineagetest.DagsterProducer, Job: lineagetest.Job("step"),
			Run: fmt.Sprint("s", i), RunFacets: lineagetest.Object{"parent": lineagetest.Parent(lineagetest.Job("P"), "p")},
		}
		bodies = append(bodies, e.Body())
	}
	for day := range 3 { // each is earlier than the one before, and so names the slot
		e := lineagetest.Event{
			Type: openlineage.Start, Time: scriptStart.Add(-time.Duration(day) * time.Minute), Job: lineagetest.Job("P"), Run: "p",
			RunFacets: lineagetest.Object{"nominalTime": lineagetest.NominalTime(fmt.Sprintf("2026-01-%02dT00:00:00Z", day+1))},
		}
		bodies = append(bodies, e.Body())
	}
	events := decode(t, bodies...)
	want := snapshot(t, lineage.Fold(version, events))
	for pause := range 5 { // settlements between the parent's moves
		st := lineage.NewMemory(version)
		for _, e := range events[:children] {
			st.Merge(e)
		}
		settle(st)
		for _, e := range events[children:] {
			st.Merge(e)
			for range pause {
				st.Settle(1 << 30)
			}
		}
		settle(st)
		if got := snapshot(t, st.Graph()); got != want {
			t.Fatalf("with %d settlements between the moves, the state differs:\n%.3000s", pause, diff(want, got))
		}
	}
}

// dailyRuns are 365 runs over dated paths, with column lineage.
func dailyRuns(t *testing.T, rules normalize.NameRules) *lineage.Graph {
	t.Helper()
	d, err := ingest.NewDecoder(ingest.Options{Names: rules})
	if err != nil {
		t.Fatal(err)
	}
	st := lineage.NewMemory(d.Version())
	for day := range 365 {
		date := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, day)
		in := lineagetest.Table("s3://lake/raw/orders/" + date.Format("2006-01-02"))
		out := lineagetest.Dataset{Name: lineagetest.Table("s3://lake/mart/orders/" + date.Format("2006/01/02")), Facets: lineagetest.Object{
			"columnLineage": lineagetest.ColumnLineage([]lineagetest.Column{{Field: "x", Source: in, SourceField: "y"}}),
		}}
		e := lineagetest.Event{
			Type: openlineage.Complete, Time: date.Add(time.Hour), Job: lineagetest.Job("daily"), Run: fmt.Sprint("r", day),
			RunFacets: lineagetest.Object{"nominalTime": lineagetest.NominalTime(date.Format(time.RFC3339))},
			Inputs:    []lineagetest.Dataset{{Name: in}}, Outputs: []lineagetest.Dataset{out},
		}
		event, err := d.Decode(e.Body())
		if err != nil {
			t.Fatal(err)
		}
		st.Merge(event)
		settle(st)
	}
	return st.Graph()
}

func TestDatedPathsAreOneDataset(t *testing.T) {
	for _, c := range []struct {
		collapse                      bool
		datasets, derivations, subset int
	}{
		{true, 2, 1, 365},
		{false, 730, 365, 0},
	} {
		rules := normalize.DefaultNameRules()
		rules.Collapse = c.collapse
		g := dailyRuns(t, rules)
		subsets := map[string]bool{}
		for _, r := range g.Runs {
			for _, a := range r.Word {
				for _, in := range a.Said.Inputs {
					for _, s := range in.Subsets {
						subsets[s] = true
					}
				}
			}
		}
		if len(g.Datasets) != c.datasets || len(g.Derivations) != c.derivations || len(subsets) != c.subset || len(g.Events) != 365 || len(g.Runs) != 365 {
			t.Errorf("collapse %v: %d datasets, %d derivations, %d subsets of %d events and %d runs, want %d, %d, %d of 365 and 365",
				c.collapse, len(g.Datasets), len(g.Derivations), len(subsets), len(g.Events), len(g.Runs), c.datasets, c.derivations, c.subset)
		}
	}
}

// TestRunsThatSayTheSameShareIt: a year of runs holds one copy of what they say,
// not one each.
func TestRunsThatSayTheSameShareIt(t *testing.T) {
	g := dailyRuns(t, normalize.DefaultNameRules())
	derivations, mappings := map[*lineage.Derivation]bool{}, map[*lineage.Mapping]bool{}
	for _, row := range g.Attempts {
		for _, o := range row.Episodes[0].Said.Outputs {
			derivations[o.Derivations[0]], mappings[o.Mapping] = true, true
		}
	}
	if len(derivations) != 1 || len(mappings) != 1 {
		t.Errorf("%d copies of one derivation, %d of one mapping", len(derivations), len(mappings))
	}
}

// wideJob is a COMPLETE of a job with 500 inputs and 300 outputs; columns is how
// many fields their column lineage maps.
func wideJob(columns int) []byte {
	const inputs, outputs = 500, 300
	e := lineagetest.Event{Type: openlineage.Complete, Time: scriptStart, Job: lineagetest.Job("wide"), Run: "r"}
	in := func(i int) openlineage.Name { return lineagetest.Table(fmt.Sprint("in", i%inputs)) }
	for i := range inputs {
		e.Inputs = append(e.Inputs, lineagetest.Dataset{Name: in(i)})
	}
	for o := range outputs {
		d := lineagetest.Dataset{Name: lineagetest.Table(fmt.Sprint("out", o)), Facets: lineagetest.Object{}}
		var entries []lineagetest.Column
		for c := o; c < columns; c += outputs {
			// All name one input, so that the columns tell no output apart and all outputs
			// have the same sources.
			entries = append(entries, lineagetest.Column{Field: fmt.Sprint("f", c), Source: in(0), SourceField: fmt.Sprint("g", c)})
		}
		if entries != nil {
			d.Facets["columnLineage"] = lineagetest.ColumnLineage(entries)
		}
		e.Outputs = append(e.Outputs, d)
	}
	return e.Body()
}

// TestAWideJobIsOneDerivation counts: 500 inputs and 300 outputs are 800 ends of
// one derivation and never 150,000 pairs.
func TestAWideJobIsOneDerivation(t *testing.T) {
	for _, columns := range []int{0, 5_000} {
		events := decode(t, wideJob(columns))
		st := lineage.NewMemory(events[0].Version)
		st.Merge(events[0])
		settle(st)
		up, down, fields := 0, 0, 0
		for range st.Upstream.Scan("", "") {
			up++
		}
		for range st.Downstream.Scan("", "") {
			down++
		}
		for range st.Fields.Scan("", "") {
			fields++
		}
		g := st.Graph()
		if len(g.Derivations) != 1 || up != 300 || down != 500 || fields != columns || len(g.Mappings) != min(columns, 300) {
			t.Errorf("%d columns: %d derivations with %d + %d ends, %d field edges of %d mappings; want 1 with 300 + 500, %d of %d",
				columns, len(g.Derivations), up, down, fields, len(g.Mappings), columns, min(columns, 300))
		}
		for _, d := range g.Derivations {
			if len(d.Inputs) != 500 || len(d.Outputs) != 300 {
				t.Errorf("the derivation has %d inputs and %d outputs", len(d.Inputs), len(d.Outputs))
			}
		}
	}
}

func BenchmarkFoldWideJob(b *testing.B) {
	events := decode(b, wideJob(5_000))
	b.ReportAllocs()
	for b.Loop() {
		lineage.Fold(events[0].Version, events)
	}
}

func BenchmarkSettleWideJob(b *testing.B) {
	events := decode(b, wideJob(5_000))
	b.ReportAllocs()
	for b.Loop() {
		st := lineage.NewMemory(events[0].Version)
		st.Merge(events[0])
		settle(st)
	}
}
