package httpapi

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func TestRefusesWhatIsNoEvent(t *testing.T) {
	a := serve(t)
	good := runEvent("COMPLETE", "2026-03-01T10:00:00Z", uuid(1), "load", datasets("inputs", "a"), datasets("outputs", "b"))
	facet := func(value string) string {
		return strings.Replace(good, `"runId"`, `"facets":{"x":{"_producer":"p","_schemaURL":"https://example.com/x","v":`+value+`}},"runId"`, 1)
	}
	for _, tc := range []struct{ name, body, pointer string }{
		{"not JSON", "hello", ""},
		{"empty", " \n", ""},
		{"a number", "7", ""},
		{"not an event", `{"a":1}`, ""},
		{"cut off", good[:len(good)-30], "/outputs/0/namespace"},
		{"two documents", good + good, ""},
		{"deep nesting", facet(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)), "/run/facets/x/v" + strings.Repeat("/0", 508)},
		{"invalid UTF-8", strings.Replace(good, `"load"`, "\"lo\xffad\"", 1), "/job/name"},
		{"control character", strings.Replace(good, `"load"`, "\"lo\x01ad\"", 1), "/job/name"},
		{"inputs: null", strings.Replace(good, `"inputs":[`, `"inputs":null,"was":[`, 1), "/inputs"},
		{"inputs of null", strings.Replace(good, `"inputs":[`, `"inputs":[null,`, 1), "/inputs/0"},
		{"a null facet", strings.Replace(good, `"runId"`, `"facets":{"nominalTime":null},"runId"`, 1), "/run/facets/nominalTime"},
		{"empty job name", strings.Replace(good, `"load"`, `""`, 1), "/job/name"},
		{"empty namespace", strings.Replace(good, `"warehouse"`, `""`, 1), "/job/namespace"},
		{"empty dataset name", strings.Replace(good, `"name":"b"`, `"name":""`, 1), "/outputs/0/name"},
		{"empty runId", strings.Replace(good, uuid(1), ``, 1), "/run/runId"},
		{"a number as name", strings.Replace(good, `"load"`, `7`, 1), "/job/name"},
		{"unreadable time", strings.Replace(good, "2026-03-01T10:00:00Z", "yesterday", 1), "/eventTime"},
		{"no such day", strings.Replace(good, "2026-03-01", "2026-02-30", 1), "/eventTime"},
		{"a number as time", strings.Replace(good, `"2026-03-01T10:00:00Z"`, "1772359200", 1), "/eventTime"},
		{"a large exponent", facet("1e1000000"), "/run/facets/x/v"},
		{"a long number", facet(strings.Repeat("9", 1001)), "/run/facets/x/v"},
		{"unknown event type", strings.Replace(good, "COMPLETE", "FINISHED", 1), "/eventType"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := *a
			a.T = t
			p := a.post("/api/v1/lineage", tc.body).problem(400, "invalid-event", tc.pointer)
			for _, f := range p.at("errors").([]any) {
				if offset := dig(t, f, "offset").(float64); offset < 0 || int(offset) > len(tc.body) {
					t.Errorf("offset %v in a body of %d bytes", offset, len(tc.body))
				}
			}
			if p.header.Get("Retry-After") != "" {
				t.Error("a final answer has Retry-After")
			}
		})
	}
	if n := a.count(); n != 0 {
		t.Errorf("%d events are stored", n)
	}
	if n := len(a.list("/api/v1/rejected", 5)); n != 23 {
		t.Errorf("%d bodies in the inbox, want 23", n)
	}
	a.get("/api/v1/rejected?limit=1").has(23, "items", 0, "number").has(23, "total").has("/eventType", "items", 0, "errors", 0, "pointer")
	for _, secret := range []string{"warehouse", "FINISHED", "hello"} {
		if strings.Contains(a.log.String(), secret) {
			t.Errorf("the log has %q, which was sent", secret)
		}
	}
}

