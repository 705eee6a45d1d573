package normalize_test

import (
	"reflect"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

func db(name string) openlineage.Name { return openlineage.Name{Namespace: "db", Name: name} }

func statementOf(t *testing.T, event string) *fact.Statement {
	t.Helper()
	return factOf(t, normalizer(t), event).Statement
}

func expectDeep(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

func TestStatementReadsInputsAndOutputs(t *testing.T) {
	s := statementOf(t, with(t, runEvent,
		"inputs", `[{"namespace": "db", "name": "a", "facets": {"version": {"datasetVersion": "7"}}}, {"namespace": "db", "name": "s.__dbt__cte__x"}]`,
		"outputs", `[{"namespace": "db", "name": "b"}]`))
	expectDeep(t, "inputs", s.Inputs, []fact.DatasetUse{{Dataset: db("a"), Version: &fact.Version{Version: "7"}}})
	expectDeep(t, "outputs", s.Outputs, []fact.DatasetUse{{Dataset: db("b")}})
	if !s.NamesDataset() || s.Lineage != nil || s.Declares != nil {
		t.Errorf("%+v", s)
	}
	if s := statementOf(t, with(t, runEvent, "inputs", `[]`)); s.NamesDataset() || s.Inputs != nil {
		t.Errorf("absent inputs say something: %+v", s)
	}
}

func TestStatementReadsColumnLineage(t *testing.T) {
	columns := func(facet string) *fact.Columns {
		return statementOf(t, with(t, runEvent, "outputs", `[{"namespace": "db", "name": "b", "facets": {"columnLineage": `+facet+`}}]`)).Outputs[0].Columns
	}
	const a = `{"namespace": "db", "name": "a", "field": "x"`
	expectDeep(t, "fields and dataset", columns(`{
		"fields": {
			"total": {"inputFields": [`+a+`, "transformations": [{"type": "DIRECT", "subtype": "AGGREGATION", "description": "sum of today", "masking": false}]},
				{"namespace": "db", "name": "q.__dbt__cte__c", "field": "y"}]},
			"old": {"inputFields": [`+a+`}], "transformationType": "IDENTITY", "transformationDescription": "as it is"}},
		"dataset": [`+a+`, "transformations": [{"type": "INDIRECT", "subtype": "FILTER"}, {"type": "INDIRECT", "subtype": "FILTER"}]}]}`),
		&fact.Columns{Entries: []fact.ColumnEntry{
			{Field: "", Source: db("a"), SourceField: "x", Transformations: `[{"subtype":"FILTER","type":"INDIRECT"}]`},
			{Field: "old", Source: db("a"), SourceField: "x", Transformations: `[{"type":"IDENTITY"}]`},
			{Field: "total", Source: db("a"), SourceField: "x", Transformations: `[{"masking":false,"subtype":"AGGREGATION","type":"DIRECT"}]`},
		}})
	expectDeep(t, "a tombstone", columns(`{"_deleted": true}`), &fact.Columns{Deleted: true})
	// As in the identity document, a facet of nothing is absent.
	for _, nothing := range []string{`{}`, `{"fields": {}}`, `{"fields": {"a": {"inputFields": []}}, "dataset": []}`} {
		expectDeep(t, nothing, columns(nothing), (*fact.Columns)(nil))
	}
	// It does replace an earlier one where it names a source, if only a pseudo-dataset.
	expectDeep(t, "a pseudo-dataset", columns(`{"fields": {"a": {"inputFields": [{"namespace": "db", "name": "__dbt__cte__x", "field": "f"}]}}}`), &fact.Columns{})
	expectDeep(t, "a source without a name", columns(`{"fields": {"a": {"inputFields": [{"namespace": "db", "name": "", "field": "f"}]}}}`), &fact.Columns{})
	if in := statementOf(t, with(t, runEvent, "inputs", `[{"namespace": "db", "name": "a", "facets": {"columnLineage": {"_deleted": true}}}]`)).Inputs[0]; in.Columns != nil {
		t.Error("column lineage of an input was read")
	}
}

func TestStatementReadsTheLineageOfAJob(t *testing.T) {
	job := func(name string) fact.End {
		return fact.End{Job: true, Name: openlineage.Name{Namespace: "n", Name: name}}
	}
	x := statementOf(t, with(t, runEvent, "job.facets.lineage", `{"entries": [
		{"type": "DATASET", "namespace": "db", "name": "b", "inputs": [
			{"type": "DATASET", "namespace": "db", "name": "a"}, {"type": "JOB"}, {"type": "JOB", "namespace": "n", "name": "up"}],
			"fields": {"f": {"inputs": [{"type": "DATASET", "namespace": "db", "name": "c", "field": "g", "transformations": [{"type": "DIRECT"}]}]}}},
		{"type": "JOB", "inputs": [{"type": "DATASET", "namespace": "db", "name": "a", "field": "f"}]},
		{"type": "DATASET", "namespace": "db", "name": "silent"},
		{"type": "DATASET", "namespace": "db", "name": "source", "inputs": []},
		{"type": "DATASET", "namespace": "db", "name": "x.__dbt__cte__y", "inputs": []}]}`)).Lineage
	expectDeep(t, "entries", x, &fact.Explicit{Entries: []fact.ExplicitEntry{
		{
			Target: fact.End{Name: db("b")}, Says: true,
			Sources: []fact.End{{Name: db("a")}, {Name: db("c")}, job("daily"), job("up")},
			Columns: []fact.ColumnEntry{{Field: "f", Source: db("c"), SourceField: "g", Transformations: `[{"type":"DIRECT"}]`}},
		},
		{Target: fact.End{Name: db("silent")}},
		{Target: fact.End{Name: db("source")}, Says: true},
		{Target: job("daily"), Says: true, Sources: []fact.End{{Name: db("a")}}},
	}})
	expectDeep(t, "empty", statementOf(t, with(t, runEvent, "job.facets.lineage", `{}`)).Lineage, &fact.Explicit{})
	expectDeep(t, "a tombstone", statementOf(t, with(t, runEvent, "job.facets.lineage",
		`{"_deleted": true, "entries": [{"type": "JOB", "inputs": []}]}`)).Lineage, &fact.Explicit{Deleted: true})
	expectDeep(t, "absent", statementOf(t, runEvent).Lineage, (*fact.Explicit)(nil))
}

func TestStatementReadsTheLineageOfADataset(t *testing.T) {
	of := func(facet string) *fact.Explicit {
		return statementOf(t, with(t, runEvent, "outputs", `[{"namespace": "db", "name": "b", "facets": {"lineage": `+facet+`}}]`)).Outputs[0].Lineage
	}
	entry := func(says bool, sources ...fact.End) *fact.Explicit {
		return &fact.Explicit{Entries: []fact.ExplicitEntry{{Target: fact.End{Name: db("b")}, Says: says, Sources: sources}}}
	}
	expectDeep(t, "inputs", of(`{"inputs": [{"type": "DATASET", "namespace": "db", "name": "a"}]}`), entry(true, fact.End{Name: db("a")}))
	expectDeep(t, "no upstream", of(`{"inputs": []}`), entry(true))
	expectDeep(t, "nothing said", of(`{}`), entry(false))
	expectDeep(t, "a tombstone", of(`{"_deleted": true}`), &fact.Explicit{Deleted: true})
	expectDeep(t, "sources in fields count", of(`{"fields": {"f": {"inputs": [{"type": "DATASET", "namespace": "db", "name": "a"}]}}}`).Entries[0].Sources,
		[]fact.End{{Name: db("a")}})
}

func TestStatementReadsLifecycleAndJobType(t *testing.T) {
	lifecycle := func(facet string) *fact.Lifecycle {
		return statementOf(t, with(t, runEvent, "outputs", `[{"namespace": "db", "name": "b", "facets": {"lifecycleStateChange": `+facet+`}}]`)).Outputs[0].Lifecycle
	}
	expectDeep(t, "drop", lifecycle(`{"lifecycleStateChange": "drop"}`), &fact.Lifecycle{Change: "DROP"})
	expectDeep(t, "rename", lifecycle(`{"lifecycleStateChange": "RENAME", "previousIdentifier": {"namespace": "db", "name": "old"}}`),
		&fact.Lifecycle{Change: "RENAME", Previous: db("old")})
	for facet, want := range map[string]*fact.JobType{
		`{"processingType": "BATCH", "integration": "SPARK", "jobType": "QUERY"}`:                   {},
		`{"processingType": "streaming", "integration": "FLINK"}`:                                   {Continuous: true},
		`{"processingType": "BATCH", "jobType": "SERVICE"}`:                                         {Continuous: true},
		`{"processingType": "BATCH", "emissionPattern": {"eventContentMode": "COMPLETE_SNAPSHOT"}}`: {Snapshot: true},
	} {
		expectDeep(t, facet, statementOf(t, with(t, runEvent, "job.facets.jobType", facet)).JobType, want)
	}
	expectDeep(t, "no jobType", statementOf(t, runEvent).JobType, (*fact.JobType)(nil))
}

// A dataset event declares for its dataset, if it says anything of lineage.
func TestDatasetEventsDeclare(t *testing.T) {
	expectDeep(t, "nothing", statementOf(t, with(t, datasetEvent, "dataset.facets.documentation.description", `"d"`)).Declares, (*fact.DatasetUse)(nil))
	use := statementOf(t, with(t, datasetEvent, "dataset.facets.lineage.inputs", `[{"type": "DATASET", "namespace": "db", "name": "a"}]`)).Declares
	if use == nil || use.Dataset != db("orders") || len(use.Lineage.Entries) != 1 {
		t.Errorf("declares %+v", use)
	}
	use = statementOf(t, with(t, datasetEvent, "dataset.facets.columnLineage.fields.f.inputFields.[]", `{"namespace": "db", "name": "a", "field": "g"}`)).Declares
	if use == nil || len(use.Columns.Entries) != 1 {
		t.Errorf("declares %+v", use)
	}
}

func TestFacetsOfEntities(t *testing.T) {
	facets := factOf(t, normalizer(t), with(t, runEvent,
		"job.facets", `{"ownership": {"_producer": "p", "owners": [{"name": "ann"}]}, "lineage": {}, "airflow": {"_deleted": true}, "empty": {"x": []}}`,
		"inputs", `[{"namespace": "db", "name": "a", "facets": {"schema": {"fields": [{"name": "f"}]}, "version": {"datasetVersion": "1"},
			"symlinks": {"identifiers": [{"namespace": "hive", "name": "z", "type": "T"}, {"namespace": "hive", "name": "y", "type": "T"}]}}}]`,
		"outputs", `[{"namespace": "db", "name": "s.__dbt__cte__x", "facets": {"schema": {"fields": [{"name": "f"}]}}}]`)).Facets
	job, a := fact.JobKey(openlineage.Name{Namespace: "n", Name: "daily"}), fact.DatasetKey(db("a"))
	expectDeep(t, "facets", facets, []fact.EntityFacet{
		{Kind: fact.JobEntity, Entity: job, Key: "airflow"}, // a tombstone
		{Kind: fact.JobEntity, Entity: job, Key: "ownership", Value: `{"owners":[{"name":"ann"}]}`},
		{Kind: fact.DatasetEntity, Entity: a, Key: "schema", Value: `{"fields":[{"name":"f"}]}`},
		{
			Kind: fact.DatasetEntity, Entity: a, Key: "symlinks",
			Value:    `{"identifiers":[{"name":"y","namespace":"hive","type":"T"},{"name":"z","namespace":"hive","type":"T"}]}`,
			Symlinks: []openlineage.Name{{Namespace: "hive", Name: "y"}, {Namespace: "hive", Name: "z"}},
		},
	})
}

// A facet that its schema rejects says nothing of lineage. The ID does not hang
// on that, the content digest does: what was understood otherwise is a
// collision, not the same again.
func TestRejectedFacetsAreLeftOutOfLineage(t *testing.T) {
	n := normalizer(t)
	event := with(t, runEvent, "job.facets.jobType", `{"processingType": "STREAMING"}`, "job.facets.lineage", `{"entries": []}`,
		"outputs", `[{"namespace": "db", "name": "b", "facets": {
			"columnLineage": {"fields": {"f": {"inputFields": [{"namespace": "db", "name": "a", "field": "g"}]}}},
			"lineage": {"inputs": []}, "lifecycleStateChange": {"lifecycleStateChange": "DROP"},
			"version": {"datasetVersion": "1"}, "symlinks": {"identifiers": [{"namespace": "h", "name": "b"}]}}}]`)
	valid := factOf(t, n, event)
	for _, path := range [][]string{{"job", "facets", "jobType"}, {"job", "facets", "lineage"}} {
		expectLeftOut(t, event, valid, func(root *jsontree.Value) *jsontree.Value { return root.At(path...) })
	}
	for _, key := range []string{"columnLineage", "lineage", "lifecycleStateChange", "version", "symlinks"} {
		expectLeftOut(t, event, valid, func(root *jsontree.Value) *jsontree.Value {
			return root.Get("outputs").Items[0].Value.At("facets", key)
		})
	}
}

func expectLeftOut(t *testing.T, event string, valid *fact.Event, facet func(root *jsontree.Value) *jsontree.Value) {
	t.Helper()
	in := input(t, event)
	rejected := facet(in.Root)
	in.Invalid = func(f *jsontree.Value) bool { return f == rejected }
	e, err := normalizer(t).Event(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := outcomeOf(valid, e); got != fact.Collision {
		t.Errorf("%s: is %s", jsontree.AppendCanonical(nil, rejected), got)
	}
	if reflect.DeepEqual(valid.Statement, e.Statement) && reflect.DeepEqual(valid.Facets, e.Facets) {
		t.Errorf("%s: was read", jsontree.AppendCanonical(nil, rejected))
	}
}
