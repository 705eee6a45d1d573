package normalize_test

import (
	"testing"

	"github.com/graphd/graphd/internal/fact"
)

// What is the same event: two deliveries that differ as said, and what the
// second is after the first.
func TestWhatTheSecondDeliveryIs(t *testing.T) {
	const (
		airflow  = "run.facets.airflow."
		dagRun   = "run.facets.airflowDagRun.dagRun."
		spark    = "run.facets.spark" + keyDot + "logicalPlan.plan"
		input    = "inputs.[]"
		customer = `{"namespace": "db", "name": "customers"}`
	)
	for _, c := range []struct {
		name          string
		first, second []string // paths and values put into a run event
		want          fact.Outcome
	}{
		{"nothing differs", nil, nil, fact.Retry},
		{"a later try at another time", []string{"eventTime", `"2026-03-01T05:00:00Z"`, "run.runId", `"0198a000-0000-7000-8000-00000000000a"`},
			[]string{"eventTime", `"2026-03-01T09:00:00Z"`, "run.runId", `"0198a000-0000-7000-8000-00000000000b"`}, fact.Equivalent},
		{"a new version of the producer", []string{"producer", `"https://p/1"`}, []string{"producer", `"https://p/2"`}, fact.Equivalent},
		{"another event type", []string{"eventType", `"START"`}, []string{"eventType", `"COMPLETE"`}, fact.New},
		{"no event type", nil, []string{"eventType", `null`}, fact.New},
		{"another job", []string{"job.name", `"a"`}, []string{"job.name", `"b"`}, fact.New},
		{"another namespace", []string{"job.namespace", `"a"`}, []string{"job.namespace", `"b"`}, fact.New},
		{"another input", []string{input, customer}, []string{input, `{"namespace": "db", "name": "orders"}`}, fact.New},
		{"an input becomes an output", []string{input, customer}, []string{"outputs.[]", customer}, fact.New},
		{"another version read", []string{input, `{"namespace": "db", "name": "a", "facets": {"version": {"datasetVersion": "1"}}}`},
			[]string{input, `{"namespace": "db", "name": "a", "facets": {"version": {"datasetVersion": "2"}}}`}, fact.New},
		{"other statistics", []string{input, `{"namespace": "db", "name": "a", "inputFacets": {"inputStatistics": {"rowCount": 1}}}`},
			[]string{input, `{"namespace": "db", "name": "a", "inputFacets": {"inputStatistics": {"rowCount": 2}}}`}, fact.New},
		{"another parameter value", []string{"run.facets.executionParameters.parameters.[]", `{"key": "vat", "name": "vat", "value": "0.1"}`},
			[]string{"run.facets.executionParameters.parameters.[]", `{"key": "vat", "name": "vat", "value": "0.2"}`}, fact.New},
		{"a field of a facet that nobody knows", []string{"run.facets.acme.x", `1`}, []string{"run.facets.acme.x", `2`}, fact.New},
		{"a facet that nobody knows, new", nil, []string{"job.facets.acme.x", `2`}, fact.New},
		{"a tag of the run", []string{"run.facets.tags.tags.[]", `{"key": "env", "value": "a"}`},
			[]string{"run.facets.tags.tags.[]", `{"key": "env", "value": "b"}`}, fact.New},
		{"the client's version, as a tag", []string{"run.facets.tags.tags.[]", `{"key": "openlineage_client_version", "value": "1.40"}`},
			[]string{"run.facets.tags.tags.[]", `{"key": "openlineage_client_version", "value": "1.41"}`}, fact.Equivalent},
		{"the client's version among tags, new", []string{"run.facets.tags.tags", `[{"key": "env", "value": "a"}]`},
			[]string{"run.facets.tags.tags", `[{"key": "openlineage_client_version", "value": "1"}, {"key": "env", "value": "a"}]`}, fact.Equivalent},
		{"Airflow: another try", []string{airflow + "taskInstance.try_number", `1`}, []string{airflow + "taskInstance.try_number", `2`}, fact.Equivalent},
		{"Airflow: another conf", []string{dagRun + "conf.full", `true`}, []string{dagRun + "conf.full", `false`}, fact.New},
		{"Airflow: another parent in conf", []string{dagRun + "conf.openlineage.parentRunId", `"a"`}, []string{dagRun + "conf.openlineage.parentRunId", `"b"`}, fact.Equivalent},
		{"Airflow: another DAG owner", []string{airflow + "dag.owner", `"a"`}, []string{airflow + "dag.owner", `"b"`}, fact.Redescribed},
		{"Airflow: a parameter of the operator", []string{airflow + "task.bash_command", `"a"`}, []string{airflow + "task.bash_command", `"b"`}, fact.New},
		{"Airflow: the pool of a task", []string{airflow + "task.pool", `"a"`}, []string{airflow + "task.pool", `"b"`}, fact.Redescribed},
		{"Spark: another plan", []string{spark, `"a"`}, []string{spark, `"b"`}, fact.Equivalent},
		{"dbt: another invocation", []string{"run.facets.dbt_run.invocation_id", `"a"`}, []string{"run.facets.dbt_run.invocation_id", `"b"`}, fact.Equivalent},
		{"another owner of the job", []string{"job.facets.ownership.owners.[]", `{"name": "a"}`}, []string{"job.facets.ownership.owners.[]", `{"name": "b"}`}, fact.Redescribed},
		{"another error message", []string{"run.facets.errorMessage.message", `"a"`}, []string{"run.facets.errorMessage.message", `"b"`}, fact.Equivalent},
		{"another storage layer", []string{input, `{"namespace": "db", "name": "a", "facets": {"storage": {"storageLayer": "delta"}}}`},
			[]string{input, `{"namespace": "db", "name": "a", "facets": {"storage": {"storageLayer": "iceberg"}}}`}, fact.Collision},
		{"another integration", []string{"job.facets.jobType.integration", `"A"`}, []string{"job.facets.jobType.integration", `"B"`}, fact.Collision},
		{"batch or streaming", []string{"job.facets.jobType.processingType", `"BATCH"`}, []string{"job.facets.jobType.processingType", `"STREAMING"`}, fact.New},
		{"another parent job", []string{"run.facets.parent", `{"run": {"runId": "r"}, "job": {"namespace": "n", "name": "a"}}`},
			[]string{"run.facets.parent", `{"run": {"runId": "r"}, "job": {"namespace": "n", "name": "b"}}`}, fact.New},
		{"another run of the parent", []string{"run.facets.parent", `{"run": {"runId": "r"}, "job": {"namespace": "n", "name": "a"}}`},
			[]string{"run.facets.parent", `{"run": {"runId": "s"}, "job": {"namespace": "n", "name": "a"}}`}, fact.Equivalent},
		{"a field both drifting and fixed", []string{"job.facets.documentation.description", `"a"`, "job.facets.jobType.jobType", `"A"`},
			[]string{"job.facets.documentation.description", `"b"`, "job.facets.jobType.jobType", `"B"`}, fact.Collision},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect(t, c.want, with(t, runEvent, c.first...), with(t, runEvent, c.second...))
		})
	}
}