func TestAcceptsWhatProducersReallySend(t *testing.T) {
	a := serve(t)
	for i, tc := range []struct {
		name, body string
		warns      string
	}{
		{"no zone", runEvent("START", "2026-03-01T10:00:00", uuid(1), "j"), "zoneless-time"},
		{"a region", runEvent("START", "2026-03-01T10:00:00Z[Europe/London]", uuid(2), "j"), ""},
		{"nanoseconds", runEvent("START", "2026-03-01T10:00:00.123456789Z", uuid(3), "j"), ""},
		{"a runId of its own", runEvent("START", "2026-03-01T10:00:00Z", "scheduled__2026/03 01", "j"), "format"},
		{"a bare NaN", runEvent("START", "2026-03-01T10:00:00Z", uuid(4), "j", `"x":NaN`), "non-finite"},
		{"duplicate keys", runEvent("START", "2026-03-01T10:00:00Z", uuid(5), "j", `"x":1`, `"x":2`), "duplicate-keys"},
		{"a lone surrogate", runEvent("START", "2026-03-01T10:00:00Z", uuid(6), "j", `"x":"\ud800"`), "lone-surrogate"},
		{"an unknown facet", strings.Replace(runEvent("START", "2026-03-01T10:00:00Z", uuid(7), "j"), `"runId"`, `"facets":{"mine":{"_producer":"https://example.com","_schemaURL":"https://example.com/s","deep":[{"a":null}]}},"runId"`, 1), ""},
		{"huge integers", runEvent("START", "2026-03-01T10:00:00Z", uuid(8), "j", `"x":[123456789012345678901234567890,-0,1e400,1e-400,0.1]`), ""},
		{"a byte order mark", "\ufeff" + runEvent("START", "2026-03-01T10:00:00Z", uuid(9), "j"), ""},
		{"an invalid facet", strings.Replace(runEvent("START", "2026-03-01T10:00:00Z", uuid(10), "j"), `"runId"`, `"facets":{"nominalTime":{"_producer":"https://example.com","_schemaURL":"https://example.com/s","nominalStartTime":7}},"runId"`, 1), "invalid-facet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := *a
			a.T = t
			receipt := a.post("/api/v1/lineage", tc.body).is(201).has("new", "outcome")
			found := tc.warns == ""
			for _, w := range receipt.at("warnings").([]any) {
				found = found || dig(t, w, "code") == tc.warns
			}
			if !found {
				t.Errorf("no warning %q in %s", tc.warns, receipt.body)
			}
			id := receipt.at("eventId").(string)
			if got := receipt.header.Get("Location"); got != "/api/v1/events/"+id {
				t.Errorf("Location %q", got)
			}
			kept := a.get("/api/v1/events/"+id+"?payload=true").is(200).has(tc.body, "items", 0, "payload").has(len(tc.body), "items", 0, "bytes")
			if tc.name == "a runId of its own" {
				kept.has("scheduled__2026/03 01", "items", 0, "run", "runId")
			}
			if n := a.count(); n != i+1 {
				t.Errorf("%d events, want %d", n, i+1)
			}
			a.post("/api/v1/lineage", tc.body).is(201).has("retry", "outcome").has(id, "eventId")
		})
	}
}

func TestNamesAreReadBackAsTheyAre(t *testing.T) {
	a := serve(t)
	names := []string{
		"plain", "s3://bucket/a b", "db:5432/schema.table", "100%", "%41", "a#b?c&d=e+f", "  spaces  ", "caf\u00e9", "\u65e5\u672c", "q\"uote\\", "\U0001f4a9", "../..", "tab\there",
	}
	for i, n := range names {
		body := runEvent("COMPLETE", "2026-03-01T10:00:00Z", uuid(i), "job "+n, datasets("inputs", "in "+n), datasets("outputs", n))
		a.post("/api/v1/lineage", body).is(201)
	}
	// The other normal form of the same name is the same dataset.
	a.post("/api/v1/lineage", flow(99, "again", []string{"cafe\u0301"}, []string{"out"})).is(201)
	for _, n := range names {
		byName := a.get("/api/v1/datasets?" + url.Values{"namespace": {"postgres://db:5432"}, "name": {n}}.Encode()).is(200)
		byName.has(n, "items", 0, "name")
		id := byName.at("items", 0, "id").(string)
		a.get("/api/v1/datasets/"+id).is(200).has(n, "name").has("postgres://db:5432", "namespace").has(1, "degree", "upstream")
		a.get("/api/v1/jobs?"+url.Values{"namespace": {"warehouse"}, "name": {"job " + n}}.Encode()).is(200).has("job "+n, "items", 0, "name")
		root := url.Values{"type": {"dataset"}, "namespace": {"postgres://db:5432"}, "name": {n}, "direction": {"upstream"}}
		a.get("/api/v1/lineage?"+root.Encode()).is(200).has(id, "root", "id").has("job "+n, "nodes", 2, "job", "name")
		a.get("/api/v1/lineage?type=dataset&id="+id).is(200).has(id, "root", "id")
	}
	decomposed := a.get("/api/v1/datasets?" + url.Values{"namespace": {"postgres://db:5432"}, "name": {"cafe\u0301"}}.Encode())
	decomposed.has("caf\u00e9", "items", 0, "name")
	a.get("/api/v1/datasets/"+decomposed.at("items", 0, "id").(string)).has(1, "degree", "downstream")
	a.get("/api/v1/datasets?namespace=postgres://db:5432&name=none").is(200).has(nil, "next")
}

