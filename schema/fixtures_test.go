package schema

import (
	"fmt"
	"testing"

	"github.com/graphd/graphd/internal/jsontree"
)

const facetBase = `"_producer": "https://example.org/p", "_schemaURL": "https://example.org/s"`

// fixtures has, for every typed facet, one body that is valid and some that
// are not, each with the place (below the facet) and the reason to expect.
var fixtures = []struct {
	container Container
	key       string
	valid     string
	invalid   []wrong
}{
	{Run, "environmentVariables", `"environmentVariables": [{"name": "HOME", "value": "/root"}]`, []wrong{
		{`"environmentVariables": [{"name": "HOME"}]`, "/environmentVariables/0", `missing property "value"`},
		{``, "", `missing property "environmentVariables"`}}},
	{Run, "errorMessage", `"message": "disk full", "programmingLanguage": "GO"`, []wrong{
		{`"message": "disk full"`, "", `missing property "programmingLanguage"`}}},
	{Run, "executionParameters", `"parameters": [{"key": "day", "value": "monday"}]`, []wrong{
		{`"parameters": [{"key": "day", "colour": 1}]`, "/parameters/0", `property "colour" not allowed here`},
		{`"parameters": [{"key": "day", "b": 1, "a'\"\\', 'z": 1}]`, "/parameters/0", `property "a'\"\\', 'z" not allowed here`},
		{`"parameters": [{"key": "day", "value": 3}]`, "/parameters/0/value", `expected string, got number 3`}}},
	{Run, "externalQuery", `"externalQueryId": "q1", "source": "warehouse"`, []wrong{
		{`"externalQueryId": "q1", "source": null`, "/source", `expected string, got null`}}},
	{Run, "extractionError", `"totalTasks": 2, "failedTasks": 1, "errors": [{"errorMessage": "odd", "taskNumber": 4}]`, []wrong{
		{`"totalTasks": 2.5, "failedTasks": 1, "errors": []`, "/totalTasks", `expected integer, got number 2.5`}}},
	{Run, "jobDependencies", `"upstream": [{"job": {"namespace": "n", "name": "a"}, "other": 1}], "trigger_rule": "all"`, []wrong{
		{`"downstream": [{"run": {"runId": "x"}}]`, "/downstream/0", `missing property "job"`}}},
	{Run, "nominalTime", `"nominalStartTime": "2031-01-01T00:00:00Z"`, []wrong{
		{`"nominalEndTime": "2031-01-01T00:00:00Z"`, "", `missing property "nominalStartTime"`}}},
	{Run, "parent", `"run": {"runId": "0195d3f0-5b7e-7c3a-9a55-0123456789ab"}, "job": {"namespace": "n", "name": "a", "facets": {"x": {` + facetBase + `}}}`, []wrong{
		{`"run": {"runId": "r", "facets": {"x": {}}}, "job": {"namespace": "n", "name": "a"}`, "/run/facets/x", `missing property "_producer"`},
		{`"run": {"runId": "r"}, "job": {"namespace": "n", "name": "a"}, "root": {"run": {"runId": "r"}}`, "/root", `missing property "job"`}}},
	{Run, "processing_engine", `"version": "3"`, []wrong{
		{`"version": 3`, "/version", `expected string, got number 3`}}},
	{Run, "tags", `"tags": [{"key": "team", "value": "blue", "source": "cli"}]`, []wrong{
		{`"tags": [{"key": "team"}]`, "/tags/0", `missing property "value"`}}},
	{Run, "test", `"tests": [{"name": "no orphans", "status": "pass", "params": {"limit": 3}}]`, []wrong{
		{`"tests": [{"name": "no orphans", "status": "pass", "params": []}]`, "/tests/0/params", `expected object, got array`}}},

	{Job, "documentation", `"description": "copies", "contentType": "text/plain"`, []wrong{
		{`"contentType": "text/plain"`, "", `missing property "description"`}}},
	{Job, "jobType", `"processingType": "BATCH", "integration": "X", "emissionPattern": {"eventTrigger": "t", "eventContentMode": "m", "windowDuration": 1}`, []wrong{
		{`"processingType": "BATCH", "integration": "X", "emissionPattern": {"eventTrigger": "t", "eventContentMode": "m", "windowDuration": 0}`, "/emissionPattern/windowDuration", `must be >= 1, got number 0`}}},
	{Job, "lineage", `"entries": [{"type": "DATASET", "namespace": "n", "name": "d", "inputs": []}, {"type": "JOB", "inputs": [{"type": "JOB"}]}]`, []wrong{
		{``, "", `missing property "entries"`},
		{`"entries": [{"type": "TABLE"}]`, "/entries/0/type", `value must be one of "DATASET", "JOB", got string "TABLE"`},
		{`"entries": [{"type": "DATASET", "name": "d"}]`, "/entries/0", `missing property "namespace"`},
		{`"entries": [{"type": "DATASET", "namespace": "n", "name": "d", "fields": {"f": {"inputs": [{"type": "DATASET", "namespace": "n", "name": 1}]}}}]`, "/entries/0/fields/f/inputs/0/name", `expected string, got number 1`},
		{`"entries": [{"type": "JOB", "name": "j"}]`, "/entries/0", `missing property "namespace", required beside "name"`}}},
	{Job, "ownership", `"owners": [{"name": "anna", "type": "MAINTAINER"}]`, []wrong{
		{`"owners": [{"type": "MAINTAINER"}]`, "/owners/0", `missing property "name"`}}},
	{Job, "sourceCode", `"language": "go", "sourceCode": "package main"`, []wrong{
		{`"language": "go"`, "", `missing property "sourceCode"`}}},
	{Job, "sourceCodeLocation", `"type": "git", "url": "https://example.org/r.git"`, []wrong{
		{`"type": "git", "url": {}`, "/url", `expected string, got object`}}},
	{Job, "sql", `"query": "select 1", "dialect": "ansi"`, []wrong{
		{`"query": ["select 1"]`, "/query", `expected string, got array`}}},
	{Job, "tags", `"tags": []`, []wrong{
		{`"tags": {}`, "/tags", `expected array, got object`}}},

	{Dataset, "catalog", `"framework": "iceberg", "type": "rest", "name": "c", "catalogProperties": {"a": "b"}`, []wrong{
		{`"framework": "iceberg", "type": "rest", "name": "c", "catalogProperties": {"a": 1}`, "/catalogProperties/a", `expected string, got number 1`}}},
	{Dataset, "columnLineage", `"fields": {"a": {"inputFields": [{"namespace": "n", "name": "d", "field": "b", "transformations": [{"type": "DIRECT", "masking": true}]}]}}, "dataset": []`, []wrong{
		{`"dataset": []`, "", `missing property "fields"`},
		{`"fields": {"a/b": {"inputFields": [{"namespace": "n", "name": "d"}]}}`, "/fields/a~1b/inputFields/0", `missing property "field"`}}},
	{Dataset, "dataQualityMetrics", `"rowCount": 1, "columnMetrics": {"a": {"nullCount": 0, "quantiles": {"0.5": 1.5}}}`, []wrong{
		{`"columnMetrics": {"a": {"quantiles": {"0.5": "x"}}}`, "/columnMetrics/a/quantiles/0.5", `expected number, got string "x"`}}},
	{Dataset, "dataSource", `"name": "db", "uri": "postgres://db"`, []wrong{
		{`"uri": false`, "/uri", `expected string, got false`}}},
	{Dataset, "datasetType", `"datasetType": "VIEW"`, []wrong{
		{`"subType": "M"`, "", `missing property "datasetType"`}}},
	{Dataset, "documentation", `"description": ""`, []wrong{
		{`"description": null`, "/description", `expected string, got null`}}},
	{Dataset, "hierarchy", `"hierarchy": [{"type": "DATABASE", "name": "d"}]`, []wrong{
		{`"hierarchy": [{"type": "DATABASE"}]`, "/hierarchy/0", `missing property "name"`}}},
	{Dataset, "lifecycleStateChange", `"lifecycleStateChange": "RENAME", "previousIdentifier": {"namespace": "n", "name": "old"}`, []wrong{
		{`"lifecycleStateChange": "drop"`, "/lifecycleStateChange", `value must be one of "ALTER", "CREATE", "DROP", "OVERWRITE", "RENAME", "TRUNCATE", got string "drop"`}}},
	{Dataset, "lineage", `"inputs": [{"type": "DATASET", "namespace": "n", "name": "d", "field": "f"}], "fields": {"a": {"inputs": []}}`, []wrong{
		{`"fields": {"a": {}}`, "/fields/a", `missing property "inputs"`},
		{`"inputs": [{"namespace": "n", "name": "d"}]`, "/inputs/0", `missing property "type"`}}},
	{Dataset, "ownership", `"owners": []`, []wrong{
		{`"owners": "anna"`, "/owners", `expected array, got string "anna"`}}},
	{Dataset, "schema", `"fields": [{"name": "a", "type": "struct", "fields": [{"name": "b", "ordinal_position": 1}]}]`, []wrong{
		{`"fields": [{"name": "a", "fields": [{"type": "int"}]}]`, "/fields/0/fields/0", `missing property "name"`}}},
	{Dataset, "storage", `"storageLayer": "iceberg"`, []wrong{
		{`"fileFormat": "parquet"`, "", `missing property "storageLayer"`}}},
	{Dataset, "symlinks", `"identifiers": [{"namespace": "n", "name": "a", "type": "TABLE"}]`, []wrong{
		{`"identifiers": [{"namespace": "n", "name": "a"}]`, "/identifiers/0", `missing property "type"`}}},
	{Dataset, "tags", `"tags": [{"key": "pii", "value": "true", "field": "mail"}]`, []wrong{
		{`"tags": [{"key": "pii", "value": true}]`, "/tags/0/value", `expected string, got true`}}},
	{Dataset, "version", `"datasetVersion": "7"`, []wrong{
		{`"datasetVersion": 7`, "/datasetVersion", `expected string, got number 7`}}},

	{Input, "dataQualityAssertions", `"assertions": [{"assertion": "not_null", "success": false, "params": {}}]`, []wrong{
		{`"assertions": [{"assertion": "not_null", "success": "no"}]`, "/assertions/0/success", `expected boolean, got string "no"`}}},
	{Input, "dataQualityMetrics", `"columnMetrics": {}`, []wrong{
		{``, "", `missing property "columnMetrics"`}}},
	{Input, "inputStatistics", `"rowCount": 1e3, "size": 10, "fileCount": 0`, []wrong{
		{`"size": 0.5`, "/size", `expected integer, got number 0.5`}}},
	{Input, "subset", `"inputCondition": {"type": "binary", "operator": "AND", "left": {"type": "location", "locations": ["a"]}, "right": {"type": "compare", "comparison": "EQUAL", "left": {"type": "field", "field": "f"}, "right": {"type": "literal", "value": "v"}}}`, []wrong{
		{`"outputCondition": {"type": "location", "locations": []}`, "", `missing property "inputCondition"`},
		{`"inputCondition": {"type": "nearby"}`, "/inputCondition/type", `value must be one of "location", "partition", "binary", "compare", got string "nearby"`},
		{`"inputCondition": {"type": "partition", "partitions": [{}]}`, "/inputCondition/partitions/0", `missing property "dimensions"`},
		{`"inputCondition": {"type": "compare", "comparison": "EQUAL", "left": {"type": "field", "field": 1}, "right": {"type": "literal", "value": "v"}}`, "/inputCondition/left/field", `expected string, got number 1`}}},

	{Output, "outputStatistics", `"rowCount": 1`, []wrong{
		{`"fileCount": []`, "/fileCount", `expected integer, got array`}}},
	{Output, "subset", `"outputCondition": {"type": "partition", "partitions": [{"dimensions": {"day": "monday"}}]}`, []wrong{
		{`"inputCondition": {"type": "location", "locations": []}`, "", `missing property "outputCondition"`}}},
}

