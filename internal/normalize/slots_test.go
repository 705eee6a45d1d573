package normalize_test

import (
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/normalize"
)

const (
	bare          = `{"eventTime": "2026-03-01T05:00:00Z", "run": {"runId": "r1"}, "job": {"namespace": "n", "name": "j"}}`
	nominal       = `{"nominalStartTime": "2026-03-01T02:00:00+02:00", "nominalEndTime": "2026-03-02T00:00:00Z"}`
	airflowTask   = `{"dag": {"dag_id": "shop"}, "dagRun": {"run_id": "manual__1"}, "task": {"task_id": "load.orders"}, "taskInstance": {"map_index": -1}}`
	airflowMapped = `{"dag": {"dag_id": "shop"}, "dagRun": {"run_id": "manual__1"}, "task": {"task_id": "load.orders"}, "taskInstance": {"map_index": 3}}`
	airflowRun    = `{"dag": {"dag_id": "shop"}, "dagRun": {"run_id": "manual__1", "dag_id": "shop"}}`
	parent        = `{"run": {"runId": "P1"}, "job": {"namespace": "n", "name": "parent"}}`

	fAirflow = "run.facets.airflow"
	fDagRun  = "run.facets.airflowDagRun"
	fMapped  = "run.facets.airflow_mappedTask"
	fNominal = "run.facets.nominalTime"
	fParent  = "run.facets.parent"

	dagster = `"https://github.com/OpenLineage/OpenLineage/tree/1.40.1/integration/dagster"`
	dbt     = `"https://github.com/OpenLineage/OpenLineage/tree/1.40.1/integration/dbt"`
	spark   = `"https://github.com/OpenLineage/OpenLineage/tree/1.40.1/integration/spark"`
	airflow = `"https://github.com/apache/airflow/tree/providers-openlineage/2.20.3"`

	// SHA-256 of "select 1", its first 24 bytes.
	selectOne = "822ae07d4783158bc1912bb623e5107cc9002d519e1143a9"
)

