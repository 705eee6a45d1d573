package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestRemoteScripts runs the scripts below testdata/remote, each with a server of
// its own at $URL.
func TestRemoteScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/remote",
		Setup: func(env *testscript.Env) error {
			url, _, _ := serveInProcess(t, nil)
			env.Setenv("URL", url)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"gzip": compressor(".gz", func(text []byte) []byte {
				var b bytes.Buffer
				w := gzip.NewWriter(&b)
				w.Write(text)
				w.Close()
				return b.Bytes()
			}),
			// repeat N FROM TO writes a file of the lines of another, N times.
			"repeat": func(ts *testscript.TestScript, _ bool, args []string) {
				n := 0
				if _, err := fmt.Sscan(args[0], &n); err != nil {
					ts.Fatalf("repeat: %v", err)
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Repeat(ts.ReadFile(args[1]), n)), 0o600))
			},
		},
	})
}

// batches is a server that takes batches in. handle may answer, and says whether
// it did.
func batches(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, lines int, size int64) bool) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines, size := 0, int64(0)
		for in := bufio.NewReader(r.Body); ; {
			part, err := in.ReadSlice('\n')
			size += int64(len(part))
			if err == nil {
				lines++
			} else if err != bufio.ErrBufferFull {
				break
			}
		}
		if handle(w, r, lines, size) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","failed_events":[],"receipts":[%s]}`, strings.TrimSuffix(strings.Repeat(`{"outcome":"new"},`, lines), ","))
	}))
	t.Cleanup(srv.Close)
	return srv
}

// generated is a stream of events that is never held whole.
type generated struct {
	event string
	left  int
	rest  string
	read  atomic.Int64
}

// Read implements io.Reader.
func (g *generated) Read(p []byte) (int, error) {
	if g.rest == "" {
		if g.left == 0 {
			return 0, io.EOF
		}
		g.left--
		g.rest = g.event
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	g.read.Add(int64(n))
	return n, nil
}

func ingestAll(ctx context.Context, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, log output
	code = run(ctx, append([]string{"ingest"}, args...), stdin, &out, &log, func(string) string { return "" })
	return code, out.String(), log.String()
}

// However much there is to read, only so much of it is held, and only so many
// requests run at once.
func TestIngestHoldsNoMoreThanItsBatches(t *testing.T) {
	const ahead = (batchesAtOnce+2)*batchBytes + 1<<20
	for length, count := range map[int]int{200: 20*batchEvents + 1, 40_000: 2 * ahead / 40_000, batchBytes + 5: 2*ahead/batchBytes + 1} {
		in := &generated{event: `{"a":"` + strings.Repeat("x", length) + "\"}\n", left: count}
		events := in.left
		var running, most, acknowledged, furthest atomic.Int64
		raise := func(to *atomic.Int64, n int64) {
			for old := to.Load(); n > old && !to.CompareAndSwap(old, n); old = to.Load() {
			}
		}
		srv := batches(t, func(_ http.ResponseWriter, _ *http.Request, lines int, size int64) bool {
			raise(&most, running.Add(1))
			defer running.Add(-1)
			if lines > batchEvents || size > batchBytes+int64(lines) && lines > 1 {
				t.Errorf("a batch of %d events and %d bytes", lines, size)
			}
			raise(&furthest, in.read.Load()-acknowledged.Load())
			acknowledged.Add(size)
			return false
		})
		code, stdout, stderr := ingestAll(t.Context(), in, "--json", "--to", srv.URL, "-")
		var got summary
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || stderr != "" || got.Events != int64(events) || got.Outcomes["new"] != int64(events) {
			t.Errorf("exit status %d, %v: %s%s", code, err, stdout, stderr)
		}
		if most.Load() > batchesAtOnce {
			t.Errorf("%d requests at once", most.Load())
		}
		if limit := int64(ahead + (batchesAtOnce+2)*len(in.event)); furthest.Load() > limit {
			t.Errorf("events of %d bytes: %d bytes were read ahead, at most %d may be", len(in.event), furthest.Load(), limit)
		}
	}
}

func TestIngestThatIsInterruptedSaysWhatWasTakenIn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var n atomic.Int64
	srv := batches(t, func(_ http.ResponseWriter, r *http.Request, _ int, _ int64) bool {
		switch n.Add(1) {
		case 1:
			return false
		case batchesAtOnce + 1: // sent by whoever has the first one's answer
			cancel()
		}
		<-r.Context().Done()
		return true
	})
	code, stdout, stderr := ingestAll(ctx, &generated{event: "{}\n", left: 5000}, "--json", "--to", srv.URL, "-")
	var got summary
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	if code != exitFailed || got.Outcomes["new"] != batchEvents || got.Unacknowledged != got.Events-batchEvents || got.Unacknowledged < batchEvents {
		t.Errorf("exit status %d: %s", code, stdout)
	}
	if !strings.Contains(stderr, fmt.Sprintf("interrupted: %d of the events read may not be taken in", got.Unacknowledged)) {
		t.Errorf("told: %s", stderr)
	}
}