// A description belongs to what it describes: two inputs that swap theirs are
// described otherwise, although the set of descriptions is the same.
func TestDescriptionsThatSwapPlacesAreADifference(t *testing.T) {
	two := func(facet, a, b string) string {
		return with(t, runEvent, "inputs", `[
			{"namespace": "db", "name": "a", "facets": {"`+facet+`": {"name": "`+a+`"}}},
			{"namespace": "db", "name": "b", "facets": {"`+facet+`": {"name": "`+b+`"}}}]`)
	}
	expect(t, fact.Collision, two("dataSource", "x", "y"), two("dataSource", "y", "x"))
	expect(t, fact.Redescribed, two("documentation", "x", "y"), two("documentation", "y", "x"))
}

func TestJobAndDatasetEventsHaveNoSlot(t *testing.T) {
	n := normalizer(t)
	for event, want := range map[string]string{
		jobEvent:     `{"event":{"job":{"name":"daily","namespace":"n"}},"kind":"job"}`,
		datasetEvent: `{"event":{"dataset":{"name":"orders","namespace":"db"}},"kind":"dataset"}`,
	} {
		if got := document(t, n, event); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if e := factOf(t, n, event); e.Slot != (fact.Slot{}) || e.Attempt != (fact.Attempt{}) {
			t.Errorf("%s: slot %v of %v", e.Kind, e.Slot, e.Attempt)
		}
	}
}

// A job event says again what was said before: the same ID, whenever it comes.
func TestDeclarationsThatComeBackAreTheSameEvent(t *testing.T) {
	from := func(table, at string) string {
		return with(t, jobEvent, "eventTime", `"`+at+`"`, "inputs.[]", `{"namespace": "db", "name": "`+table+`"}`)
	}
	expect(t, fact.New, from("a", "2026-01-01T00:00:00Z"), from("c", "2026-01-02T00:00:00Z"))
	expect(t, fact.Equivalent, from("a", "2026-01-01T00:00:00Z"), from("a", "2026-01-03T00:00:00Z"))
}

// The event's own kind is identity: a job event is no run event of its job.
func TestKindsOfEventAreTold(t *testing.T) {
	expect(t, fact.New, with(t, jobEvent, "eventTime", `"2026-01-01T00:00:00Z"`), runEvent)
}

// The parts that explain an event are its fields, each in one of them.
func TestExplainSortsFieldsByClass(t *testing.T) {
	event := with(t, runEvent,
		"run.facets.errorMessage.message", `"boom"`,
		"job.facets.ownership.owners.[]", `{"name": "ann"}`,
		"job.facets.jobType", `{"processingType": "BATCH", "integration": "ACME"}`)
	x, err := normalizer(t).Explain(input(t, event))
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		string(x.Document): `{"event":{"eventType":"COMPLETE","job":{"facets":{"jobType":{"processingType":"BATCH"}},"name":"daily","namespace":"n"},` +
			`"run":{"facets":{"nominalTime":{"nominalStartTime":"2026-03-01T00:00:00Z"}}}},"kind":"run",` +
			`"slot":{"rule":"nominal","start":"2026-03-01T00:00:00Z"}}`,
		string(x.Fixed):    `{"job":{"facets":{"jobType":{"integration":"ACME"}}}}`,
		string(x.Drifting): `{"job":{"facets":{"ownership":{"owners":[{"name":"ann"}]}}}}`,
		string(x.Transport): `{"eventTime":"2026-03-01T05:00:00Z","producer":"https://example.com/producer/1",` +
			`"run":{"facets":{"errorMessage":{"message":"boom"}},"runId":"0198a000-0000-7000-8000-00000000000a"},` +
			`"schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"}`,
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
