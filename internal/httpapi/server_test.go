package httpapi

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/graph"
)

func TestListensOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{":5000", "0.0.0.0:0", "[::]:0", "192.0.2.1:5000", "example.com:80", "127.0.0.1.example.com:80"} {
		ln, err := Listen(t.Context(), address)
		if err == nil {
			ln.Close()
			t.Errorf("listens on %s", address)
		} else if !strings.Contains(err.Error(), "no authentication") || !strings.Contains(err.Error(), "127.0.0.1:PORT") {
			t.Errorf("%s: the words do not say why, or what to do: %v", address, err)
		}
	}
	for _, address := range []string{"127.0.0.1", "localhost", ""} {
		if _, err := Listen(t.Context(), address); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "127.9.9.9:0"} {
		ln, err := Listen(t.Context(), address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if !ln.Addr().(*net.TCPAddr).IP.IsLoopback() {
			t.Errorf("%s is %s", address, ln.Addr())
		}
		ln.Close()
	}
}

func TestAnswersToItsOwnNamesOnly(t *testing.T) {
	a := serve(t)
	for _, host := range []string{"evil.example", "evil.example:5000", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.1", "[2001:db8::1]:5000"} {
		a.get("/api/v1/stats", "Host", host).problem(421, "misdirected", "Host")
	}
	for _, host := range []string{"localhost", "LOCALHOST:5000", "127.0.0.1:5000", "[::1]", "[::1]:5000", "graphd.localhost"} {
		a.get("/api/v1/stats", "Host", host).is(200)
	}
}

func TestRefusesPagesOfOtherSites(t *testing.T) {
	a := serve(t)
	body := flow(1, "j", []string{"a"}, []string{"b"})
	a.post("/api/v1/lineage", body, "Sec-Fetch-Site", "cross-site").problem(403, "cross-origin", "-")
	a.post("/api/v1/lineage", body, "Origin", "https://evil.example").problem(403, "cross-origin", "-")
	// A form can send this without asking first, where a browser knows neither header.
	a.post("/api/v1/lineage", body, "Content-Type", "text/plain").problem(415, "unsupported-media-type", "Content-Type")
	a.post("/api/v1/lineage", body, "Origin", a.url, "Sec-Fetch-Site", "same-origin").is(201)
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	a := serve(t)
	for _, path := range []string{"/nothing", "/api/v1", "/api/v2/lineage", "/api/v1/lineage/", "/api/v1/datasets/x/y", "//", "/api/v1/lineage/batch/1"} {
		a.get(path).problem(404, "no-route", "-")
	}
	for path, allow := range map[string]string{"/api/v1/lineage/batch": "POST", "/api/v1/stats": "GET", "/api/v1/lineage": "GET, POST"} {
		for _, method := range []string{"DELETE", "PUT", "PATCH", "OPTIONS"} {
			p := a.send(method, path, nil)
			if method == "OPTIONS" && p.status == 204 {
				continue
			}
			p.problem(405, "method-not-allowed", "-")
			for _, m := range strings.Split(allow, ", ") {
				if !strings.Contains(p.header.Get("Allow"), m) {
					t.Errorf("%s: Allow %q, want %s in it", path, p.header.Get("Allow"), m)
				}
			}
		}
	}
}

func TestHeadersOfAnswers(t *testing.T) {
	a := serve(t)
	for _, path := range []string{"/", "/livez", "/metrics", "/api/v1/stats", "/nothing"} {
		h := a.get(path).header
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %v", path, h)
		}
		want := "no-store"
		if path == "/api/v1/stats" {
			want = "private, no-cache"
		}
		if h.Get("Cache-Control") != want {
			t.Errorf("%s: Cache-Control %q, want %q", path, h.Get("Cache-Control"), want)
		}
		if h.Get("Server") != "" || h.Get("X-Powered-By") != "" {
			t.Errorf("%s tells what it runs on: %v", path, h)
		}
	}
}

func TestTraceContextIsHonouredAndReturned(t *testing.T) {
	a := serve(t)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	p := a.post("/api/v1/lineage", "{}", "Traceparent", "00-"+trace+"-b7ad6b7169203331-00").problem(400, "invalid-event", "").has(trace, "traceId")
	if got := p.header.Get("Traceresponse"); !strings.HasPrefix(got, "00-"+trace+"-") {
		t.Errorf("Traceresponse %q", got)
	}
	if !strings.Contains(a.log.String(), "trace_id="+trace) {
		t.Error("the log line lacks the trace")
	}
	if a.post("/api/v1/lineage", "{}", "Traceparent", "nonsense").at("traceId") == trace {
		t.Error("a trace without a parent has one")
	}
}