type wrong struct{ body, place, reason string }

// withFacet is a run event with one facet, and the pointer to that facet.
func withFacet(c Container, key, facet string) (event, pointer string) {
	facets := map[Container]string{}
	facets[c] = fmt.Sprintf("%q: %s", key, facet)
	event = fmt.Sprintf(`{"eventTime": "2031-05-04T03:02:01Z", "producer": "https://example.org/p", "schemaURL": "https://example.org/s",
 "run": {"runId": "0195d3f0-5b7e-7c3a-9a55-0123456789ab", "facets": {%s}},
 "job": {"namespace": "n", "name": "j", "facets": {%s}},
 "inputs": [{"namespace": "n", "name": "i", "facets": {%s}, "inputFacets": {%s}}],
 "outputs": [{"namespace": "n", "name": "o", "outputFacets": {%s}}]}`, facets[Run], facets[Job], facets[Dataset], facets[Input], facets[Output])
	place := map[Container]string{
		Run: "/run/facets/", Job: "/job/facets/", Dataset: "/inputs/0/facets/",
		Input: "/inputs/0/inputFacets/", Output: "/outputs/0/outputFacets/",
	}[c]
	return event, place + key
}

// facetText adds the base members to a body.
func facetText(body string) string {
	if body == "" {
		return "{" + facetBase + "}"
	}
	return "{" + facetBase + ", " + body + "}"
}

