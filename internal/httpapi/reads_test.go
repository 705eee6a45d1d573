package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

func jobID(name string) string {
	return fact.JobKey(openlineage.Name{Namespace: "warehouse", Name: name}).String()
}

func datasetID(name string) string {
	return fact.DatasetKey(openlineage.Name{Namespace: "postgres://db:5432", Name: name}).String()
}

// chain stores raw -> stage -> mart -> report, with a second source of stage.
func chain(t *testing.T) *api {
	a := serve(t)
	a.post("/api/v1/lineage", flow(1, "stage", []string{"raw", "other"}, []string{"stage"})).is(201)
	a.post("/api/v1/lineage", flow(2, "mart", []string{"stage"}, []string{"mart"})).is(201)
	a.post("/api/v1/lineage", flow(3, "report", []string{"mart"}, []string{"report"})).is(201)
	return a
}

// names lists the nodes of a type by name, and edges as "from kind to".
func shape(a *answer) (nodes, edges []string) {
	name := map[string]string{}
	for _, n := range a.at("nodes").([]any) {
		n := n.(map[string]any)
		id := n["id"].(string)
		switch n["type"] {
		case "derivation":
			if n["job"] == nil {
				name[id] = "<declared>"
			} else {
				name[id] = "<" + dig(a.T, n, "job", "name").(string) + ">"
			}
		case "job":
			name[id] = "job " + n["name"].(string)
		default:
			name[id] = n["name"].(string)
		}
		nodes = append(nodes, name[id])
	}
	for _, e := range a.at("edges").([]any) {
		e := e.(map[string]any)
		edges = append(edges, fmt.Sprint(name[e["from"].(string)], " ", e["kind"], " ", name[e["to"].(string)]))
	}
	slices.Sort(nodes)
	slices.Sort(edges)
	return nodes, edges
}

func TestLineage(t *testing.T) {
	a := chain(t)
	for _, tc := range []struct {
		query string
		nodes string
		edges string
	}{
		{"type=dataset&id=" + datasetID("mart"), "<mart> <report> <stage> mart other raw report stage",
			"<mart> output mart, <report> output report, <stage> output stage, mart input <report>, other input <stage>, raw input <stage>, stage input <mart>"},
		{"type=dataset&namespace=postgres://db:5432&name=mart&direction=upstream&depth=1", "<mart> mart stage", "<mart> output mart, stage input <mart>"},
		{"type=dataset&id=" + datasetID("mart") + "&direction=downstream", "<report> mart report", "<report> output report, mart input <report>"},
		{"type=dataset&id=" + datasetID("mart") + "&depth=0", "mart", ""},
		{"type=job&id=" + jobID("mart") + "&depth=1", "<mart> <report> mart report stage", "<mart> output mart, <report> output report, mart input <report>, stage input <mart>"},
		{"type=job&namespace=warehouse&name=stage&direction=upstream", "<stage> other raw stage", "<stage> output stage, other input <stage>, raw input <stage>"},
		{"type=dataset&id=" + datasetID("mart") + "&level=job", "job mart job report job stage", "job mart data job report, job stage data job mart"},
		{"type=job&id=" + jobID("stage") + "&level=job&direction=downstream&view=current", "job mart job report job stage", "job mart data job report, job stage data job mart"},
	} {
		got := a.get("/api/v1/lineage?" + tc.query).is(200)
		nodes, edges := shape(got)
		if strings.Join(nodes, " ") != tc.nodes || strings.Join(edges, ", ") != tc.edges {
			t.Errorf("%s:\nnodes %v\nedges %v", tc.query, strings.Join(nodes, " "), strings.Join(edges, ", "))
		}
		got.has("current", "meta", "view").has(0, "meta", "settling")
	}
	a.get("/api/v1/lineage?type=dataset&id="+datasetID("mart")).has(false, "meta", "truncated").has("job", "edges", 0, "basis")
	cut := a.get("/api/v1/lineage?direction=upstream&depth=1&type=dataset&id="+datasetID("report")).has(true, "meta", "truncated")
	cut.has("depth", "meta", "cut", 0, "reason").has(-2, "meta", "cut", 0, "level").has(1, "meta", "cut", 0, "omitted")
	a.get("/api/v1/lineage?limit=3&type=dataset&id="+datasetID("mart")).has("nodes", "meta", "cut", 0, "reason")

	run := a.get("/api/v1/runs?job="+jobID("mart")).at("items", 0, "id").(string)
	byRun := a.get("/api/v1/lineage?depth=1&direction=upstream&type=run&id="+run).is(200).has(run, "root", "id").has("run", "root", "type")
	if nodes, _ := shape(byRun); strings.Join(nodes, " ") != "<mart> mart stage" {
		t.Errorf("of a run: %v", nodes)
	}
}

