package lineagetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/graphd/graphd/internal/openlineage"
)

// Stream returns the bodies of a random history of at most maxEvents events, a
// function of rng alone. Names, runs and times come from pools so small that
// they collide. It mixes events drawn at random with stories that producers were
// seen to tell: retries, cleared and mapped runs, late slots and parents,
// backfills, streaming jobs, declarations and corrections of entities. The order
// is that of the stories; no body need be distinct.
func Stream(rng *rand.Rand, maxEvents int) [][]byte {
	g := &generator{Rand: rng}
	n := 1 + rng.IntN(maxEvents)
	// Some streams are all noise, some all stories.
	noise := rng.IntN(5)
	for len(g.events) < n {
		if rng.IntN(4) < noise {
			g.add(g.anyRun())
			continue
		}
		stories[rng.IntN(len(stories))](g)
	}
	bodies := make([][]byte, 0, n)
	for _, e := range g.events[:n] {
		bodies = append(bodies, e.Body())
	}
	return bodies
}

// generator draws from the pools of one stream.
type generator struct {
	*rand.Rand
	events []*Event
	clock  int // seconds; a story goes on from where the one before began
}

// epoch is a time shortly before a full hour, so that events of one story fall
// into several hours.
var epoch = time.Date(2026, 11, 1, 9, 57, 0, 0, time.UTC)

func (g *generator) add(events ...*Event) { g.events = append(g.events, events...) }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// time goes on by a little, by nothing, or back.
func (g *generator) time() time.Time {
	g.clock += pick(g, 0, 0, 60, 60, 60, 180, 3600, -60, -7200)
	return g.at(g.clock)
}

func (g *generator) at(seconds int) time.Time {
	return epoch.Add(time.Duration(seconds) * time.Second)
}

// day begins a day of its own, in order or not.
func (g *generator) day(n int) { g.clock = 86400*n + 60*g.IntN(3) }

func (g *generator) job() openlineage.Name { return Job(pick(g, "J", "K", "L")) }

func (g *generator) run() string { return pick(g, "r1", "r2", "r3", "r4") }

func (g *generator) table() string {
	return pick(g, "A", "B", "C", "D", "E", "s3://l/t/2024-01-01", "s3://l/t/2024-01-02", "s3://l/t", "s.__dbt__cte__x")
}

func (g *generator) eventType() openlineage.EventType {
	return pick(g, openlineage.Start, openlineage.Start, openlineage.Running, openlineage.Other, "",
		openlineage.Complete, openlineage.Complete, openlineage.Complete, openlineage.Fail, openlineage.Abort)
}

// event is a run event without facets.
func (g *generator) event(t openlineage.EventType, job openlineage.Name, run string) *Event {
	return &Event{Type: t, Time: g.time(), Job: job, Run: run, RunFacets: Object{}, JobFacets: Object{}}
}

// anyRun is a run event in which everything is drawn at random.
func (g *generator) anyRun() *Event {
	e := g.event(g.eventType(), g.job(), g.run())
	e.Producer = pick(g, "", "", "", DagsterProducer, SparkProducer, AirflowProducer)
	if g.chance(40) {
		e.RunFacets["parent"] = Parent(g.job(), g.run())
	}
	if g.chance(25) {
		e.RunFacets["nominalTime"] = NominalTime(pick(g, "2026-01-01T00:00:00Z", "2026-01-01T02:00:00+02:00", "2026-01-02T00:00:00Z"))
	}
	if g.chance(25) {
		key, facet := g.airflow(e.Job.Name).Facet()
		e.RunFacets[key] = facet
	}
	if g.chance(10) {
		e.RunFacets["airflow_mappedTask"] = Object{"mapIndex": g.IntN(3) - 1}
	}
	if g.chance(15) {
		e.RunFacets["executionParameters"] = Object{"parameters": []any{Object{"key": "p", "value": pick(g, "0.1", "0.2")}}}
	}
	g.describeJob(e)
	g.statement(e)
	return e
}

func (g *generator) airflow(task string) Airflow {
	return Airflow{
		Dag: "d", RunID: pick(g, "day1", "day2"), Task: pick(g, "", task, task), Map: pick(g, -1, -1, 0, 1),
		RunType: pick(g, "", "scheduled", "scheduled", "backfill"), Owner: pick(g, "", "a", "b"),
	}
}