func TestLoneSurrogatesInNames(t *testing.T) {
	a := serve(t)
	for i, n := range []string{`\ud800`, `\udfff`} {
		body := strings.ReplaceAll(flow(i, "j", []string{"in"}, []string{"SURROGATE"}), "SURROGATE", n)
		a.post("/api/v1/lineage", body).is(201)
	}
	list := a.get("/api/v1/datasets").is(200)
	for _, n := range []string{`"name":"\ud800"`, `"name":"\udfff"`} {
		if !bytes.Contains(list.body, []byte(n)) {
			t.Errorf("%s is not in %s", n, list.body)
		}
	}
	// Its name in WTF-8, as a URL can hold it.
	a.get("/api/v1/lineage?type=dataset&namespace=postgres://db:5432&name=%ED%A0%80").is(200)
	a.list("/api/v1/datasets", 1)
}

func TestContentCodings(t *testing.T) {
	a := serve(t)
	body := flow(1, "j", []string{"a"}, []string{"b"})
	var zlibbed, deflated, zstded bytes.Buffer
	z := zlib.NewWriter(&zlibbed)
	io.WriteString(z, body)
	z.Close()
	f, _ := flate.NewWriter(&deflated, 6)
	io.WriteString(f, body)
	f.Close()
	s, _ := zstd.NewWriter(&zstded)
	io.WriteString(s, body)
	s.Close()
	for _, tc := range []struct{ coding, sent string }{
		{"", body}, {"identity", body}, {"gzip", gzipped(body)}, {"x-gzip", gzipped(body)}, {"GZIP", gzipped(body)},
		{"gzip", gzipped(body[:50]) + gzipped(body[50:])},
		{"deflate", zlibbed.String()}, {"deflate", deflated.String()}, {"zstd", zstded.String()},
	} {
		a.post("/api/v1/lineage", tc.sent, "Content-Encoding", tc.coding).is(201)
	}
	if n := a.count(); n != 1 {
		t.Errorf("%d events, want one", n)
	}
	for _, tc := range []struct{ coding, sent string }{
		{"gzip", gzipped(body)[:60]}, {"gzip", gzipped(body)[:5]}, {"gzip", body}, {"gzip", ""}, {"gzip", gzipped(body) + "tail"},
		{"deflate", zlibbed.String()[:40]}, {"deflate", deflated.String()[:40]}, {"deflate", ""},
		{"zstd", zstded.String()[:40]}, {"zstd", body},
	} {
		a.post("/api/v1/lineage", tc.sent, "Content-Encoding", tc.coding).problem(400, "invalid-body", "")
	}
	for _, coding := range []string{"br", "gzip, gzip", "*"} {
		p := a.post("/api/v1/lineage", body, "Content-Encoding", coding).problem(415, "unsupported-media-type", "Content-Encoding")
		if p.header.Get("Accept-Encoding") == "" {
			t.Error("the answer does not say which codings there are")
		}
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "nonsense/", "application/x-ndjson"} {
		a.post("/api/v1/lineage", body, "Content-Type", kind).problem(415, "unsupported-media-type", "Content-Type")
	}
	for _, kind := range []string{"application/json; charset=UTF-8", "application/vnd.openlineage+json", ""} {
		a.post("/api/v1/lineage", body, "Content-Type", kind).is(201)
	}
}