func TestJobLevelFoldsDatasets(t *testing.T) {
	a := serve(t)
	a.post("/api/v1/lineage", flow(1, "w", []string{"x"}, []string{"a", "b"})).is(201)
	a.post("/api/v1/lineage", flow(2, "r", []string{"a", "b", "loop"}, []string{"loop"})).is(201)
	// A dataset event leads from loop to declared, which another job reads.
	a.post("/api/v1/lineage", `{"eventTime":"2026-03-01T10:00:00Z","producer":"https://example.com/catalog",
		"schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
		"dataset":{"namespace":"postgres://db:5432","name":"declared","facets":{"columnLineage":{"_producer":"https://example.com/catalog",
		"_schemaURL":"https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet",
		"fields":{"f":{"inputFields":[{"namespace":"postgres://db:5432","name":"loop","field":"g"}]}}}}}}`).is(201)
	a.post("/api/v1/lineage", flow(3, "last", []string{"declared"}, []string{"z"})).is(201)
	got := a.get("/api/v1/lineage?level=job&type=dataset&id=" + datasetID("a")).is(200)
	nodes, edges := shape(got)
	if strings.Join(nodes, " ") != "<declared> job last job r job w" {
		t.Errorf("nodes %v", nodes)
	}
	if strings.Join(edges, ", ") != "<declared> data job last, job r data <declared>, job r data job r, job w data job r" {
		t.Errorf("edges %v", edges)
	}
	whole := a.get("/api/v1/lineage?type=dataset&id=" + datasetID("declared")).is(200)
	if nodes, _ := shape(whole); !slices.Contains(nodes, "<declared>") {
		t.Errorf("nodes %v", nodes)
	}
}