// The first rule that an event satisfies gives its slot, and the slot's form in
// the identity document.
func TestSlotOfAnEvent(t *testing.T) {
	for _, c := range []struct {
		name  string
		put   []string
		rule  fact.Rule
		value string
		doc   string
	}{
		{"an Airflow task", []string{fAirflow, airflowTask}, fact.RuleAirflow,
			`["shop","manual__1","load.orders",null]`,
			`{"dagId":"shop","mapIndex":null,"rule":"airflow","runId":"manual__1","taskId":"load.orders"}`},
		{"a mapped Airflow task", []string{fAirflow, airflowMapped}, fact.RuleAirflow,
			`["shop","manual__1","load.orders",3]`,
			`{"dagId":"shop","mapIndex":3,"rule":"airflow","runId":"manual__1","taskId":"load.orders"}`},
		{"a mapped task as Airflow 2 says it", []string{fAirflow, airflowTask, fMapped, `{"mapIndex": 0}`}, fact.RuleAirflow,
			`["shop","manual__1","load.orders",0]`, ""},
		{"an Airflow DAG run", []string{fDagRun, airflowRun}, fact.RuleAirflow,
			`["shop","manual__1"]`, `{"dagId":"shop","rule":"airflow","runId":"manual__1"}`},
		{"a DAG run whose dag has no id", []string{fDagRun, airflowRun, fDagRun + ".dag", `{}`}, fact.RuleAirflow,
			`["shop","manual__1"]`, ""},
		{"Airflow before nominal time: a manual run can reuse an interval", []string{fAirflow, airflowTask, fNominal, nominal}, fact.RuleAirflow,
			`["shop","manual__1","load.orders",null]`, ""},
		{"an Airflow facet without a DAG run id", []string{fAirflow, airflowTask, fAirflow + ".dagRun", `{}`, fNominal, nominal}, fact.RuleNominal,
			`["2026-03-01T00:00:00Z"]`, ""},
		{"an Airflow facet without a task", []string{fAirflow, airflowRun}, fact.RuleRun, `["r1",null]`, ""},
		{"an Airflow facet without a task, beside a DAG run", []string{fAirflow, airflowRun, fDagRun, airflowRun}, fact.RuleAirflow, `["shop","manual__1"]`, ""},
		{"a nominal time", []string{fNominal, nominal}, fact.RuleNominal,
			`["2026-03-01T00:00:00Z"]`, `{"rule":"nominal","start":"2026-03-01T00:00:00Z"}`},
		{"a nominal time before a place", []string{fNominal, nominal, fParent, parent, "producer", dagster}, fact.RuleNominal,
			`["2026-03-01T00:00:00Z"]`, ""},
		{"a nominal time that is none", []string{fNominal + ".nominalStartTime", `"today"`}, fact.RuleRun, `["r1",null]`, ""},
		{"a Dagster step", []string{fParent, parent, "producer", dagster}, fact.RulePlace,
			`[]`, `{"of":[],"parent":{"name":"parent","namespace":"n","runId":"P1"},"rule":"place"}`},
		{"a Dagster step, known by its integration", []string{fParent, parent, "job.facets.jobType.integration", `"Dagster"`}, fact.RulePlace, `[]`, ""},
		{"a Dagster run", []string{"producer", dagster}, fact.RuleRun, `["r1",null]`, `{"mapIndex":null,"rule":"run","runId":"r1"}`},
		{"a dbt node", []string{fParent, parent, "producer", dbt}, fact.RulePlace, `[]`, ""},
		{"dbt itself: several of one nightly attempt", []string{fParent, parent, "producer", dbt, "job.name", `"dbt-run-shop"`}, fact.RuleRun, `["r1",null]`, ""},
		{"a query of an Airflow task", []string{fParent, parent, "producer", airflow, "job.name", `"parent.query.1"`, "job.facets.sql.query", `"select 1"`},
			fact.RulePlace, `["` + selectOne + `"]`,
			`{"of":["` + selectOne + `"],"parent":{"name":"parent","namespace":"n","runId":"P1"},"rule":"place"}`},
		{"a query without its SQL", []string{fParent, parent, "producer", airflow, "job.name", `"parent.query.1"`}, fact.RuleRun, `["r1",null]`, ""},
		{"a child of Airflow that is no query", []string{fParent, parent, "producer", airflow, "job.name", `"parent.query.x"`, "job.facets.sql.query", `"select 1"`},
			fact.RuleRun, `["r1",null]`, ""},
		{"a query under another task", []string{fParent, parent, "producer", airflow, "job.name", `"other.query.1"`, "job.facets.sql.query", `"select 1"`},
			fact.RuleRun, `["r1",null]`, ""},
		{"Spark: one application runs a job many times", []string{fParent, parent, "producer", spark, "job.facets.jobType.integration", `"SPARK"`}, fact.RuleRun, `["r1",null]`, ""},
		{"a task marked by hand, without the Airflow facet", []string{"producer", airflow}, fact.RuleRun, `["r1",null]`, ""},
		{"a parent without a name", []string{fParent, `{"run": {"runId": "P1"}, "job": {"namespace": "n", "name": ""}}`, "producer", dagster}, fact.RuleRun, `["r1",null]`, ""},
		{"a mapped task without its DAG run", []string{fMapped, `{"mapIndex": 4}`}, fact.RuleRun,
			`["r1",4]`, `{"mapIndex":4,"rule":"run","runId":"r1"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, event := normalizer(t), with(t, bare, c.put...)
			if got := factOf(t, n, event).Slot; got != (fact.Slot{Rule: c.rule, Value: c.value}) {
				t.Errorf("slot %s %s, want %s %s", got.Rule, got.Value, c.rule, c.value)
			}
			if doc := document(t, n, event); !strings.HasSuffix(doc, `,"kind":"run","slot":`+c.doc+`}`) && c.doc != "" {
				t.Errorf("document ends otherwise than with %s:\n%s", c.doc, doc)
			}
		})
	}
}

// Attempts of one slot are one event, where they say the same.
func TestAttemptsOfOneSlotSayTheSame(t *testing.T) {
	again := func(event string) string { return with(t, event, "run.runId", `"r2"`) }
	for _, put := range [][]string{
		{fAirflow, airflowTask}, {fDagRun, airflowRun}, {fNominal, nominal}, {fParent, parent, "producer", dagster},
	} {
		event := with(t, bare, put...)
		expect(t, fact.Equivalent, event, again(event))
	}
	expect(t, fact.New, bare, again(bare))
	// The runs of a place's parent are told apart, they may be of two slots.
	placed := with(t, bare, fParent, parent, "producer", dagster)
	expect(t, fact.New, placed, with(t, placed, fParent+".run.runId", `"P2"`))
	// Two queries of one name under one parent.
	query := with(t, bare, fParent, parent, "producer", airflow, "job.name", `"parent.query.1"`, "job.facets.sql.query", `"select 1"`)
	expect(t, fact.Equivalent, query, again(query))
	expect(t, fact.New, query, with(t, query, "job.facets.sql.query", `"select 2"`))
}

func TestARunIDThatIsAUUIDHasNoCase(t *testing.T) {
	const lower, upper = `"0198a000-0000-7000-8000-00000000abcd"`, `"0198A000-0000-7000-8000-00000000ABCD"`
	expect(t, fact.Equivalent, with(t, bare, "run.runId", lower), with(t, bare, "run.runId", upper))
	expect(t, fact.New, with(t, bare, "run.runId", `"scheduled"`), with(t, bare, "run.runId", `"Scheduled"`))
	ref := factOf(t, normalizer(t), with(t, bare, fParent, parent, fParent+".run.runId", upper)).Parent
	if ref.RunID != strings.Trim(lower, `"`) {
		t.Errorf("parent %s", ref.RunID)
	}
}

