package lineage_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/openlineage"
)

type object = lineagetest.Object

// say is a run event of job J with one run, at a minute.
func say(eventType openlineage.EventType, minute int, e lineagetest.Event) []byte {
	e.Type, e.Run, e.Job = eventType, "r", openlineage.Name{Namespace: "jobs", Name: "J"}
	e.Time = scriptStart.Add(time.Duration(minute) * time.Minute)
	return e.Body()
}

func table(name string, facets object) []lineagetest.Dataset {
	return []lineagetest.Dataset{{Name: lineagetest.Table(name), Facets: facets}}
}

func path(name string, facets object) lineagetest.Dataset {
	return lineagetest.Dataset{Name: openlineage.Name{Namespace: "s3://lake", Name: name}, Facets: facets}
}

func columnsFrom(source string) object {
	n := lineagetest.Table(source)
	return object{"columnLineage": object{"fields": object{
		"x": object{"inputFields": []any{object{"namespace": n.Namespace, "name": n.Name, "field": "a"}}},
	}}}
}

func lifecycle(change string) object {
	return object{"lifecycleStateChange": object{"lifecycleStateChange": change}}
}

// TestFacetsOfPartsAndTombstones holds what facets of partitions, tombstones and
// invalid facets must not do to lineage, in every order and through Settle.
func TestFacetsOfPartsAndTombstones(t *testing.T) {
	tombstone := func(key string, rest object) object {
		f := object{"_deleted": true}
		for k, v := range rest {
			f[k] = v
		}
		return object{key: f}
	}
	streaming := object{"jobType": object{"processingType": "STREAMING", "integration": "X"}}
	gone := tombstone("jobType", object{"processingType": "STREAMING", "integration": "X"})
	snapshots := object{"jobType": object{
		"processingType": "BATCH", "integration": "X",
		"emissionPattern": object{"eventTrigger": "EVENT_BASED", "eventContentMode": "COMPLETE_SNAPSHOT"},
	}}
	withLineage := func(lineage object) object { return object{"jobType": snapshots["jobType"], "lineage": lineage} }
	for _, c := range []struct {
		name   string
		bodies [][]byte
		want   string
	}{
		{"two partitions name their columns", [][]byte{say("COMPLETE", 1, lineagetest.Event{Outputs: []lineagetest.Dataset{
			path("t/dt=1", columnsFrom("A")), path("t/dt=2", columnsFrom("C")),
		}})}, "A>t/column C>t/column"},
		{"two partitions, one an event", [][]byte{
			say("START", 1, lineagetest.Event{Outputs: []lineagetest.Dataset{path("t/dt=1", columnsFrom("A"))}}),
			say("COMPLETE", 2, lineagetest.Event{Outputs: []lineagetest.Dataset{path("t/dt=2", columnsFrom("C"))}}),
		}, "A>t/column C>t/column"},
		{"one partition is dropped, another written", [][]byte{say("COMPLETE", 1, lineagetest.Event{
			Inputs: table("A", nil), Outputs: []lineagetest.Dataset{path("t/dt=1", lifecycle("DROP")), path("t/dt=2", nil)},
		})}, "A>t/job"},
		{"the whole dataset is dropped", [][]byte{say("COMPLETE", 1, lineagetest.Event{
			Inputs: table("A", nil), Outputs: []lineagetest.Dataset{path("t", lifecycle("DROP"))},
		})}, ""},
		{"a drop is taken back", [][]byte{
			say("START", 1, lineagetest.Event{Inputs: table("A", nil), Outputs: table("B", lifecycle("DROP"))}),
			say("COMPLETE", 2, lineagetest.Event{Outputs: table("B", tombstone("lifecycleStateChange", object{"lifecycleStateChange": "DROP"}))}),
		}, "A>B/job"},
		{"a streaming job that failed", [][]byte{
			say("START", 1, lineagetest.Event{JobFacets: streaming, Inputs: table("A", nil), Outputs: table("B", nil)}),
			say("FAIL", 3, lineagetest.Event{}),
		}, "A>B/job"},
		{"a job that is streaming no longer", [][]byte{
			say("START", 1, lineagetest.Event{JobFacets: streaming, Inputs: table("A", nil), Outputs: table("B", nil)}),
			say("RUNNING", 2, lineagetest.Event{JobFacets: gone}),
			say("FAIL", 3, lineagetest.Event{}),
		}, ""},
		{"a snapshot whose newest event has no entry", [][]byte{
			say("START", 1, lineagetest.Event{JobFacets: snapshots, Inputs: table("A", nil), Outputs: table("B", nil)}),
			say("COMPLETE", 2, lineagetest.Event{JobFacets: withLineage(object{"entries": []any{}})}),
		}, "A>B/job"},
		{"a snapshot whose newest event is a tombstone", [][]byte{
			say("START", 1, lineagetest.Event{JobFacets: snapshots, Inputs: table("A", nil), Outputs: table("B", nil)}),
			say("COMPLETE", 2, lineagetest.Event{JobFacets: withLineage(object{"_deleted": true})}),
		}, "A>B/job"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for order := range orders(len(c.bodies)) {
				st := lineage.NewMemory(decoder(t).Version())
				var bodies [][]byte
				for _, i := range order {
					bodies = append(bodies, c.bodies[i])
					st.Merge(decode(t, c.bodies[i])[0])
					settle(st)
				}
				fold := lineage.Fold(decoder(t).Version(), decode(t, bodies...))
				if d := diff(snapshot(t, fold), snapshot(t, st.Graph())); d != "" {
					t.Fatalf("order %v: Settle is not Fold:\n%s", order, d)
				}
				var edges []string
				for e := range fold.CurrentEdges() {
					edges = append(edges, e.Input.Name+">"+e.Output.Name+"/"+string(e.Basis))
				}
				slices.Sort(edges)
				if got := strings.Join(edges, " "); got != c.want {
					t.Errorf("order %v: %q, want %q", order, got, c.want)
				}
			}
		})
	}
}

