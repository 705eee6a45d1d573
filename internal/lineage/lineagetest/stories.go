package lineagetest

import "github.com/graphd/graphd/internal/openlineage"

// stories are what producers were seen to tell, each with its variations.
var stories = []func(*generator){
	retries, lateSlot, ancestors, mapped, cleared, streaming, sharedRunID, declarations, drift,
	datedPaths, lifecycle, application, backfill, explicit, lostEnd, queries, copies,
}

// ends is how a run may end: "" never does.
func (g *generator) ending() openlineage.EventType {
	return pick(g, openlineage.Complete, openlineage.Complete, openlineage.Complete, openlineage.Fail, openlineage.Abort, "")
}

// said is one event of a run that reads and writes these tables.
func (g *generator) said(t openlineage.EventType, job openlineage.Name, run string, in, out []string) *Event {
	e := g.event(t, job, run)
	for _, name := range in {
		e.Inputs = append(e.Inputs, Dataset{Name: Table(name), Facets: Object{}})
	}
	for _, name := range out {
		e.Outputs = append(e.Outputs, Dataset{Name: Table(name), Facets: Object{}})
	}
	return e
}

// retries: several tries of one slot, which need not read the same.
func retries(g *generator) {
	job, slot := g.job(), pick(g, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
	for range 1 + g.IntN(3) {
		run := g.run()
		start := g.said(openlineage.Start, job, run, []string{g.table()}, nil)
		start.RunFacets["nominalTime"] = NominalTime(slot)
		g.add(start)
		if end := g.ending(); end != "" {
			e := g.said(end, job, run, nil, []string{g.table()})
			if g.chance(50) {
				e.RunFacets["nominalTime"] = NominalTime(slot)
			}
			g.add(e)
		}
	}
}

// lateSlot: children placed under a parent that is heard from last, or never.
func lateSlot(g *generator) {
	parent, run := g.job(), g.run()
	for range 1 + g.IntN(3) {
		e := g.said(g.eventType(), Job(pick(g, "step1", "step2")), g.run(), []string{g.table()}, []string{g.table()})
		e.Producer = DagsterProducer
		e.RunFacets["parent"] = Parent(parent, run)
		g.add(e)
		if g.chance(30) { // a grandchild
			below := g.said(g.eventType(), Job("below"), g.run(), []string{g.table()}, []string{g.table()})
			below.Producer = pick(g, DagsterProducer, SparkProducer)
			below.RunFacets["parent"] = Parent(e.Job, e.Run)
			g.add(below)
		}
	}
	if g.chance(80) {
		e := g.event(pick(g, openlineage.Start, openlineage.Complete), parent, run)
		e.RunFacets["nominalTime"] = NominalTime("2026-01-01T00:00:00Z")
		g.add(e)
	}
}

// ancestors: a chain of parents, longer than anybody follows or not, that may
// come back to itself; some links are never heard from.
func ancestors(g *generator) {
	length := pick(g, 1, 2, 3, 4, 15, 16, 17, 18, 20)
	back := -1 // where the topmost one's parent is
	if g.chance(50) {
		back = g.IntN(length)
	}
	producer := pick(g, DagsterProducer, DagsterProducer, SparkProducer)
	for _, i := range g.Perm(length) {
		if g.chance(10) {
			continue
		}
		e := g.said(g.ending(), Job(g.short("c", i)), g.short("c", i), []string{g.table()}, []string{pick(g, "A", "B")})
		e.Producer = producer
		if up := i + 1; up < length {
			e.RunFacets["parent"] = Parent(Job(g.short("c", up)), g.short("c", up))
		} else if back >= 0 {
			e.RunFacets["parent"] = Parent(Job(g.short("c", back)), g.short("c", back))
		}
		if g.chance(10) {
			e.RunFacets["nominalTime"] = NominalTime("2026-01-01T00:00:00Z")
		}
		g.add(e)
	}
}

// mapped: instances of a task under one runId or several, some marked by hand,
// with applications below them.
func mapped(g *generator) {
	for day := range 1 + g.IntN(2) {
		g.day(day)
		dagRun, one := g.short("day", day+1), g.chance(50)
		for i := range 1 + g.IntN(4) {
			run := g.short("t", day)
			if !one {
				run += g.short("-", i)
			}
			e := g.said(pick(g, openlineage.Start, openlineage.Complete, openlineage.Fail), Job("T"), run,
				[]string{g.table()}, []string{g.short("F", i)})
			key, facet := Airflow{Dag: "d", RunID: dagRun, Task: "T", Map: i}.Facet()
			e.RunFacets[key] = facet
			e.RunFacets["parent"] = Parent(Job("D"), dagRun)
			g.add(e)
			if g.chance(30) { // by hand: no facet of Airflow
				g.add(g.event(pick(g, openlineage.Complete, openlineage.Fail), Job("T"), run))
			}
			if g.chance(30) {
				below := g.said(openlineage.Complete, Job("W"), g.run(), []string{g.table()}, []string{"M"})
				below.RunFacets["parent"] = Parent(Job("T"), run)
				g.add(below)
			}
		}
		if g.chance(70) {
			g.add(dag(g, openlineage.Complete, dagRun, dagRun))
		}
	}
}

// dag is an event of a DAG's run.
func dag(g *generator, t openlineage.EventType, run, runID string) *Event {
	e := g.event(t, Job("D"), run)
	key, facet := Airflow{Dag: "d", RunID: runID, RunType: pick(g, "", "scheduled")}.Facet()
	e.RunFacets[key] = facet
	return e
}

// cleared: a DAG run that ends and begins again under its runId or a new one.
func cleared(g *generator) {
	for day := range 1 + g.IntN(3) {
		g.day(day)
		runID := g.short("day", day+1)
		run := runID
		for round := range 1 + g.IntN(2) {
			if round > 0 && g.chance(50) {
				run += "b"
			}
			g.add(dag(g, openlineage.Start, run, runID))
			e := g.said(g.ending(), Job("T"), run, []string{g.table()}, []string{pick(g, "A", "M")})
			key, facet := Airflow{Dag: "d", RunID: runID, Task: "T", Map: -1, Owner: pick(g, "a", "b")}.Facet()
			e.RunFacets[key] = facet
			e.RunFacets["parent"] = Parent(Job("D"), run)
			g.add(e)
			if g.chance(60) {
				g.add(dag(g, openlineage.Complete, run, runID))
			}
		}
	}
}

// streaming: a job that runs for hours and says the same again and again.
func streaming(g *generator) {
	job, run, snapshot := g.job(), g.run(), pick(g, "", "", "COMPLETE_SNAPSHOT")
	in, out := g.table(), g.table()
	beats := 2 + g.IntN(8)
	for i := range beats {
		if g.chance(15) {
			in, out = g.table(), g.table()
		}
		t := pick(g, openlineage.Running, openlineage.Running, openlineage.Other)
		switch {
		case i == 0:
			t = openlineage.Start
		case i == beats-1 && g.chance(60):
			t = pick(g, openlineage.Fail, openlineage.Complete, openlineage.Abort)
		}
		e := g.said(t, job, run, []string{in}, []string{out})
		if g.chance(20) {
			e.Inputs, e.Outputs = nil, nil
		}
		e.JobFacets["jobType"] = JobType("STREAMING", snapshot)
		g.clock += 1200
		g.add(e)
	}
}

// sharedRunID: jobs that share one runId, as Dagster's do.
func sharedRunID(g *generator) {
	run := g.run()
	for _, name := range []string{"J", "K", "step1"} {
		e := g.said(g.eventType(), Job(name), run, []string{g.table()}, []string{g.table()})
		e.Producer = pick(g, "", DagsterProducer)
		if name == "step1" {
			e.RunFacets["parent"] = Parent(Job("J"), run)
		}
		g.add(e)
	}
}

// declarations: job and dataset events that come, change and are taken back.
func declarations(g *generator) {
	job, table := g.job(), g.table()
	for range 1 + g.IntN(4) {
		if g.chance(50) {
			e := g.event("", job, "")
			g.describeJob(e)
			if g.chance(80) {
				g.statement(e)
			} else {
				e.JobFacets["lineage"] = Lineage(nil)
			}
			g.add(e)
			continue
		}
		d := Dataset{Name: Table(table), Facets: Object{}}
		g.describe(&d)
		if g.chance(50) {
			d.Facets["columnLineage"] = g.columns(Table(g.table()), Table(g.table()))
		}
		if g.chance(50) {
			d.Facets["lineage"] = g.datasetLineage()
		}
		g.add(&Event{Time: g.time(), Of: &d})
	}
	if g.chance(50) {
		g.add(g.said(openlineage.Complete, job, g.run(), []string{g.table()}, []string{table}))
	}
}

// drift: one event told again with another description, fixed or drifting, or
// with other words of transport.
func drift(g *generator) {
	e := g.said(g.eventType(), g.job(), g.run(), []string{g.table()}, []string{g.table()})
	e.RunFacets["nominalTime"] = NominalTime("2026-01-01T00:00:00Z")
	source, kind := "db://one", "QUERY"
	for range 2 + g.IntN(3) {
		again := *e
		if g.chance(40) {
			again.Run, again.Time = g.run(), g.time()
		}
		if g.chance(30) {
			source, kind = pick(g, "db://u:p@one", "db://one", "db://two"), pick(g, "QUERY", "MODEL")
		}
		again.Inputs = []Dataset{{Name: e.Inputs[0].Name, Facets: Object{"dataSource": Object{"name": "one", "uri": source}}}}
		again.JobFacets = Object{
			"documentation": Object{"description": pick(g, "x", "y")},
			"jobType":       Object{"processingType": "BATCH", "integration": "TEST", "jobType": kind},
		}
		again.RunFacets = Object{
			"nominalTime":  e.RunFacets["nominalTime"],
			"errorMessage": Object{"message": pick(g, "disk full", "killed"), "programmingLanguage": "Go"},
		}
		g.add(&again)
	}
}

// datedPaths: daily runs that read and write another path each day.
func datedPaths(g *generator) {
	job := g.job()
	for day := range 1 + g.IntN(4) {
		g.day(day)
		path := g.short("s3://l/t/2024-01-0", day+1)
		e := g.said(openlineage.Complete, job, g.short("p", day), []string{path}, []string{"W", "s3://l/out/" + path[len("s3://l/t/"):]})
		e.RunFacets["nominalTime"] = NominalTime(g.short("2024-01-0", day+1) + "T00:00:00Z")
		if g.chance(50) {
			e.Outputs[0].Facets["columnLineage"] = ColumnLineage([]Column{{Field: "x", Source: Table(path), SourceField: "f"}})
		}
		g.add(e)
	}
}

// lifecycle: a table is written, renamed, dropped and written again.
func lifecycle(g *generator) {
	job, table := g.job(), pick(g, "A", "B")
	for range 1 + g.IntN(4) {
		e := g.said(g.ending(), job, g.run(), []string{g.table()}, []string{table})
		if change := pick(g, "", "DROP", "RENAME", "TRUNCATE"); change != "" {
			e.Outputs[0].Facets["lifecycleStateChange"] = Lifecycle(change, pick(g, "A", "B", "C"))
		}
		g.add(e)
	}
}

// application: writers of one job name under one application run.
func application(g *generator) {
	for i := range 1 + g.IntN(3) {
		run := g.short("app", i)
		if g.chance(70) {
			g.add(g.event(openlineage.Start, Job("P"), run))
		}
		for range 1 + g.IntN(3) {
			e := g.said(pick(g, g.ending(), openlineage.Complete), Job("W"), g.short("w", g.IntN(6)), []string{g.table()}, []string{"M"})
			e.Producer = SparkProducer
			e.RunFacets["parent"] = Parent(Job("P"), run)
			g.add(e)
		}
		if g.chance(70) {
			g.add(g.event(g.ending(), Job("P"), run))
		}
	}
}

// backfill: runs of past days beside the daily one, under a DAG run or not.
func backfill(g *generator) {
	for i := range 1 + g.IntN(3) {
		runID := g.short("b", i)
		key, facet := Airflow{Dag: "d", RunID: runID, Task: "T", Map: -1, RunType: pick(g, "backfill", "backfill", "scheduled")}.Facet()
		e := g.said(openlineage.Complete, Job("T"), runID, []string{g.table()}, []string{pick(g, "A", "M")})
		e.RunFacets[key] = facet
		if g.chance(50) {
			e.RunFacets["parent"] = Parent(Job("D"), runID)
			up := g.event(g.ending(), Job("D"), runID)
			key, facet := Airflow{Dag: "d", RunID: runID, RunType: "backfill"}.Facet()
			up.RunFacets[key] = facet
			g.add(up)
		}
		g.add(e)
	}
}

// explicit: entries on START and on COMPLETE, with jobs at their ends.
func explicit(g *generator) {
	job, run := g.job(), g.run()
	for _, t := range []openlineage.EventType{openlineage.Start, openlineage.Running, openlineage.Complete} {
		e := g.said(t, job, run, nil, nil)
		if g.chance(70) {
			g.statement(e)
		}
		if g.chance(70) {
			e.JobFacets["lineage"] = g.lineage()
		}
		g.add(e)
	}
}

// lostEnd: children that run still though their parent completed.
func lostEnd(g *generator) {
	parent, run := g.job(), g.run()
	for range 1 + g.IntN(3) {
		e := g.said(pick(g, openlineage.Start, openlineage.Running), Job(pick(g, "W", "X")), g.run(), []string{g.table()}, []string{g.table()})
		e.RunFacets["parent"] = Parent(parent, run)
		g.add(e)
	}
	for range 1 + g.IntN(3) {
		g.add(g.event(pick(g, openlineage.Complete, openlineage.Start, openlineage.Fail), parent, run))
	}
}

// queries: statements under a task, of which one name occurs twice.
func queries(g *generator) {
	task, run := Job("D.T"), g.run()
	for range 2 + g.IntN(3) {
		e := g.said(g.eventType(), Job(pick(g, "D.T.query.1", "D.T.query.2")), g.run(), []string{g.table()}, []string{g.table()})
		e.Producer = AirflowProducer
		e.JobFacets["sql"] = Object{"query": pick(g, "select 1", "select 2")}
		e.RunFacets["parent"] = Parent(task, run)
		g.add(e)
	}
	up := g.event(g.ending(), task, run)
	key, facet := g.airflow("T").Facet()
	up.RunFacets[key] = facet
	g.add(up)
}

// copies: earlier events sent again, as they were or at another time.
func copies(g *generator) {
	if len(g.events) == 0 {
		return
	}
	for range 1 + g.IntN(3) {
		again := *g.events[g.IntN(len(g.events))]
		if g.chance(50) {
			again.Time = g.time()
		}
		g.add(&again)
	}
}
