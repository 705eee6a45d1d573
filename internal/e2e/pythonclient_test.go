package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/sharedtest"
)

// TestPythonClient lets the real openlineage-python client send three days of a
// pipeline, by each of its transports, through a network that loses answers, and
// asks graphd what became of it.
func TestPythonClient(t *testing.T) {
	producer := sharedtest.Shared(t, "producers", "python-client")
	python := clientPython(t, producer)
	binary := build(t)
	for _, transport := range []string{"http", "gzip", "async", "composite"} {
		t.Run(transport, func(t *testing.T) {
			server := serve(t, binary)
			network := newNetwork(t, server)
			truthFile := filepath.Join(t.TempDir(), "truth.json")
			cmd := exec.Command(python, filepath.Join(producer, "emit.py"), "--transport", transport, "--truth", truthFile)
			cmd.Env = append(os.Environ(), "OPENLINEAGE_URL="+network.URL)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("the client failed: %v\n%s", err, out)
			}
			network.check(t, transport)
			settled(t, server)
			compare(t, server, truthFile)
		})
	}
}

// clientPython returns the interpreter of a virtual environment with the client,
// which is made once and kept.
func clientPython(t *testing.T, producer string) string {
	t.Helper()
	missing := func(format string, args ...any) {
		message := "the openlineage-python client did not run: " + fmt.Sprintf(format, args...)
		if os.Getenv("CI") == "true" {
			t.Fatal(strings.ToUpper(message))
		}
		t.Skip(message)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		missing("no python3")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		missing("%v", err)
	}
	venv := filepath.Join(cache, "graphd-test", "openlineage-python")
	if out, err := exec.Command(filepath.Join(producer, "setup.sh"), venv).CombinedOutput(); err != nil {
		missing("%v\n%s", err, out)
	}
	return filepath.Join(venv, "bin", "python")
}

// build builds graphd as the Makefile does.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "graphd")
	cmd := exec.Command("go", "build", "-o", binary, "github.com/graphd/graphd/cmd/graphd")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building graphd: %v\n%s", err, out)
	}
	return binary
}

// serve starts graphd on a free port and returns its base URL.
func serve(t *testing.T, binary string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(binary, "serve", "--data", t.TempDir(), "--listen", address)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("graphd did not end well: %v\n%s", err, &log)
		}
	})
	for range 100 {
		if answer, err := http.Get("http://" + address + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return "http://" + address
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("graphd is not ready after 5 s:\n%s", &log)
	return ""
}

// network stands between the client and graphd. It delivers every request, but
// for each ninth one the client is told 503, as a load balancer does that gave up
// too early: so the client sends again what graphd has.
type network struct {
	*httptest.Server
	mu        sync.Mutex
	answers   []int // of graphd
	encodings map[string]int
	lost      int
}

func newNetwork(t *testing.T, server string) *network {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{encodings: map[string]int{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	proxy.ModifyResponse = func(answer *http.Response) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.answers = append(n.answers, answer.StatusCode)
		n.encodings[answer.Request.Header.Get("Content-Encoding")]++
		if len(n.answers)%9 == 0 {
			n.lost++
			return errors.New("the answer was lost")
		}
		return nil
	}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusServiceUnavailable) }
	n.Server = httptest.NewServer(proxy)
	t.Cleanup(n.Close)
	return n
}

func (n *network) check(t *testing.T, transport string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, status := range n.answers {
		if status != http.StatusCreated {
			t.Errorf("request %d was answered %d, want 201", i+1, status)
		}
	}
	if n.lost == 0 {
		t.Error("no answer was lost, so nothing was sent again")
	}
	if transport == "gzip" && n.encodings["gzip"] != len(n.answers) {
		t.Errorf("encodings %v, want gzip for all", n.encodings)
	}
}

// settled waits until the graph shows all that was taken in.
func settled(t *testing.T, server string) {
	t.Helper()
	for range 600 {
		var stats struct {
			Settling int
			Log      struct{ Last, Merged uint64 }
		}
		get(t, server+"/api/v1/stats", &stats)
		if stats.Log.Last == stats.Log.Merged && stats.Settling == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the graph does not settle within half a minute")
}

// edge is a true or a current pair of datasets of one job.
type edge struct{ job, input, output string }

func (e edge) String() string { return e.job + ": " + e.input + " -> " + e.output }

// compare holds what graphd answers to what the producer says it did.
func compare(t *testing.T, server, truthFile string) {
	t.Helper()
	text, err := os.ReadFile(truthFile)
	if err != nil {
		t.Fatal(err)
	}
	var truth struct {
		Slots map[string]struct {
			Attempts []struct {
				RunID   string
				Outcome string
			}
		}
		Edges [][3]string `json:"edges_job_input_output"`
	}
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	var want []edge
	for _, e := range truth.Edges {
		want = append(want, edge{e[0], e[1], e[2]})
	}
	got := currentEdges(t, server)
	order := func(a, b edge) int { return strings.Compare(a.String(), b.String()) }
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if !slices.Equal(got, want) {
		t.Errorf("current edges:\n%v\nwant\n%v", got, want)
	}
	runs := list(t, server+"/api/v1/runs")
	if len(runs) != len(truth.Slots) {
		t.Errorf("%d logical runs, want %d", len(runs), len(truth.Slots))
	}
	states := map[string]int{}
	for _, r := range runs {
		states[r["state"].(string)]++
	}
	wantStates := map[string]int{}
	for _, s := range truth.Slots {
		last := s.Attempts[len(s.Attempts)-1].Outcome
		wantStates[map[string]string{"COMPLETE": "complete", "FAIL": "failed", "ABORT": "aborted"}[last]]++
	}
	if fmt.Sprint(states) != fmt.Sprint(wantStates) {
		t.Errorf("states of the runs %v, want %v", states, wantStates)
	}
}

// currentEdges reads the lineage of every dataset, one level up.
func currentEdges(t *testing.T, server string) (edges []edge) {
	t.Helper()
	for _, d := range list(t, server+"/api/v1/datasets") {
		var answer struct {
			Root  struct{ ID string }
			Nodes []struct {
				ID, Type, Name string
				Job            *struct{ Name string }
			}
			Edges []struct{ From, To string }
		}
		get(t, fmt.Sprintf("%s/api/v1/lineage?type=dataset&id=%s&direction=upstream&depth=1", server, d["id"]), &answer)
		names, jobs := map[string]string{}, map[string]string{}
		for _, n := range answer.Nodes {
			names[n.ID] = n.Name
			if n.Job != nil {
				jobs[n.ID] = n.Job.Name
			}
		}
		for _, out := range answer.Edges {
			if out.To != answer.Root.ID {
				continue
			}
			for _, in := range answer.Edges {
				if in.To == out.From {
					e := edge{jobs[out.From], names[in.From], names[out.To]}
					if !slices.Contains(edges, e) {
						edges = append(edges, e)
					}
				}
			}
		}
	}
	return edges
}

// list reads a listing to its end.
func list(t *testing.T, address string) (all []map[string]any) {
	t.Helper()
	cursor := ""
	for range 100 {
		var page struct {
			Items []map[string]any
			Next  string
		}
		get(t, address+"?limit=7&cursor="+url.QueryEscape(cursor), &page)
		all = append(all, page.Items...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
	t.Fatalf("%s has no end", address)
	return nil
}

func get(t *testing.T, address string, answer any) {
	t.Helper()
	address = strings.TrimSuffix(address, "&cursor=")
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d\n%s", address, response.StatusCode, body)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		t.Fatalf("GET %s: %v\n%s", address, err, body)
	}
}
