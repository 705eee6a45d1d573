package schema

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/graphd/graphd/internal/jsontree"
)

const (
	head = `"eventTime": "2031-05-04T03:02:01Z", "producer": "https://example.org/p", "schemaURL": "https://example.org/s"`
	run  = `"run": {"runId": "0195d3f0-5b7e-7c3a-9a55-0123456789ab"}`
	job  = `"job": {"namespace": "n", "name": "j"}`
	ds   = `"dataset": {"namespace": "n", "name": "d"}`
)

// TestCore states which documents are events and what is said about others:
// the kind, then "pointer: reason" of each violation.
func TestCore(t *testing.T) {
	tests := map[string]struct {
		doc  string
		kind EventKind
		want []string
	}{
		"run event":     {`{` + head + `,` + run + `,` + job + `}`, RunEvent, nil},
		"job event":     {`{` + head + `,` + job + `}`, JobEvent, nil},
		"dataset event": {`{` + head + `,` + ds + `}`, DatasetEvent, nil},

		"unknown members are nobody's business": {`{` + head + `,` + job + `,"extra": {"a": [null]}, "dataset2": 1}`, JobEvent, nil},
		"run and dataset is a dataset event":    {`{` + head + `,` + run + `,` + ds + `}`, DatasetEvent, nil},
		"all three is a run event":              {`{` + head + `,` + run + `,` + job + `,"dataset": 1}`, RunEvent, nil},
		"job beside a broken dataset":           {`{` + head + `,` + job + `,"dataset": {}}`, JobEvent, nil},
		"dataset beside a broken job":           {`{` + head + `,"job": {},` + ds + `}`, DatasetEvent, nil},
		"dataset beside broken inputs":          {`{` + head + `,` + job + `,"inputs": null,` + ds + `}`, DatasetEvent, nil},
		"job and dataset":                       {`{` + head + `,` + job + `,` + ds + `}`, 0, []string{`: both "job" and "dataset": a job event and a dataset event in one; send two events`}},
		"job and dataset, both broken":          {`{` + head + `,"job": 1,"dataset": 2}`, JobEvent, []string{`/job: expected object, got number 1`}},

		"array":                                {`[]`, 0, []string{`: expected object, got array`}},
		"null":                                 {`null`, 0, []string{`: expected object, got null`}},
		"string":                               {`"x"`, 0, []string{`: expected object, got string "x"`}},
		"no member":                            {`{}`, 0, []string{`: not an OpenLineage event: none of "run" with "job", "job", "dataset"`}},
		"run alone":                            {`{` + head + `,` + run + `}`, RunEvent, []string{`: missing property "job"`}},
		"null run":                             {`{` + head + `,"run": null,` + job + `}`, RunEvent, []string{`/run: expected object, got null`}},
		"no head":                              {`{` + job + `}`, JobEvent, []string{`: missing property "eventTime"`, `: missing property "producer"`, `: missing property "schemaURL"`}},
		"empty run":                            {`{` + head + `,"run": {},` + job + `}`, RunEvent, []string{`/run: missing property "runId"`}},
		"event type":                           {`{` + head + `,"eventType": "start",` + run + `,` + job + `}`, RunEvent, []string{`/eventType: value must be one of "START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER", got string "start"`}},
		"event type of a job event is unknown": {`{` + head + `,"eventType": "start",` + job + `}`, JobEvent, nil},

		"null inputs":                  {`{` + head + `,` + job + `,"inputs": null}`, JobEvent, []string{`/inputs: expected array, got null`}},
		"null input":                   {`{` + head + `,` + job + `,"inputs": [null]}`, JobEvent, []string{`/inputs/0: expected object, got null`}},
		"null facets":                  {`{` + head + `,` + job + `,"outputs": [{"namespace": "n", "name": "o", "facets": null}]}`, JobEvent, []string{`/outputs/0/facets: expected object, got null`}},
		"null facet":                   {`{` + head + `,` + job + `,"outputs": [{"namespace": "n", "name": "o", "outputFacets": {"x": null}}]}`, JobEvent, []string{`/outputs/0/outputFacets/x: expected object, got null`}},
		"facet of no one":              {`{` + head + `,` + job + `,"inputs": [{"namespace": "n", "name": "o", "inputFacets": {"x": {"_schemaURL": 1}}}]}`, JobEvent, []string{`/inputs/0/inputFacets/x: missing property "_producer"`, `/inputs/0/inputFacets/x/_schemaURL: expected string, got number 1`}},
		"facets elsewhere":             {`{` + head + `,` + job + `,"outputs": [{"namespace": "n", "name": "o", "inputFacets": 3}]}`, JobEvent, nil},
		"unknown facet":                {`{` + head + `,"job": {"namespace": "n", "name": "j", "facets": {"my~facet/": {` + facetBase + `, "a": [1, {}]}}}}`, JobEvent, nil},
		"pointer escapes":              {`{` + head + `,"job": {"namespace": "n", "name": "j", "facets": {"my~ facet/%41": {}}}}`, JobEvent, []string{`/job/facets/my~0 facet~1%41: missing property "_producer"`, `/job/facets/my~0 facet~1%41: missing property "_schemaURL"`}},
		"deleted in job":               {`{` + head + `,"job": {"namespace": "n", "name": "j", "facets": {"x": {` + facetBase + `, "_deleted": "yes"}}}}`, JobEvent, []string{`/job/facets/x/_deleted: expected boolean, got string "yes"`}},
		"deleted in input":             {`{` + head + `,` + job + `,"inputs": [{"namespace": "n", "name": "o", "inputFacets": {"x": {` + facetBase + `, "_deleted": "yes"}}}]}`, JobEvent, nil},
		"schemaURL of another version": {`{"eventTime": "2031-05-04T03:02:01Z", "producer": "https://example.org/p", "schemaURL": "https://openlineage.io/spec/1-0-5/OpenLineage.json#/$defs/JobEvent",` + run + `,` + job + `}`, RunEvent, nil},
	}
	v := newValidator(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := parse(t, test.doc)
			r := v.Validate(root)
			var got []string
			for _, x := range r.Violations {
				got = append(got, x.Pointer+": "+x.Reason)
				if want := int(root.Lookup(x.Pointer).Off); x.Offset != want {
					t.Errorf("%s has offset %d, want %d", x.Pointer, x.Offset, want)
				}
			}
			if r.Kind != test.kind || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%s\n got %v %q\nwant %v %q", test.doc, r.Kind, got, test.kind, test.want)
			}
		})
	}
	if r := v.Validate(nil); len(r.Violations) != 1 {
		t.Errorf("nil: %+v", r)
	}
}