func TestWindowsOfZstdAreLeased(t *testing.T) {
	a := serve(t, limits(func(l *Limits) { l.Memory, l.MemoryWait = 12<<20, 10*time.Millisecond }))
	// A stream whose length its writer does not know in advance has a window.
	compress := func(body string, window int) string {
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b, zstd.WithWindowSize(window))
		if err != nil {
			t.Fatal(err)
		}
		for len(body) > 0 {
			n := min(len(body), 10<<10)
			io.WriteString(w, body[:n])
			w.Flush()
			body = body[n:]
		}
		w.Close()
		return b.String()
	}
	body := flow(1, strings.Repeat("x", 50<<10), []string{"a"}, []string{"b"})
	send := func(sent string) *answer { return a.post("/api/v1/lineage", sent, "Content-Encoding", "zstd") }
	send(compress(body, 4<<20)).is(201)
	send(compress(body, 8<<20)).problem(413, "too-large", "-") // twice 8 MB is beyond all there is
	p := send(compress(body, 16<<20)).problem(400, "invalid-body", "")
	if !strings.Contains(string(p.body), "window") {
		t.Errorf("the answer does not say why: %s", p.body)
	}
	send(compress(body[:100], 1<<10)+compress(body[100:], 4<<20)).problem(400, "invalid-body", "")
	if !a.server.budget.free.TryAcquire(12 << 20) {
		t.Error("the requests did not give back their memory")
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestLongBodies(t *testing.T) {
	a := serve(t)
	limit := int(DefaultLimits().EventBytes)
	padded := func(size int) string {
		e := flow(1, "j", []string{"a"}, []string{"b"})
		return strings.Repeat(" ", size-len(e)) + e
	}
	a.post("/api/v1/lineage", padded(limit)).is(201)
	a.post("/api/v1/lineage", padded(limit+1)).problem(413, "too-large", "-")
	// The client sends all of it before it listens, with its length or without.
	const long = 100 << 20
	for _, length := range []int64{long, -1} {
		r, _ := http.NewRequest("POST", a.url+"/api/v1/lineage", io.LimitReader(zeros{}, long))
		r.ContentLength = length
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		response.Body.Close()
		if response.StatusCode != 413 || response.Header.Get("Retry-After") != "" {
			t.Errorf("status %d, Retry-After %q", response.StatusCode, response.Header.Get("Retry-After"))
		}
	}
	// A gzip body may have several members: these make one gigabyte.
	bomb := strings.Repeat(gzipped(strings.Repeat(" ", 16<<20)), 64)
	before := allocated()
	a.post("/api/v1/lineage", bomb, "Content-Encoding", "gzip").problem(413, "too-large", "-")
	if grown := allocated() - before; grown > 200<<20 {
		t.Errorf("a bomb of 1 GB in %d bytes made graphd allocate %d MB", len(bomb), grown>>20)
	}
	// What its tree would take is beyond all memory that requests have.
	ones := "[" + strings.Repeat("1,", 8<<20) + "1]"
	a.post("/api/v1/lineage", ones).problem(413, "too-large", "-")
	if n := a.count(); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestAnEventOfTwentyFiveMegabytesPasses(t *testing.T) {
	a := serve(t)
	var inputs strings.Builder
	for i := 0; inputs.Len() < 25_000_000; i++ {
		fmt.Fprintf(&inputs, `,{"namespace":"postgres://db:5432","name":"warehouse.raw.table_%06d","facets":{"documentation":{"_producer":"https://example.com/etl","_schemaURL":"https://openlineage.io/spec/facets/1-1-0/DocumentationDatasetFacet.json#/$defs/DocumentationDatasetFacet","description":"One of many tables that a large report reads, every night."}}}`, i)
	}
	body := runEvent("COMPLETE", "2026-03-01T10:00:00Z", uuid(1), "large", `"inputs":[`+inputs.String()[1:]+`]`, datasets("outputs", "report"))
	a.post("/api/v1/lineage", gzipped(body), "Content-Encoding", "gzip").is(201).has("new", "outcome")
}