// An interrupt ends it also while it reads what nobody writes.
func TestIngestEndsWhileItReads(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, pipe := io.Pipe()
	defer pipe.Close()
	got := make(chan int, 1)
	srv := batches(t, func(_ http.ResponseWriter, _ *http.Request, lines int, _ int64) bool {
		got <- lines
		return false
	})
	status := make(chan int, 1)
	var stdout string
	go func() {
		code, out, _ := ingestAll(ctx, in, "--to", srv.URL, "-")
		stdout = out
		status <- code
	}()
	// What comes slowly is not held back until there is more of it.
	io.WriteString(pipe, "{\"a\":1}\n{\"a\":2}\n{\"a\"")
	if n := <-got; n != 2 {
		t.Errorf("%d events arrived", n)
	}
	cancel()
	if code := <-status; code != exitFailed {
		t.Errorf("exit status %d: %s", code, stdout)
	}
}

func TestIngestOutlivesFaults(t *testing.T) {
	var n atomic.Int64
	srv := batches(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ int64) bool {
		switch n.Add(1) {
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2: // half an answer
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"status":"success","failed_events":[],`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case 3: // no answer
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	})
	code, stdout, stderr := ingestAll(t.Context(), strings.NewReader("{}\n{}\n"), "--to", srv.URL, "-")
	if code != 0 || !strings.Contains(stdout, "new                      2\n") || n.Load() != 4 {
		t.Errorf("exit status %d after %d requests: %s%s", code, n.Load(), stdout, stderr)
	}
	if strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "503 Service Unavailable; trying again for up to 2m0s") {
		t.Errorf("told: %s", stderr)
	}
}

func TestIngestStopsAtARefusal(t *testing.T) {
	srv := batches(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ int64) bool {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"title":"Not with this key","detail":"It may only read.","status":403,"errors":[]}`)
		return true
	})
	code, stdout, stderr := ingestAll(t.Context(), strings.NewReader("{}\n"), "--to", srv.URL, "--api-key", "s3cret", "-")
	if code != exitFailed || !strings.Contains(stderr, "403 Forbidden: Not with this key. It may only read.\n") || strings.Contains(stderr, "s3cret") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	if !strings.Contains(stdout, "unacknowledged           1\n") {
		t.Errorf("summary: %s", stdout)
	}
	srv.Close()
	code, _, stderr = ingestAll(t.Context(), strings.NewReader("{}\n"), "--to", srv.URL, "--retry-for", "0", "-")
	if code != exitFailed || !strings.Contains(stderr, "connection refused") || strings.Contains(stderr, "trying again") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

func TestTextBytes(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, n int) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a/1.json", 10)
	write("a/b/2.ndjson", 200)
	write("a/b/3.jsonl", 3000)
	write("a/notes.txt", 1)
	write("zip/4.json.gz", 5)
	write("plain", 7)
	at := func(names ...string) (paths []string) {
		for _, n := range names {
			paths = append(paths, filepath.Join(dir, n))
		}
		return paths
	}
	for _, test := range []struct {
		paths []string
		want  int64
	}{
		{at("a"), 3210}, {at("a", "plain"), 3217}, {at("a/notes.txt"), 1}, {at("zip"), -1}, {at("a", "zip/4.json.gz"), -1}, {at("none"), -1},
		{[]string{"-"}, -1}, {[]string{os.DevNull}, -1}, {nil, -1},
	} {
		if got := textBytes(test.paths); got != test.want {
			t.Errorf("%v hold %d bytes, want %d", test.paths, got, test.want)
		}
	}
}