func TestLineageParameters(t *testing.T) {
	a := chain(t)
	id := datasetID("mart")
	for query, place := range map[string]string{
		"":                                                 "type",
		"type=dataset":                                     "id",
		"type=table&id=" + id:                              "type",
		"type=dataset&id=12":                               "id",
		"type=run&id=" + id:                                "id",
		"type=run&namespace=a&name=b":                      "id",
		"type=dataset&namespace=a":                         "name",
		"type=dataset&name=a":                              "namespace",
		"type=dataset&namespace=&name=a":                   "namespace",
		"type=dataset&name=a&namespace=b&id=" + id:         "id",
		"type=dataset&direction=up&id=" + id:               "direction",
		"type=dataset&depth=101&id=" + id:                  "depth",
		"type=dataset&depth=&id=" + id:                     "depth",
		"type=dataset&limit=0&id=" + id:                    "limit",
		"type=dataset&limit=ten&id=" + id:                  "limit",
		"type=dataset&level=table&id=" + id:                "level",
		"type=dataset&color=red&id=" + id:                  "color",
		"type=dataset&type=dataset&id=" + id:               "type",
		"type=dataset&Depth=1&id=" + id:                    "Depth",
		"type=dataset&depth=x&limit=y&id=" + id:            "limit",
		"type=dataset&depth=1;limit=2&id=" + id:            "-",
		"type=dataset&%zz=1&id=" + id:                      "-",
		"type=job&id=" + strings.Repeat("0", 48):           "id",
		"type=dataset&unknown=" + strings.Repeat("x", 100): "unknown",
	} {
		a.get("/api/v1/lineage?"+query).problem(400, "invalid-parameter", place)
	}
	for query, place := range map[string]string{
		"asOf=2026-01-01T00:00:00Z": "asOf", "knownAt=2026-01-01T00:00:00Z": "knownAt", "view=window": "view",
		"level=column": "level", "level=run": "level", "nodeId=dataset:a:b": "nodeId",
	} {
		a.get("/api/v1/lineage?type=dataset&id="+id+"&"+query).problem(400, "not-available", place)
	}
	a.get("/api/v1/lineage?nodeId=dataset:a:b&depth=2").problem(400, "not-available", "nodeId")
	a.get("/api/v1/lineage?type=dataset&id="+datasetID("none")).problem(404, "not-found", "-")
	a.get("/api/v1/lineage?type=run&id="+uuid(1)).problem(404, "not-found", "-")
	a.post("/api/v1/lineage?x=1", flow(9, "j", nil, nil)).problem(400, "invalid-parameter", "x")
	a.get("/livez?verbose").problem(400, "invalid-parameter", "verbose")
}

func TestListsPage(t *testing.T) {
	a := serve(t)
	const n = 23
	for i := range n {
		a.post("/api/v1/lineage", flow(i, fmt.Sprintf("job %02d", i), []string{"in"}, []string{fmt.Sprintf("out/%02d", i)})).is(201)
	}
	fail := runEvent("FAIL", "2026-03-01T11:00:00Z", uuid(n), "job 00")
	a.post("/api/v1/lineage", fail).is(201)
	for path, want := range map[string]int{
		"/api/v1/datasets": n + 1, "/api/v1/jobs": n, "/api/v1/runs": n + 1, "/api/v1/events": n + 1,
		"/api/v1/datasets?contains=OUT/1": 10, "/api/v1/datasets?namespace=postgres://db:5432": n + 1, "/api/v1/datasets?namespace=none": 0,
		"/api/v1/jobs?contains=07": 1, "/api/v1/jobs?namespace=warehouse": n,
		"/api/v1/runs?state=failed": 1, "/api/v1/runs?state=running": 0, "/api/v1/runs?job=" + jobID("job 00"): 2,
		"/api/v1/events?type=FAIL": 1, "/api/v1/events?outcome=new": n + 1, "/api/v1/events?outcome=collision": 0,
		"/api/v1/events?job=" + jobID("job 05"): 1, "/api/v1/events?dataset=" + datasetID("in"): n,
	} {
		whole := a.list(path, 1000)
		if len(whole) != want {
			t.Errorf("%s has %d items, want %d", path, len(whole), want)
		}
		for _, limit := range []int{1, 7} {
			if got := a.list(path, limit); fmt.Sprint(got) != fmt.Sprint(whole) {
				t.Errorf("%s by pages of %d differs from the whole", path, limit)
			}
		}
	}
	if first := a.get("/api/v1/jobs?limit=1").has("job 00", "items", 0, "name"); first.at("next") == nil {
		t.Error("no cursor")
	}
	a.get("/api/v1/runs?limit=1").has("failed", "items", 0, "state")
	for path, place := range map[string]string{
		"/api/v1/datasets?cursor=nonsense": "cursor", "/api/v1/runs?cursor=AAAA": "cursor", "/api/v1/events?cursor=!": "cursor", "/api/v1/rejected?cursor=x": "cursor",
		"/api/v1/datasets?limit=1001": "limit", "/api/v1/jobs?limit=0": "limit", "/api/v1/runs?state=done": "state", "/api/v1/runs?job=x": "job",
		"/api/v1/events?type=complete": "type", "/api/v1/events?outcome=old": "outcome", "/api/v1/events?run=" + jobID("x"): "run",
		"/api/v1/datasets?name=a": "namespace", "/api/v1/datasets?name=a&namespace=b&contains=c": "contains", "/api/v1/jobs?offset=3": "offset",
		"/api/v1/events/" + jobID("x") + "?payload=yes": "payload", "/api/v1/datasets/12": "id", "/api/v1/runs/12": "id", "/api/v1/events/xyz": "id",
	} {
		a.get(path).problem(400, "invalid-parameter", place)
	}
	for _, path := range []string{"/api/v1/datasets/" + jobID("none"), "/api/v1/jobs/" + datasetID("in"), "/api/v1/events/" + jobID("none"), "/api/v1/runs/" + uuid(1)} {
		a.get(path).problem(404, "not-found", "-")
	}
}

