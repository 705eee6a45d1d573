package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// process is a graphd that a test may kill.
type process struct {
	cmd    *exec.Cmd
	url    string
	stderr *bytes.Buffer
}

// freePort returns an address that nobody listens on, nor gets for a connection
// while a server that had it is down.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if ln, err := net.Listen("tcp", address); err == nil {
			if err := ln.Close(); err != nil {
				t.Fatal(err)
			}
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// start starts graphd and returns when it has said where it serves.
func start(t *testing.T, binary, address, dir string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, append([]string{"serve", "--data", dir, "--listen", address}, args...)...), stderr: &bytes.Buffer{}}
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.kill()
		t.Fatalf("graphd did not start: %v\n%s", err, p.stderr)
	}
	_, p.url, _ = strings.Cut(strings.TrimSpace(line), " serves ")
	return p
}

// kill ends the process as kill -9 does; killing twice is harmless.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()
	}
}

// post sends one event, not waiting for the graph, and returns the status, 0 if
// there was no answer.
func post(client *http.Client, url string, body []byte) int {
	r, err := http.NewRequest(http.MethodPost, url+"/api/v1/lineage", bytes.NewReader(body))
	if err != nil {
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Prefer", "respond-async")
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return 0
	}
	return answer.StatusCode
}

// counts is what a server says of itself.
type counts struct {
	Events     int            `json:"events"`
	Deliveries map[string]int `json:"deliveries"`
	Settling   int            `json:"settling"`
	Log        struct {
		Last, Merged int
	} `json:"log"`
}

// quiet waits until the graph has all of the log and nothing is pending.
func quiet(t *testing.T, url string) (c counts) {
	t.Helper()
	for range 600 {
		answer, err := http.Get(url + "/api/v1/stats")
		if err == nil {
			err = json.NewDecoder(answer.Body).Decode(&c)
			answer.Body.Close()
			if err == nil && answer.StatusCode == http.StatusOK && c.Settling == 0 && c.Log.Last == c.Log.Merged {
				return c
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the graph has not settled after a minute: %+v", c)
	return c
}

// output runs a command of graphd.
func output(t *testing.T, binary string, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("graphd %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

// sameAsFold compares a server's snapshot with the Fold of events.
func sameAsFold(t *testing.T, binary, url string, bodies [][]byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, bytes.Join(bodies, []byte("\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	got, want := output(t, binary, "snapshot", "--to", url), output(t, binary, "fold", file)
	if !bytes.Equal(got, want) {
		t.Errorf("the snapshot has %d bytes, that of fold %d, and they differ", len(got), len(want))
	}
}

// someEvents are n events of runs that each read and write, with a slot of their
// own; every fourth run fails.
func someEvents(n int) (bodies [][]byte) {
	const header = `"producer":"https://example.com/p","schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"`
	for i := range n {
		run, kind := i/2, "START"
		if i%2 == 1 {
			if kind = "COMPLETE"; run%4 == 0 {
				kind = "FAIL"
			}
		}
		bodies = append(bodies, fmt.Appendf(nil, `{"eventType":%q,"eventTime":"2026-11-01T00:%02d:%02dZ",%s,"run":{"runId":"00000000-0000-4000-8000-%012d"},`+
			`"job":{"namespace":"jobs","name":"job %d"},"inputs":[{"namespace":"db","name":"raw %d"}],"outputs":[{"namespace":"db","name":"mart %d"}]}`,
			kind, i/60, i%60, header, run, run%10, run%10, run%5))
	}
	return bodies
}