func TestLogSaysWhatMatters(t *testing.T) {
	a := serve(t)
	a.post("/api/v1/lineage", flow(1, "secret-job", []string{"a"}, []string{"b"}), "Authorization", "Bearer secret-key").is(201)
	a.post("/api/v1/lineage", "{}").is(400)
	a.get("/api/v1/datasets?contains=secret-name").is(200)
	log := a.log.String()
	for _, want := range []string{
		"level=DEBUG msg=request method=POST route=/api/v1/lineage status=201",
		"level=INFO msg=request method=POST route=/api/v1/lineage status=400",
		"level=DEBUG msg=request method=GET route=/api/v1/datasets status=200",
		"problem=invalid-event errors=1 offset=0",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	if strings.Contains(log, "secret") {
		t.Errorf("the log has what was sent:\n%s", log)
	}
}

func TestMetrics(t *testing.T) {
	a := serve(t)
	a.post("/api/v1/lineage", flow(1, "j", []string{"a"}, []string{"b"})).is(201)
	a.post("/api/v1/lineage", "{}").is(400)
	a.get("/nothing").is(404)
	text := string(a.get("/metrics").is(200).body)
	for _, want := range []string{
		`graphd_deliveries_total{`, `outcome="new"`, `graphd_store_settling`, `graphd_store_objects{`, `graphd_store_duration_seconds_count{`,
		`http_server_request_duration_seconds_count{`, `http_route="/api/v1/lineage"`, `http_response_status_code="400"`, "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	if strings.Contains(text, "nothing") {
		t.Error("a path that is no route is a label")
	}
}

func TestIndexNamesEveryRoute(t *testing.T) {
	a := serve(t)
	page := string(a.get("/").is(200).body)
	for _, r := range a.server.routes() {
		if !strings.Contains(page, openAPIPath(r.path)) {
			t.Errorf("%s is not on the page", r.path)
		}
	}
}

// odd is a store of which some calls misbehave.
type odd struct {
	graph.Store
	stats func(context.Context) (graph.Stats, error)
}

func (o *odd) Stats(ctx context.Context) (graph.Stats, error) { return o.stats(ctx) }

func TestPanicsAreAnswered(t *testing.T) {
	a := serve(t, withStore(func(s graph.Store) graph.Store {
		return &odd{s, func(context.Context) (graph.Stats, error) { panic("index out of secrets") }}
	}))
	p := a.get("/api/v1/stats").problem(500, "internal", "-")
	if strings.Contains(string(p.body), "secrets") {
		t.Errorf("the answer tells too much: %s", p.body)
	}
	if log := a.log.String(); !strings.Contains(log, "index out of secrets") || !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "server_test.go") {
		t.Error("the log does not tell where it panicked")
	}
	a.get("/api/v1/datasets").is(200)
}

func TestReadiness(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var slow bool
	a := serve(t, withStore(func(s graph.Store) graph.Store {
		return &odd{s, func(ctx context.Context) (graph.Stats, error) {
			if slow {
				close(entered)
				<-release
			}
			return s.Stats(ctx)
		}}
	}))
	a.get("/readyz").is(200)
	a.get("/livez").is(200)

	// A request that runs when the server is told to end comes to its end.
	slow = true
	answer := make(chan int, 1)
	go func() {
		r, err := http.Get(a.url + "/api/v1/stats")
		if err != nil {
			answer <- 0
			return
		}
		r.Body.Close()
		answer <- r.StatusCode
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- a.stop() }()
	for !a.server.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	rec := &recorder{header: http.Header{}}
	r, _ := http.NewRequest("GET", "http://localhost/readyz", nil)
	a.server.ServeHTTP(rec, r)
	if rec.status != 503 {
		t.Errorf("/readyz of a server that ends: %d", rec.status)
	}
	close(release)
	if status := <-answer; status != 200 {
		t.Errorf("the request that ran was answered %d", status)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(a.url + "/livez"); err == nil {
		t.Error("the server still listens")
	}
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }

func TestWhatIsClosedIsUnavailable(t *testing.T) {
	a := serve(t)
	a.settled().node.Store.Close()
	a.post("/api/v1/lineage", flow(1, "j", nil, nil)).is(201).has("accepted", "status")
	a.get("/api/v1/datasets").problem(503, "unavailable", "-")
	a.get("/readyz").problem(503, "unavailable", "-")
	a.node.Ledger.Close()
	a.post("/api/v1/lineage", flow(2, "j", nil, nil)).problem(503, "unavailable", "-")
	a.post("/api/v1/lineage/batch", "["+flow(2, "j", nil, nil)+"]").problem(503, "unavailable", "-")
	a.get("/livez").is(200)
}
