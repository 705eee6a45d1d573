package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is what a command writes, while it runs.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var address = regexp.MustCompile(`serves (http://127\.0\.0\.1:\d+)`)

// serveInProcess runs graphd serve on a free port until stop, which returns its
// exit status. It keeps its data in memory unless args or env say where.
func serveInProcess(t *testing.T, env map[string]string, args ...string) (url string, log *output, stop func() int) {
	t.Helper()
	if !slices.Contains(args, "--data") && env["GRAPHD_DATA"] == "" {
		args = append(args, "--store", "memory")
	}
	ctx, cancel := context.WithCancel(context.Background())
	stdout, stderr := &output{}, &output{}
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), strings.NewReader(""), stdout, stderr,
			func(name string) string { return env[name] })
	}()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-status
	})
	t.Cleanup(func() { stop() })
	for range 500 {
		if m := address.FindStringSubmatch(stdout.String()); m != nil {
			return m[1], stderr, stop
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it does not serve: %s", stderr)
	return "", nil, nil
}

const event = `{"eventType":"COMPLETE","eventTime":"2026-03-01T10:00:00Z","producer":"https://example.com/etl/2.1",` +
	`"schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent","run":{"runId":"01972f3a-0000-7000-8000-000000000001"},` +
	`"job":{"namespace":"shop","name":"load"},"inputs":[{"namespace":"s3://lake","name":"orders/2026-03-01"}],"outputs":[{"namespace":"db","name":"orders"}]}`

func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Prefer", "wait=60") // what is read next shows it
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestServe(t *testing.T) {
	url, log, stop := serveInProcess(t, map[string]string{"GRAPHD_LOG_FORMAT": "json", "GRAPHD_LOG_LEVEL": "debug"}, "--disk-budget", "200MB")
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) { // the graph is opened in the background
		status, text := ask(t, "GET", url+"/readyz", "")
		if status == 200 {
			break
		}
		if status != 503 || time.Since(begin) > 30*time.Second {
			t.Fatalf("/readyz: %d %s", status, text)
		}
	}
	for _, outcome := range []string{"new", "retry"} {
		if status, text := ask(t, "POST", url+"/api/v1/lineage", event); status != 201 || !strings.Contains(text, `"outcome":"`+outcome+`"`) {
			t.Errorf("%d %s", status, text)
		}
	}
	if _, text := ask(t, "GET", url+"/api/v1/datasets?namespace=s3://lake", ""); !strings.Contains(text, `"name":"orders"`) {
		t.Errorf("the path keeps its date: %s", text)
	}
	if _, text := ask(t, "GET", url+"/api/v1/stats", ""); !strings.Contains(text, `"budget":200000000`) {
		t.Errorf("stats: %s", text)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	for _, want := range []string{`"msg":"graphd serves"`, `"msg":"request","method":"POST","route":"/api/v1/lineage","status":201`, `"trace_id"`, `"msg":"graphd ends"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in the log:\n%s", want, log)
		}
	}
	if _, err := http.Get(url + "/livez"); err == nil {
		t.Error("it still listens")
	}
}

func TestServeKeepsNamesIfTold(t *testing.T) {
	url, _, _ := serveInProcess(t, map[string]string{"GRAPHD_COLLAPSE_NAMES": "false"})
	ask(t, "POST", url+"/api/v1/lineage", event)
	if _, text := ask(t, "GET", url+"/api/v1/datasets?namespace=s3://lake", ""); !strings.Contains(text, `"name":"orders/2026-03-01"`) {
		t.Errorf("the name is cut: %s", text)
	}
}

func TestServeTellsOfATakenPort(t *testing.T) {
	url, _, _ := serveInProcess(t, nil)
	var stderr output
	code := run(t.Context(), []string{"serve", "--store", "memory", "--listen", strings.TrimPrefix(url, "http://")}, nil, io.Discard, &stderr, func(string) string { return "" })
	if code != 1 || !strings.Contains(stderr.String(), "address already in use") {
		t.Errorf("exit status %d: %s", code, &stderr)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1000": 1000, "512MiB": 512 << 20, "2gb": 2e9, " 3 KiB ": 3072, "7b": 7, "8TiB": 8 << 40, "9223372036854775807": 1<<63 - 1,
	} {
		var s size
		if err := s.Set(text); err != nil || int64(s) != want {
			t.Errorf("%q is %d, %v, want %d", text, s, err, want)
		}
		var again size
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%q becomes %q", text, s.String())
		}
	}
	for _, text := range []string{"", "MB", "-1", "1.5GB", "9999999TB", "1 PB", "0x10"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %d", text, s)
		}
	}
}
