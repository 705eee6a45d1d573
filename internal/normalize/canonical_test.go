package normalize_test

import (
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
)

// same and differ check pairs of values at one place of a run event.
func same(t *testing.T, path, a, b string) {
	t.Helper()
	expectValues(t, path, a, b, true)
}

func differ(t *testing.T, path, a, b string) {
	t.Helper()
	expectValues(t, path, a, b, false)
}

func expectValues(t *testing.T, path, a, b string, equal bool) {
	t.Helper()
	n := normalizer(t)
	first, second := factOf(t, n, with(t, runEvent, path, a)), factOf(t, n, with(t, runEvent, path, b))
	if (first.ID == second.ID) != equal {
		t.Errorf("%s: %s and %s: one event is %v, want %v", path, a, b, !equal, equal)
	}
}

// facet is a place that no rule speaks of.
const facet = "run.facets.acme"

func TestNullAndEmptyCountAsAbsent(t *testing.T) {
	for _, nothing := range []string{`null`, `{}`, `[]`, `{"x": null}`, `{"x": {"y": []}}`, `[[], {}, [{"z": null}]]`} {
		same(t, facet, `{"k": 1}`, `{"k": 1, "nothing": `+nothing+`}`)
		same(t, facet, `{"_producer": "p"}`, nothing) // a facet of nothing but base members
		same(t, "inputs", `null`, `[]`)
	}
	for _, something := range []string{`""`, `0`, `false`} {
		differ(t, facet, `{"k": 1}`, `{"k": 1, "something": `+something+`}`)
	}
}

func TestArraysKeepNullsInTheirPlaceAndNoEmpties(t *testing.T) {
	same(t, facet, `{"list": [1, {}, 2, []]}`, `{"list": [1, 2]}`)
	same(t, facet, `{"list": [[null]]}`, `{"list": [[null], {}]}`)
	differ(t, facet, `{"list": [1, null, 2]}`, `{"list": [1, 2]}`)
	differ(t, facet, `{"list": [1, null, 2]}`, `{"list": [1, 2, null]}`)
	differ(t, facet, `{"list": [null]}`, `{}`)
}

func TestAnEmptyLineageFacetIsNotAnAbsentOne(t *testing.T) {
	const job, output = "job.facets.lineage", "outputs.[].facets.lineage"
	differ(t, job, `{}`, `null`)
	differ(t, output, `{}`, `null`)
	same(t, job, `{}`, `{"entries": [], "_producer": "p"}`)
	same(t, output, `{}`, `{"fields": {}}`)
	// No upstream is a statement.
	differ(t, output, `{"inputs": []}`, `{}`)
	same(t, output, `{"inputs": null}`, `{}`)
	differ(t, output, `{"fields": {"a": {"inputs": []}}}`, `{"fields": {"a": {}}}`)
	same(t, output, `{"fields": {"a": {}}}`, `{}`)
	const entry = `{"type": "DATASET", "namespace": "db", "name": "t"`
	differ(t, job, `{"entries": [`+entry+`, "inputs": []}]}`, `{"entries": [`+entry+`}]}`)
	differ(t, job, `{"entries": [`+entry+`, "fields": {"a": {"inputs": []}}}]}`, `{"entries": [`+entry+`}]}`)
	// Elsewhere an empty inputs is none.
	same(t, facet, `{"k": 1, "inputs": []}`, `{"k": 1}`)
	same(t, "outputs.[].facets.columnLineage", `{"fields": {"a": {"inputFields": []}}}`, `null`)
}

func TestSetsHaveNeitherOrderNorRepetitions(t *testing.T) {
	const a, b = `{"namespace": "db", "name": "a", "type": "DATASET", "key": "a"}`, `{"name": "b", "namespace": "db", "type": "DATASET", "key": "b"}`
	for _, path := range []string{
		"inputs", "outputs", "run.facets.tags.tags", "run.facets.executionParameters.parameters",
		"run.facets.jobDependencies.upstream", "run.facets.jobDependencies.downstream", "run.facets.test.tests",
		"job.facets.lineage.entries", "job.facets.lineage.entries.[].inputs", "job.facets.lineage.entries.[].inputs.[].transformations",
		"job.facets.lineage.entries.[].fields.x.inputs", "job.facets.lineage.entries.[].fields.x.inputs.[].transformations",
		"inputs.[].facets.symlinks.identifiers", "inputs.[].facets.dataQualityAssertions.assertions",
		"inputs.[].inputFacets.dataQualityAssertions.assertions",
		"outputs.[].facets.columnLineage.dataset", "outputs.[].facets.columnLineage.dataset.[].transformations",
		"outputs.[].facets.columnLineage.fields.x.inputFields", "outputs.[].facets.columnLineage.fields.x.inputFields.[].transformations",
		"outputs.[].facets.lineage.inputs", "outputs.[].facets.lineage.inputs.[].transformations",
		"outputs.[].facets.lineage.fields.x.inputs", "outputs.[].facets.lineage.fields.x.inputs.[].transformations",
	} {
		same(t, path, `[`+a+`,`+b+`]`, `[`+b+`,`+a+`]`)
		same(t, path, `[`+a+`,`+b+`]`, `[`+a+`,`+b+`,`+a+`]`)
		differ(t, path, `[`+a+`,`+b+`]`, `[`+a+`]`)
	}
	// Owners and tags of a job are a set too, of drifting fields.
	for _, path := range []string{"job.facets.ownership.owners", "job.facets.tags.tags", "inputs.[].facets.ownership.owners", "inputs.[].facets.tags.tags"} {
		expect(t, fact.Equivalent, with(t, runEvent, path, `[`+a+`,`+b+`]`), with(t, runEvent, path, `[`+b+`,`+a+`,`+a+`]`))
	}
}