// TestDeclarationsOfOneEventWithTwoContents: a facet that is invalid by its
// transport fields alone makes two contents of one event at one time.
func TestDeclarationsOfOneEventWithTwoContents(t *testing.T) {
	entry := func(runID any) []byte {
		e := lineagetest.Event{
			Time: scriptStart, Job: openlineage.Name{Namespace: "jobs", Name: "J"}, Inputs: table("A", nil), Outputs: table("B", nil),
			JobFacets: object{"lineage": object{"entries": []any{
				object{"type": "JOB", "runId": runID, "inputs": []any{object{"type": "DATASET", "namespace": "db", "name": "I"}}},
			}}},
		}
		return e.Body()
	}
	events := decode(t, entry(lineagetest.RunID("x")), entry(5))
	if events[0].ID != events[1].ID || events[0].Content == events[1].Content {
		t.Fatal("the events are to be one event with two contents")
	}
	want := snapshot(t, lineage.Fold(events[0].Version, events))
	for _, order := range [][]int{{0, 1}, {1, 0}, {0, 1, 0}} {
		st := lineage.NewMemory(events[0].Version)
		for _, i := range order {
			st.Merge(events[i])
			settle(st)
		}
		if d := diff(want, snapshot(t, st.Graph())); d != "" {
			t.Errorf("order %v: Settle is not Fold:\n%s", order, d)
		}
	}
}

// TestInvalidSymlinksBreakNoLink: a facet that its schema rejects is kept and
// left out of lineage, so the valid one before it still joins.
func TestInvalidSymlinksBreakNoLink(t *testing.T) {
	say := func(minute int, identifier object) []byte {
		e := lineagetest.Event{Time: scriptStart.Add(time.Duration(minute) * time.Minute), Of: &lineagetest.Dataset{
			Name: lineagetest.Table("A"), Facets: object{"symlinks": object{"identifiers": []any{identifier}}},
		}}
		return e.Body()
	}
	valid := object{"namespace": "db", "name": "A2", "type": "TABLE"}
	events := decode(t, say(1, valid), say(2, object{"namespace": "db", "name": "A3"}))
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		st := lineage.NewMemory(events[0].Version)
		for _, i := range order {
			st.Merge(events[i])
			settle(st)
		}
		got := snapshot(t, st.Graph())
		if d := diff(snapshot(t, lineage.Fold(events[0].Version, events)), got); d != "" {
			t.Errorf("order %v: Settle is not Fold:\n%s", order, d)
		}
		if !strings.Contains(got, `"type":"group"`) || !strings.Contains(got, `"invalid":true`) {
			t.Errorf("order %v: the link is gone, or the invalid facet is not marked", order)
		}
	}
}

// TestParentsInACycleAreWarnedOf is the warning of case 26.
func TestParentsInACycleAreWarnedOf(t *testing.T) {
	parent := func(job string) object {
		return object{"parent": object{
			"run": object{"runId": lineagetest.RunID(job)}, "job": object{"namespace": "jobs", "name": job},
		}}
	}
	event := func(job, of string) []byte {
		e := lineagetest.Event{
			Type: "START", Time: scriptStart, Run: job, Job: openlineage.Name{Namespace: "jobs", Name: job}, RunFacets: parent(of),
		}
		return e.Body()
	}
	g := lineage.Fold(decoder(t).Version(), decode(t, event("P", "C"), event("C", "P")))
	for _, a := range g.Attempts {
		if !slices.Contains(a.Warnings, "parents in a cycle") {
			t.Errorf("%s: warnings %q", a.Attempt.Job.Name, a.Warnings)
		}
	}
	if len(g.Attempts) != 2 {
		t.Errorf("%d attempts, want 2", len(g.Attempts))
	}
}

// TestAPseudoDatasetEventMakesNoDataset: dbt's common table expressions are none.
func TestAPseudoDatasetEventMakesNoDataset(t *testing.T) {
	e := lineagetest.Event{Time: scriptStart, Of: &lineagetest.Dataset{Name: lineagetest.Table("x.__dbt__cte__y")}}
	if g := lineage.Fold(decoder(t).Version(), decode(t, e.Body())); len(g.Datasets) != 0 {
		t.Errorf("datasets %v, want none", g.Datasets)
	}
}
