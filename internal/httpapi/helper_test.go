package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/node"
	"github.com/graphd/graphd/internal/telemetry"
)

// lockedBuffer is a log that a test reads while the server writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// api is a server on a real listener, and a client of it that holds every
// answer to openapi.yaml.
type api struct {
	*testing.T
	url    string
	server *Server
	node   *node.Node
	log    *lockedBuffer
	// stop ends the server as a signal does, and waits for it.
	stop func() error
}

// setting changes a server before it begins.
type setting func(*Options, *node.Options)

func limits(change func(*Limits)) setting {
	return func(o *Options, _ *node.Options) { change(&o.Limits) }
}

// withStore lets a test stand between the server and its graph.
func withStore(wrap func(graph.Store) graph.Store) setting {
	return func(_ *Options, n *node.Options) { n.Wrap = wrap }
}

// onDisk keeps log and graph on a file system.
func onDisk(fs vfs.FS) setting {
	return func(_ *Options, n *node.Options) { n.Store, n.Dir, n.FS = node.Embedded, "data", fs }
}

func serve(t *testing.T, settings ...setting) *api {
	t.Helper()
	log := &lockedBuffer{}
	logger, err := telemetry.NewLogger(log, telemetry.LogOptions{Level: "debug", Format: "text"})
	if err != nil {
		t.Fatal(err)
	}
	tel, err := telemetry.New(t.Context(), telemetry.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Telemetry: tel, Logger: logger, Version: "test", Limits: DefaultLimits()}
	nodeOpt := node.Options{InboxBytes: 1 << 20, Traces: tel.Traces, Meters: tel.Meters, Logger: logger}
	for _, s := range settings {
		s(&opt, &nodeOpt)
	}
	if opt.Node, err = node.Open(nodeOpt); err != nil {
		t.Fatal(err)
	}
	// After all that a test cleans up itself: what its store waits for.
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // nobody reads it any more
		if err := opt.Node.Close(ctx); err != nil && !errors.Is(err, graph.ErrClosed) {
			t.Error(err)
		}
	})
	server, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, ln, 20*time.Second) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", tail(log.String()))
		}
	})
	return &api{T: t, url: "http://" + ln.Addr().String(), server: server, node: opt.Node, log: log, stop: stop}
}

func tail(s string) string { return s[max(0, len(s)-1500):] }

// answer is what the server answered.
type answer struct {
	*api
	status int
	header http.Header
	body   []byte
}

// send sends a request and holds its answer to openapi.yaml. Headers are pairs.
func (a *api) send(method, path string, body io.Reader, headers ...string) *answer {
	a.Helper()
	r, err := http.NewRequestWithContext(a.Context(), method, a.url+path, body)
	if err != nil {
		a.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		a.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.Fatalf("%s %s: %v", method, path, err)
	}
	if !utf8.Valid(text) {
		a.Errorf("%s %s: the answer is not valid UTF-8: %q", method, path, text)
	}
	out := &answer{a, response.StatusCode, response.Header, text}
	contract(a.T).check(a.T, method, r.URL.Path, out)
	return out
}

func (a *api) get(path string, headers ...string) *answer {
	a.Helper()
	return a.send("GET", path, nil, headers...)
}

// post sends a body. It has the answer wait for the graph, unless the headers say
// otherwise, so that what is read next shows it.
func (a *api) post(path, body string, headers ...string) *answer {
	a.Helper()
	if !slices.Contains(headers, "Prefer") {
		headers = append(headers, "Prefer", "wait=60")
	}
	return a.send("POST", path, strings.NewReader(body), headers...)
}

// settled waits until the graph shows all that was sent.
func (a *api) settled() *api {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), time.Minute)
	defer cancel()
	if err := a.node.Graph.Settled(ctx); err != nil {
		a.Fatalf("the graph does not settle: %v", err)
	}
	return a
}