func TestDispatchByContainer(t *testing.T) {
	v := newValidator(t)
	// documentation is typed in job and dataset, dataQualityMetrics in dataset
	// and input, lineage differs between job and dataset.
	for _, test := range []struct {
		container    Container
		key, body    string
		wantInvalid  bool
		wantRejected bool
	}{
		{Run, "documentation", ``, false, false},
		{Job, "documentation", ``, true, false},
		{Dataset, "documentation", ``, true, false},
		{Dataset, "dataQualityMetrics", ``, true, false},
		{Input, "dataQualityMetrics", ``, true, false},
		{Output, "dataQualityMetrics", ``, false, false},
		{Dataset, "inputStatistics", `"size": "x"`, false, false},
		{Input, "inputStatistics", `"size": "x"`, true, false},
		{Dataset, "lineage", ``, false, false},
		{Job, "lineage", ``, true, false},
		{Run, "lineage", ``, false, false},
		{Job, "SQL", ``, false, false},
		// _deleted comes before the type, in the containers that have it.
		{Job, "sql", `"_deleted": true`, false, false},
		{Job, "sql", `"_deleted": false`, true, false},
		{Job, "sql", `"_deleted": "true"`, false, true},
		{Dataset, "columnLineage", `"_deleted": true, "fields": 3`, false, false},
		{Run, "parent", `"_deleted": true`, true, false},
		{Input, "dataQualityMetrics", `"_deleted": true`, true, false},
	} {
		text, _ := withFacet(test.container, test.key, facetText(test.body))
		r := v.Validate(parse(t, text))
		if len(r.Invalid) > 0 != test.wantInvalid || len(r.Violations) > 0 != test.wantRejected {
			t.Errorf("%s/%s {%s}: %+v", test.container, test.key, test.body, r)
		}
	}
	// What the base facet rules refuse is the core's business, tombstone or not.
	text, _ := withFacet(Job, "sql", `{"_deleted": true}`)
	if r := v.Validate(parse(t, text)); len(r.Violations) != 2 {
		t.Errorf("a tombstone without base members: %+v", r)
	}
}