func TestElementsOfASetAreEqualWithoutTheirTransportFields(t *testing.T) {
	const a = `{"type": "JOB", "namespace": "n", "name": "up", "runId": `
	same(t, "outputs.[].facets.lineage.inputs", `[`+a+`"1"},`+a+`"2"}]`, `[`+a+`"3"}]`)
}

func TestOtherArraysKeepTheirOrder(t *testing.T) {
	differ(t, facet, `{"list": [1, 2]}`, `{"list": [2, 1]}`)
	differ(t, facet, `{"list": [1, 1]}`, `{"list": [1]}`)
	differ(t, "outputs.[].facets.schema.fields", `[{"name": "a"}, {"name": "b"}]`, `[{"name": "b"}, {"name": "a"}]`)
}

func TestNumbersAreExact(t *testing.T) {
	for _, equal := range [][]string{
		{`0.1`, `0.10`, `1e-1`, `1.0E-1`, `0.01e1`},
		{`100`, `1e2`, `100.0`, `1E+2`},
		{`0`, `-0`, `0.0`, `-0e5`},
		{`1e21`, `1.0e21`, `1000000000000000000000`},
	} {
		for _, other := range equal[1:] {
			same(t, facet, `{"n": `+equal[0]+`}`, `{"n": `+other+`}`)
		}
	}
	for _, pair := range [][2]string{
		{`9007199254740993`, `9007199254740992`}, {`18446744073709551617`, `18446744073709551616`},
		{`0.1`, `0.10000000000000001`}, {`1e-320`, `1.1e-320`}, {`1`, `"1"`}, {`-1`, `1`},
	} {
		differ(t, facet, `{"n": `+pair[0]+`}`, `{"n": `+pair[1]+`}`)
	}
}

func TestTextIsComposedAndKeepsLoneSurrogates(t *testing.T) {
	same(t, facet, `{"s": "\u00e9"}`, `{"s": "e\u0301"}`)
	same(t, facet, `{"\u00e9": 1}`, `{"e\u0301": 1}`)
	same(t, facet, `{"s": "\ud83d\ude00"}`, `{"s": "😀"}`)
	same(t, facet, `{"s": "\ud800"}`, `{"s": "\uD800"}`)
	differ(t, facet, `{"s": "\ud800"}`, `{"s": "\udfff"}`)
	differ(t, facet, `{"s": "\ud800"}`, `{"s": "\ufffd"}`)
	if doc := document(t, normalizer(t), with(t, runEvent, facet, `{"s": "\uD83D!"}`)); !strings.Contains(doc, `{"s":"\ud83d!"}`) {
		t.Errorf("no escape of the surrogate in %s", doc)
	}
}

func TestMembersHaveNoOrderAndTheLastDuplicateCounts(t *testing.T) {
	n := normalizer(t)
	read := func(f string) string {
		return document(t, n, strings.Replace(runEvent, `"nominalTime":`, `"acme": `+f+`, "nominalTime":`, 1))
	}
	if a, b := read(`{"a": 1, "b": 2}`), read(`{"b": 2,   "a":1}`); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	if a, b := read(`{"a": 1, "a": 2}`), read(`{"a": 2}`); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	// In UTF-16, a surrogate pair sorts below U+FF5E.
	if doc := read("{\"\uff5e\": 1, \"\U0001f600\": 2}"); !strings.Contains(doc, "{\"\U0001f600\":2,\"\uff5e\":1}") {
		t.Errorf("members are not in the order of UTF-16: %s", doc)
	}
}

func TestNominalStartTimeIsAnInstantWhereverItStands(t *testing.T) {
	const midnight = `"2026-03-01T00:00:00Z"`
	for _, spelling := range []string{
		`"2026-03-01T02:00:00+02:00"`, `"2026-02-28T19:00-05:00"`, `"2026-03-01T00:00:00.000Z"`, `"2026-03-01 00:00:00+00"`,
		`"2026-03-01T00:00:00"`, `"2026-03-01T00:00:00Z[Europe/London]"`, `"2026-03-01T01:00:00+01:00[Europe/Paris]"`,
	} {
		same(t, "run.facets.nominalTime.nominalStartTime", midnight, spelling)
		same(t, facet, `{"deep": [{"nominalStartTime": `+midnight+`}]}`, `{"deep": [{"nominalStartTime": `+spelling+`}]}`)
		differ(t, facet, `{"time": `+midnight+`}`, `{"time": `+spelling+`}`)
	}
	differ(t, "run.facets.nominalTime.nominalStartTime", midnight, `"2026-03-01T00:00:00.000000001Z"`)
	differ(t, facet, `{"nominalStartTime": "soon"}`, `{"nominalStartTime": "later"}`) // no times: text as it stands
}