func TestRunsTellTheirAttempts(t *testing.T) {
	a := serve(t)
	nominal := func(e string) string {
		return strings.Replace(e, `"runId"`, `"facets":{"nominalTime":{"_producer":"https://example.com/etl","_schemaURL":"https://openlineage.io/spec/facets/1-0-1/NominalTimeRunFacet.json#/$defs/NominalTimeRunFacet","nominalStartTime":"2026-03-01T00:00:00Z"},`+
			`"parent":{"_producer":"https://example.com/etl","_schemaURL":"https://openlineage.io/spec/facets/1-1-0/ParentRunFacet.json#/$defs/ParentRunFacet","run":{"runId":"`+uuid(77)+`"},"job":{"namespace":"warehouse","name":"nightly"}}},"runId"`, 1)
	}
	columns := `"outputs":[{"namespace":"postgres://db:5432","name":"out","facets":{"columnLineage":{"_producer":"https://example.com/etl","_schemaURL":"https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet","fields":{"total":{"inputFields":[{"namespace":"postgres://db:5432","name":"in","field":"amount","transformations":[{"type":"DIRECT","subtype":"AGGREGATION"}]}]}}}}}]`
	a.post("/api/v1/lineage", nominal(runEvent("START", "2026-03-01T01:00:00Z", uuid(1), "load", datasets("inputs", "in")))).is(201)
	a.post("/api/v1/lineage", nominal(runEvent("FAIL", "2026-03-01T01:05:00Z", uuid(1), "load"))).is(201)
	a.post("/api/v1/lineage", nominal(runEvent("START", "2026-03-01T02:00:00Z", uuid(2), "load", datasets("inputs", "in")))).is(201).has("equivalent", "outcome")
	last := a.post("/api/v1/lineage", nominal(runEvent("COMPLETE", "2026-03-01T02:05:00Z", uuid(2), "load", datasets("inputs", "in"), columns))).is(201)
	run := last.at("run").(string)
	got := a.get("/api/v1/runs/" + run).is(200)
	got.has("complete", "state").has(2, "attempts").has("nominal", "slot", "rule").has(last.at("attempt"), "newestAttempt")
	got.has(uuid(2), "members", 0, "runId").has("complete", "members", 0, "state").has(uuid(1), "members", 1, "runId").has("failed", "members", 1, "state")
	got.has("in", "members", 1, "episodes", 0, "said", "inputs", 0, "name").has("nightly", "members", 0, "parent", "job", "name")
	got.has(true, "asserts", 0, "finished").has("out", "asserts", 0, "said", "outputs", 0, "name")
	got.has("total", "mappings", 0, "entries", 0, "field").has("AGGREGATION", "mappings", 0, "entries", 0, "transformations", 0, "subtype")
	found := false
	for _, d := range got.at("derivations").([]any) {
		found = found || dig(t, d, "id") == got.at("asserts", 0, "said", "outputs", 0, "derivations", 0)
	}
	if !found {
		t.Error("a derivation that is named is not told")
	}
	a.get("/api/v1/jobs/"+jobID("load")).is(200).has(run, "latestRun", "id").has("column", "derivations", 0, "inputs", 0, "basis")
	a.get("/api/v1/datasets/"+datasetID("out")).is(200).has(jobID("load"), "upstream", 0, "job", "id")
	if n := len(a.list("/api/v1/events?run="+run, 3)); n != 4 {
		t.Errorf("%d events of the run, want 4", n)
	}
}