func TestAttemptHasTheMapIndexThatItsEventNames(t *testing.T) {
	for _, c := range []struct {
		put  []string
		want int
	}{
		{nil, fact.NoMap},
		{[]string{fAirflow, airflowTask}, fact.NoMap}, // -1 is none
		{[]string{fAirflow, airflowMapped}, 3},
		{[]string{fMapped, `{"mapIndex": 2}`}, 2},
		{[]string{fAirflow, airflowMapped, fAirflow + ".taskInstance.map_index", `3.0`}, 3},
		{[]string{fAirflow, airflowMapped, fAirflow + ".taskInstance.map_index", `"3"`}, fact.NoMap},
		{[]string{fAirflow, airflowMapped, fAirflow + ".taskInstance.map_index", `99999999999999999999`}, fact.NoMap},
	} {
		if got := factOf(t, normalizer(t), with(t, bare, c.put...)).Attempt.Map; got != c.want {
			t.Errorf("%v: map index %d, want %d", c.put, got, c.want)
		}
	}
}

func TestParentRootAndBackfillAreRead(t *testing.T) {
	e := factOf(t, normalizer(t), with(t, bare, fParent, parent,
		fParent+".root", `{"run": {"runId": "R1"}, "job": {"namespace": "n", "name": "root"}}`,
		fDagRun, airflowRun, fDagRun+".dagRun.run_type", `"backfill"`))
	if e.Parent.Job.Name != "parent" || e.Parent.RunID != "P1" || e.Root.Job.Name != "root" || e.Root.RunID != "R1" || !e.Backfill {
		t.Errorf("parent %v, root %v, backfill %v", e.Parent, e.Root, e.Backfill)
	}
}

// A facet that its schema rejects finds no slot and no parent.
func TestRejectedFacetsGiveNoSlot(t *testing.T) {
	in := input(t, with(t, bare, fNominal, nominal, fParent, parent))
	rejected := in.Root.At("run", "facets", "nominalTime")
	in.Invalid = func(f *jsontree.Value) bool { return f == rejected }
	e, err := normalizer(t).Event(in)
	if err != nil || e.Slot.Rule != fact.RuleRun || e.Parent.IsZero() {
		t.Errorf("slot %v, parent %v, %v", e.Slot, e.Parent, err)
	}
}

// The tables that are published are copies.
func TestPublishedTablesCannotBeChanged(t *testing.T) {
	before := normalizer(t).Version()
	normalize.ClassTable()[0].Class = normalize.Identity
	normalize.PlaceRules()[0].BySQL = true
	normalize.SetTable()[0].Path = "x"
	if normalizer(t).Version() != before {
		t.Error("a change of a published table changed the rules")
	}
}