func parse(t testing.TB, text string) *jsontree.Value {
	t.Helper()
	root, _, err := jsontree.Parse([]byte(text), jsontree.Limits{})
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return root
}

func newValidator(t testing.TB) *Validator {
	t.Helper()
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestFacetFixtures(t *testing.T) {
	v := newValidator(t)
	library := newLibrary(t, embedded)
	seen := map[string]bool{}
	for _, f := range fixtures {
		name := string(f.container) + "/" + f.key
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			text, _ := withFacet(f.container, f.key, facetText(f.valid))
			if r := v.Validate(parse(t, text)); len(r.Violations)+len(r.Invalid)+len(r.Warnings) > 0 {
				t.Errorf("valid facet: %+v", r)
			}
			for _, w := range f.invalid {
				text, pointer := withFacet(f.container, f.key, facetText(w.body))
				root := parse(t, text)
				r := v.Validate(root)
				if got, alone := own(t, v, root), library.verdict(root.Any()); !got.equal(alone) {
					t.Errorf("%s: %s, the library alone: %s", w.body, got, alone)
				}
				if len(r.Violations) > 0 || len(r.Invalid) != 1 {
					t.Errorf("%s: want one invalid facet and no violation of the core: %+v", w.body, r)
					continue
				}
				inv := r.Invalid[0]
				place := root.Lookup(pointer + w.place)
				if inv.Container != f.container || inv.Key != f.key || inv.Pointer != pointer || inv.Value != root.Lookup(pointer) {
					t.Errorf("%s: wrong facet reported: %+v", w.body, inv)
				}
				if !r.IsInvalid(inv.Value) || r.IsInvalid(root) {
					t.Errorf("%s: IsInvalid is wrong", w.body)
				}
				got := inv.Violations[0]
				if want := (Violation{pointer + w.place, int(place.Off), w.reason}); got != want {
					t.Errorf("%s:\n got %+v\nwant %+v", w.body, got, want)
				}
			}
		})
	}
	for _, f := range TypedFacets() {
		if name := string(f.Container) + "/" + f.Key; !seen[name] {
			t.Errorf("%s has no fixture", name)
		}
	}
}