func TestFormatsWarn(t *testing.T) {
	v := newValidator(t)
	doc := `{"eventTime": "yesterday", "producer": "me", "schemaURL": "https://example.org/s",
"run": {"runId": "1", "facets": {
  "nominalTime": {"_producer": "me", "_schemaURL": "https://example.org/s", "nominalStartTime": "2031-01-01 00:00"}}},
"job": {"namespace": "n", "name": "j", "facets": {
  "lineage": {` + facetBase + `, "entries": [{"type": "JOB", "runId": "2", "inputs": [{"type": "JOB", "runId": "3"}, {"type": "DATASET", "namespace": "n", "name": "d", "runId": "4"}]}]}}}}`
	root := parse(t, doc)
	r := v.Validate(root)
	if len(r.Violations)+len(r.Invalid) > 0 {
		t.Fatalf("formats must only warn: %+v", r)
	}
	var got []string
	for _, w := range r.Warnings {
		got = append(got, w.Pointer+": "+w.Reason)
		if root.Lookup(w.Pointer).Off != int32(w.Offset) {
			t.Errorf("%s: wrong offset %d", w.Pointer, w.Offset)
		}
	}
	want := []string{
		`/eventTime: not a valid date-time: string "yesterday"`,
		`/producer: not a valid uri: string "me"`,
		`/run/runId: not a valid uuid: string "1"`,
		`/run/facets/nominalTime/_producer: not a valid uri: string "me"`,
		`/run/facets/nominalTime/nominalStartTime: not a valid date-time: string "2031-01-01 00:00"`,
		`/job/facets/lineage/entries/0/runId: not a valid uuid: string "2"`,
		`/job/facets/lineage/entries/0/inputs/0/runId: not a valid uuid: string "3"`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// A document of another kind of wrong keeps both apart.
	text, _ := withFacet(Run, "nominalTime", `{"_producer": "me", "_schemaURL": "x", "nominalEndTime": "y"}`)
	if r := v.Validate(parse(t, text)); len(r.Invalid) != 1 || len(r.Warnings) != 2 {
		t.Errorf("%+v", r)
	}
}

// TestNumbers: no number may cost more than its text, or stop the program.
func TestNumbers(t *testing.T) {
	v := newValidator(t)
	for number, valid := range map[string]bool{
		"0": true, "-1": true, "1e3": true, "1.0": true, "1e400": true, "-1e400": true,
		"123456789012345678901234567890": true, "0.5": false, "1.5e-7": false, "NaN": false, "-Infinity": false,
	} {
		text, _ := withFacet(Output, "outputStatistics", facetText(`"rowCount": `+number))
		if r := v.Validate(parse(t, text)); len(r.Violations) > 0 || len(r.Invalid) == 0 != valid {
			t.Errorf("rowCount %s: %+v", number, r)
		}
	}
}

func TestReportsAreBounded(t *testing.T) {
	v := newValidator(t)
	size := 400_000
	if raceEnabled {
		size /= 8
	}
	long := strings.Repeat("é\x7f", size/2)
	many := func(element string) string {
		return "[" + strings.Repeat(element+",", size) + element + "]"
	}
	members := func(value string) string {
		var b strings.Builder
		b.WriteString("{")
		for i := range size / 2 {
			fmt.Fprintf(&b, `"%d":%s,`, i, value)
		}
		return b.String() + `"end":` + value + "}"
	}
	facet := func(c Container, key, body string) string {
		text, _ := withFacet(c, key, facetText(body))
		return text
	}
	for name, doc := range map[string]string{
		"inputs":        `{` + head + `,` + job + `,"inputs":` + many("0") + `}`,
		"datasets":      `{` + head + `,` + job + `,"outputs":` + many("{}") + `}`,
		"facets":        `{` + head + `,"job":{"namespace":"n","name":"j","facets":` + members("0") + `}}`,
		"base members":  `{` + head + `,"job":{"namespace":"n","name":"j","facets":` + members("{}") + `}}`,
		"schema":        facet(Dataset, "schema", `"fields":`+many("0")),
		"nested schema": facet(Dataset, "schema", `"fields": [{"name": "a", "fields": `+many("{}")+`}]`),
		"deep schema": facet(Dataset, "schema", `"fields": `+strings.Repeat(`[{"name":"a","fields":`, 200)+
			"["+strings.Repeat("0,", 1200)+"0]"+strings.Repeat(`}]`, 200)),
		"deeper schema": facet(Dataset, "schema", `"fields": `+strings.Repeat(`[{"name":"a","fields":`, 200)+
			many("0")+strings.Repeat(`}]`, 200)),
		"columnLineage": facet(Dataset, "columnLineage", `"fields":`+members("{}")),
		"lineage":       facet(Job, "lineage", `"entries": [{"type": "DATASET", "namespace": "n", "name": "d", "fields": `+members("{}")+`}]`),
		"subset":        facet(Input, "subset", `"inputCondition": {"type": "location", "locations": `+many("0")+`}`),
		"parameters":    facet(Run, "executionParameters", `"parameters": [`+members(`0`)+`]`),
		"text":          `{` + head + `,"eventType":"` + long + `",` + run + `,` + job + `}`,
		"keys":          `{` + head + `,"job":{"namespace":"n","name":"j","facets":{"` + long + `":{"_producer":"` + long + `"}}}}`,
		"formats":       `{"eventTime":"` + long + `","producer":"` + long + `","schemaURL":"x",` + job + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			root := parse(t, doc)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := v.Validate(root)
			runtime.ReadMemStats(&after)
			// The library copies a long string some times to quote it.
			if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20+20*uint64(len(doc)) {
				t.Errorf("allocated %d KB for a document of %d KB", used>>10, len(doc)>>10)
			}
			lists := [][]Violation{r.Violations, r.Warnings}
			for _, inv := range r.Invalid {
				lists = append(lists, inv.Violations)
			}
			total := 0
			for _, list := range lists {
				total += len(list)
				if len(list) > maxViolations {
					t.Errorf("%d violations", len(list))
				}
				for _, x := range list {
					if len(x.Pointer) > 1100 || len(x.Reason) > 700 {
						t.Errorf("pointer of %d bytes, reason of %d", len(x.Pointer), len(x.Reason))
					}
				}
			}
			if total == 0 {
				t.Error("nothing reported")
			}
		})
	}
}