// describeJob adds facets of the job: its type and what drifts.
func (g *generator) describeJob(e *Event) {
	if g.chance(20) {
		e.JobFacets["jobType"] = JobType(pick(g, "BATCH", "STREAMING", "STREAMING", "SERVICE"), pick(g, "", "", "COMPLETE_SNAPSHOT"))
	}
	if g.chance(10) {
		e.JobFacets["ownership"] = Object{"owners": []any{Object{"name": pick(g, "a", "b")}}}
	}
	if g.chance(10) {
		e.JobFacets["sql"] = Object{"query": pick(g, "select 1", "select 2")}
	}
}

// statement adds inputs, outputs and what they say of lineage.
func (g *generator) statement(e *Event) {
	if g.chance(10) {
		return
	}
	for range pick(g, 0, 1, 1, 2, 3) {
		e.Inputs = append(e.Inputs, g.input())
	}
	for range pick(g, 0, 1, 1, 1, 2, 3) {
		e.Outputs = append(e.Outputs, g.output(e))
	}
	if g.chance(12) {
		e.JobFacets["lineage"] = g.lineage()
	}
}

func (g *generator) input() Dataset {
	d := Dataset{Name: Table(g.table()), Facets: Object{}}
	g.describe(&d)
	return d
}

func (g *generator) output(e *Event) Dataset {
	d := Dataset{Name: Table(g.table()), Facets: Object{}}
	g.describe(&d)
	if g.chance(30) {
		var tables []openlineage.Name
		for _, in := range e.Inputs {
			tables = append(tables, in.Name)
		}
		d.Facets["columnLineage"] = g.columns(append(tables, Table(g.table()))...)
	}
	if g.chance(10) {
		d.Facets["lifecycleStateChange"] = Lifecycle(pick(g, "DROP", "DROP", "TRUNCATE", "CREATE", "RENAME"), pick(g, "", "A", "B"))
	}
	if g.chance(6) {
		d.Facets["lineage"] = g.datasetLineage()
	}
	if g.chance(8) {
		d.Facets["version"] = Object{"datasetVersion": pick(g, "v1", "v2")}
	}
	return d
}

// describe adds facets of a dataset.
func (g *generator) describe(d *Dataset) {
	if g.chance(8) {
		d.Facets["documentation"] = Object{"description": pick(g, "x", "y", "z")}
	}
	if g.chance(8) {
		d.Facets["dataSource"] = Object{"name": pick(g, "one", "two"), "uri": "db://one"}
	}
	if g.chance(6) {
		d.Facets["symlinks"] = Symlinks(pick(g, "A", "B", "S"))
	}
	if g.chance(3) {
		d.Facets["symlinks"] = Deleted(Object{})
	}
	if g.chance(2) {
		d.Facets["documentation"] = Deleted(Object{"description": ""})
	}
}

func (g *generator) columns(sources ...openlineage.Name) Object {
	if g.chance(5) {
		return Deleted(Object{"fields": Object{}})
	}
	var columns []Column
	for range g.IntN(4) {
		columns = append(columns, Column{
			Field: pick(g, "x", "x", "y", ""), Source: sources[g.IntN(len(sources))], SourceField: pick(g, "f", "g"),
		})
	}
	return ColumnLineage(columns)
}

func (g *generator) lineage() Object {
	if g.chance(10) {
		return Deleted(Object{"entries": []any{}})
	}
	entries := []Entry{}
	for range g.IntN(4) {
		entries = append(entries, Entry{Target: g.end(), Inputs: g.ends()})
	}
	if g.chance(20) {
		entries = append(entries, Entry{Target: End{Job: true, Name: g.job()}, Inputs: []End{{Job: true, Name: g.job()}, {Job: true}}})
	}
	return Lineage(entries)
}

func (g *generator) datasetLineage() Object {
	if g.chance(20) {
		return Deleted(Object{})
	}
	return DatasetLineage(g.ends())
}

// ends are nil, none or some.
func (g *generator) ends() []End {
	if g.chance(15) {
		return nil
	}
	ends := []End{}
	for range g.IntN(3) {
		ends = append(ends, g.end())
	}
	return ends
}

func (g *generator) end() End {
	switch g.IntN(8) {
	case 0:
		return End{Job: true}
	case 1:
		return End{Job: true, Name: g.job()}
	}
	return End{Name: Table(g.table())}
}

func (g *generator) short(prefix string, n int) string { return fmt.Sprintf("%s%d", prefix, n) }