func TestEventsKeepEveryBody(t *testing.T) {
	a := serve(t)
	body := func(i int) string {
		return runEvent("RUNNING", fmt.Sprintf("2026-03-01T10:00:%02dZ", i), uuid(1), "stream", datasets("inputs", "a"))
	}
	var id string
	for i := range 5 {
		r := a.post("/api/v1/lineage", body(i)).is(201)
		id = r.at("eventId").(string)
		r.has("2026-03-01T10:00:00Z", "firstEventTime")
	}
	a.post("/api/v1/lineage", body(2)).is(201).has("retry", "outcome")
	items := a.list("/api/v1/events/"+id+"?payload=true", 2)
	if len(items) != 5 {
		t.Fatalf("%d bodies", len(items))
	}
	for i, item := range items {
		if dig(t, item, "payload") != body(i) {
			t.Errorf("body %d is %v", i, item)
		}
	}
	a.get("/api/v1/events/"+id).has(nil, "items", 0, "payload").has("new", "items", 0, "outcome").has("equivalent", "items", 1, "outcome")
	a.get("/api/v1/stats").has(1, "deliveries", "new").has(4, "deliveries", "equivalent").has(1, "deliveries", "retry")
}

func TestFacetsOfEntities(t *testing.T) {
	a := serve(t)
	a.post("/api/v1/lineage", `{"eventTime":"2026-03-01T10:00:00Z","producer":"https://example.com/catalog",
		"schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
		"dataset":{"namespace":"postgres://db:5432","name":"d","facets":{"documentation":{"_producer":"https://example.com/c","_schemaURL":"https://example.com/s","description":"<b>what</b> & why"},
		"my\ud800facet":{"_producer":"https://example.com/c","_schemaURL":"https://example.com/s","v":1}}}}`).is(201)
	got := a.get("/api/v1/datasets/" + datasetID("d")).is(200)
	got.has("<b>what</b> & why", "facets", "documentation", "value", "description").has("2026-03-01T10:00:00Z", "facets", "documentation", "firstEventTime")
	if !strings.Contains(string(got.body), `"my\ud800facet":{`) {
		t.Errorf("the key is not as it was: %s", got.body)
	}
}

func TestETag(t *testing.T) {
	a := chain(t)
	for _, path := range []string{
		"/api/v1/lineage?type=dataset&id=" + datasetID("mart"), "/api/v1/datasets", "/api/v1/datasets/" + datasetID("mart"), "/api/v1/jobs",
		"/api/v1/runs", "/api/v1/events", "/api/v1/rejected", "/api/v1/stats", "/openapi.yaml",
	} {
		tag := a.get(path).is(200).header.Get("Etag")
		if tag == "" {
			t.Errorf("%s has no ETag", path)
		}
		for _, field := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
			if got := a.get(path, "If-None-Match", field).is(304); got.header.Get("Etag") != tag {
				t.Errorf("%s: 304 with ETag %q", path, got.header.Get("Etag"))
			}
		}
		a.get(path, "If-None-Match", `"x"`).is(200)
		if head := a.send("HEAD", path, nil).is(200); len(head.body) != 0 || head.header.Get("Etag") != tag {
			t.Errorf("HEAD %s: %v", path, head.header)
		}
	}
	before := a.get("/api/v1/datasets").header.Get("Etag")
	a.post("/api/v1/lineage", flow(9, "j", []string{"new one"}, nil)).is(201)
	a.get("/api/v1/datasets", "If-None-Match", before).is(200)
}