// is checks the status.
func (a *answer) is(status int) *answer {
	a.Helper()
	if a.status != status {
		a.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// json reads the body.
func (a *answer) json() map[string]any {
	a.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.Fatalf("%v in %s", err, a.body)
	}
	return v
}

// at reads a value in the body: keys of objects, and indexes of arrays.
func (a *answer) at(path ...any) any {
	a.Helper()
	return dig(a.T, a.json(), path...)
}

func dig(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, ok := v.(map[string]any)
			if !ok {
				t.Fatalf("%v is no object with %q", v, step)
			}
			v = o[step]
		case int:
			list, ok := v.([]any)
			if !ok || step >= len(list) {
				t.Fatalf("%v has no element %d", v, step)
			}
			v = list[step]
		}
	}
	return v
}

// has checks a value in the body.
func (a *answer) has(want any, path ...any) *answer {
	a.Helper()
	if n, ok := want.(int); ok {
		want = float64(n)
	}
	if got := a.at(path...); got != want {
		a.Errorf("%v is %v, want %v in %s", path, got, want, tail(string(a.body)))
	}
	return a
}

// problem checks that the answer is a problem of a kind and has a fault at a
// place: a JSON pointer, or a parameter or header by name.
func (a *answer) problem(status int, kind, place string) *answer {
	a.Helper()
	a.is(status).has("urn:graphd:problem:"+kind, "type").has(status, "status")
	faults := a.at("errors").([]any)
	for _, f := range faults {
		for _, member := range []string{"pointer", "parameter", "header"} {
			if v, ok := f.(map[string]any)[member]; ok && v == place {
				return a
			}
		}
	}
	if place != "-" {
		a.Errorf("no fault at %q: %s", place, a.body)
	}
	return a
}

// count is how many distinct events the store has.
func (a *api) count() int {
	a.Helper()
	return int(a.get("/api/v1/stats").is(200).at("events").(float64))
}

// list reads all pages of a list.
func (a *api) list(path string, limit int) (items []any) {
	a.Helper()
	join := "?"
	if strings.Contains(path, "?") {
		join = "&"
	}
	cursor := ""
	for range 10_000 {
		page := a.get(path + join + fmt.Sprintf("limit=%d", limit) + cursor).is(200)
		got := page.at("items").([]any)
		if len(got) > limit {
			a.Fatalf("%d items on a page of %d", len(got), limit)
		}
		items = append(items, got...)
		next := page.at("next")
		if next == nil {
			return items
		}
		cursor = "&cursor=" + url.QueryEscape(next.(string))
	}
	a.Fatal("the list has no end")
	return nil
}

// runEvent writes a run event. Further members, such as `"inputs": []`, come
// behind the job.
func runEvent(kind, at, runID, job string, members ...string) string {
	e := fmt.Sprintf(`{"eventType":%q,"eventTime":%q,"producer":"https://example.com/etl/2.1",`+
		`"schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",`+
		`"run":{"runId":%q},"job":{"namespace":"warehouse","name":%q}`, kind, at, runID, job)
	for _, m := range members {
		e += "," + m
	}
	return e + "}"
}

// uuid is the n-th run ID of a test.
func uuid(n int) string { return fmt.Sprintf("01972f3a-0000-7000-8000-%012x", n) }

// datasets writes a list of datasets of one namespace.
func datasets(member string, names ...string) string {
	var list []string
	for _, n := range names {
		list = append(list, fmt.Sprintf(`{"namespace":"postgres://db:5432","name":%q}`, n))
	}
	return fmt.Sprintf("%q:[%s]", member, strings.Join(list, ","))
}

// flow is a completed run of a job that reads and writes.
func flow(n int, job string, inputs, outputs []string) string {
	return runEvent("COMPLETE", fmt.Sprintf("2026-03-01T10:00:%02d.%03dZ", n/1000%60, n%1000), uuid(n), job,
		datasets("inputs", inputs...), datasets("outputs", outputs...))
}
