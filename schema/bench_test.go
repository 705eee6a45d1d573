package schema

import (
	"encoding/json"
	"testing"

	"github.com/graphd/graphd/internal/jsontree"
)

// benchEvent is a run event of about 3 KB with the facets that producers send
// most.
const benchEvent = `{
  "eventType": "COMPLETE", "eventTime": "2031-05-04T03:02:01.123456Z",
  "producer": "https://example.org/producers/loader/1.4.2", "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
  "run": {"runId": "0195d3f0-5b7e-7c3a-9a55-0123456789ab", "facets": {
    "nominalTime": {"_producer": "https://example.org/producers/loader/1.4.2", "_schemaURL": "https://openlineage.io/spec/facets/1-0-1/NominalTimeRunFacet.json#/$defs/NominalTimeRunFacet", "nominalStartTime": "2031-05-04T00:00:00Z"},
    "parent": {"_producer": "https://example.org/producers/loader/1.4.2", "_schemaURL": "https://openlineage.io/spec/facets/1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet", "run": {"runId": "0195d3f0-5b7e-7c3a-9a55-ba9876543210"}, "job": {"namespace": "nightly", "name": "load"}},
    "custom": {"_producer": "https://example.org/producers/loader/1.4.2", "_schemaURL": "https://example.org/facets/custom.json", "anything": [1, 2, {"a": null}]}
  }},
  "job": {"namespace": "nightly", "name": "load.orders", "facets": {
    "jobType": {"_producer": "https://example.org/producers/loader/1.4.2", "_schemaURL": "https://openlineage.io/spec/facets/2-0-4/JobTypeJobFacet.json#/$defs/JobTypeJobFacet", "processingType": "BATCH", "integration": "LOADER", "jobType": "TASK"},
    "sql": {"_producer": "https://example.org/producers/loader/1.4.2", "_schemaURL": "https://openlineage.io/spec/facets/1-1-0/SQLJobFacet.json#/$defs/SQLJobFacet", "query": "insert into clean.orders select id, sum(amount) from raw.orders group by id"}
  }},
  "inputs": [{"namespace": "postgres://db:5432", "name": "raw.orders", "facets": {
    "schema": {"_producer": "https://example.org/producers/loader/1.4.2", "_schemaURL": "https://openlineage.io/spec/facets/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet", "fields": [
      {"name": "id", "type": "bigint"}, {"name": "amount", "type": "numeric"}, {"name": "at", "type": "timestamp", "description": "time of the order"}]}
  }, "inputFacets": {
    "inputStatistics": {"_producer": "https://example.org/producers/loader/1.4.2", "_schemaURL": "https://openlineage.io/spec/facets/1-0-0/InputStatisticsInputDatasetFacet.json", "rowCount": 120034, "size": 5533221}}}],
  "outputs": [{"namespace": "postgres://db:5432", "name": "clean.orders", "facets": {
    "columnLineage": {"_producer": "https://example.org/producers/loader/1.4.2", "_schemaURL": "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet", "fields": {
      "id": {"inputFields": [{"namespace": "postgres://db:5432", "name": "raw.orders", "field": "id"}]},
      "total": {"inputFields": [{"namespace": "postgres://db:5432", "name": "raw.orders", "field": "amount", "transformations": [{"type": "DIRECT", "subtype": "AGGREGATION"}]}]}}}
  }}]
}`

func benchRoot(b *testing.B) *jsontree.Value {
	root, _, err := jsontree.Parse([]byte(benchEvent), jsontree.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	return root
}

func BenchmarkValidate(b *testing.B) {
	v, err := New()
	if err != nil {
		b.Fatal(err)
	}
	root := benchRoot(b)
	if r := v.Validate(root); len(r.Violations)+len(r.Warnings)+len(r.Invalid) > 0 {
		b.Fatalf("the benchmark's event is not clean: %+v", r)
	}
	b.SetBytes(int64(len(benchEvent)))
	b.ReportAllocs()
	for b.Loop() {
		v.Validate(root)
	}
}

// BenchmarkDecode is what the same bytes cost encoding/json, for comparison.
func BenchmarkDecode(b *testing.B) {
	b.SetBytes(int64(len(benchEvent)))
	b.ReportAllocs()
	for b.Loop() {
		var doc any
		if err := json.Unmarshal([]byte(benchEvent), &doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := New(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCore compares the wordings of the core, both as the library alone
// reads them, with this package's own walk of the first.
func BenchmarkCore(b *testing.B) {
	root := benchRoot(b)
	doc := root.Any()
	run := func(name string, accepts func() bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !accepts() {
					b.Fatal("rejected")
				}
			}
		})
	}
	v := newValidator(b)
	run("walk", func() bool { return len(v.core(root).Violations) == 0 })
	flat := newLibrary(b, embedded).core
	run("library", func() bool { return flat.Validate(doc) == nil })
	standard := newOracle(b).core
	run("standard", func() bool { return standard.Validate(doc) == nil })
}