// TestSameReportEveryTime: the library walks maps in random order.
func TestSameReportEveryTime(t *testing.T) {
	v := newValidator(t)
	var inputs []string
	for i := range 60 {
		inputs = append(inputs, fmt.Sprintf(`{"namespace": %d, "facets": {"a": {}, "b": 1, "schema": []}}`, i))
	}
	root := parse(t, `{`+head+`,`+job+`,"inputs": [`+strings.Join(inputs, ",")+`]}`)
	first := v.Validate(root)
	if len(first.Violations) != maxViolations {
		t.Fatalf("%d violations", len(first.Violations))
	}
	for range 20 {
		if again := v.Validate(root); !reflect.DeepEqual(first, again) {
			t.Fatalf("\n%+v\n%+v", first, again)
		}
	}
}

func TestManyInvalidFacets(t *testing.T) {
	v := newValidator(t)
	var inputs []string
	for range maxDetailFacets + 10 {
		inputs = append(inputs, `{"namespace": "n", "name": "d", "facets": {"symlinks": {`+facetBase+`, "identifiers": [1, 2, 3]}}}`)
	}
	root := parse(t, `{`+head+`,`+job+`,"inputs": [`+strings.Join(inputs, ",")+`]}`)
	r := v.Validate(root)
	if len(r.Invalid) != len(inputs) {
		t.Fatalf("%d invalid facets of %d", len(r.Invalid), len(inputs))
	}
	for i, inv := range r.Invalid {
		if want := map[bool]int{true: 3, false: 1}[i < maxDetailFacets]; len(inv.Violations) != want {
			t.Errorf("facet %d: %d violations, want %d", i, len(inv.Violations), want)
		}
		if !r.IsInvalid(inv.Value) {
			t.Errorf("facet %d is not marked", i)
		}
	}
	byHand := Report{Invalid: r.Invalid[:1]}
	if !byHand.IsInvalid(r.Invalid[0].Value) || byHand.IsInvalid(r.Invalid[1].Value) {
		t.Error("IsInvalid of a report made by hand")
	}
}

func TestConcurrentValidate(t *testing.T) {
	v := newValidator(t)
	var roots []*jsontree.Value
	for _, f := range fixtures {
		for _, body := range []string{f.valid, f.invalid[0].body} {
			text, _ := withFacet(f.container, f.key, facetText(body))
			roots = append(roots, parse(t, text))
		}
	}
	want := make([]Report, len(roots))
	for i, root := range roots {
		want[i] = v.Validate(root)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 3 * len(roots) {
				i := (n*7 + g*11) % len(roots)
				if got := v.Validate(roots[i]); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("document %d: %+v, want %+v", i, got, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}
