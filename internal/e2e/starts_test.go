package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bulky is an event of so many bytes that cannot be compressed well.
func bulky(t *testing.T, i, bytes int) []byte {
	t.Helper()
	noise := make([]byte, bytes/2)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, `{"eventType":"COMPLETE","eventTime":"2026-11-01T00:00:00Z","producer":"https://example.com/p","schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",`+
		`"run":{"runId":"00000000-0000-4000-8000-%012d"},"job":{"namespace":"jobs","name":"job %d"},"inputs":[{"namespace":"db","name":"raw"}],"outputs":[{"namespace":"db","name":"mart %s"}]}`,
		i, i%100, hex.EncodeToString(noise))
}

// TestFirstEventAfterAKill is about clients that try twice, a second apart, and
// then lose the event: a server that starts again must take it in by then, with
// write-ahead logs that are as full as they get.
func TestFirstEventAfterAKill(t *testing.T) {
	binary := build(t)
	address, dir := freePort(t), t.TempDir()
	client := &http.Client{Timeout: 10 * time.Second}
	n := 0
	best := time.Hour
	for round := range 5 {
		server := start(t, binary, address, dir)
		for range 3_000 { // of 8 KB, of which half is noise: some 14 MB in the log
			if status := post(client, server.url, bulky(t, n, 8192)); status != http.StatusCreated {
				t.Fatalf("event %d: status %d", n, status)
			}
			n++
		}
		server.kill()
		begin := time.Now()
		server = start(t, binary, address, dir)
		if status := post(client, server.url, bulky(t, n, 100)); status != http.StatusCreated {
			t.Fatalf("the first event after kill %d: status %d", round+1, status)
		}
		n++
		took := time.Since(begin)
		t.Logf("kill %d: the first event was acknowledged after %s", round+1, took)
		best = min(best, took)
		if round < 4 {
			server.kill()
			continue
		}
		if c := quiet(t, server.url); c.Events != n {
			t.Errorf("%d events are in the graph, want %d", c.Events, n)
		}
	}
	// The machine may be busy; the best of five tells what the server needs.
	if best > time.Second {
		t.Errorf("the first event was acknowledged after %s at best, want one second", best)
	}
}

func TestTwoServersOnOneDirectory(t *testing.T) {
	binary := build(t)
	dir := t.TempDir()
	start(t, binary, freePort(t), dir)
	out, err := exec.Command(binary, "serve", "--data", dir, "--listen", freePort(t)).CombinedOutput()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != 1 || !strings.Contains(string(out), dir) || !strings.Contains(string(out), "another graphd") {
		t.Errorf("a second server on a directory ends with %v and says\n%s", err, out)
	}
}

// TestFullDisk uses the disk budget up.
func TestFullDisk(t *testing.T) {
	binary := build(t)
	address, dir := freePort(t), t.TempDir()
	server := start(t, binary, address, dir, "--disk-budget", "128MiB")
	client := &http.Client{Timeout: 30 * time.Second}
	var kept [][]byte
	full := false
	for i := range 200 {
		body := bulky(t, i, 2<<20)
		status := post(client, server.url, body)
		if status == http.StatusServiceUnavailable {
			full = true
			break
		}
		if status != http.StatusCreated {
			t.Fatalf("event %d: status %d", i, status)
		}
		kept = append(kept, body)
	}
	if !full {
		t.Fatalf("%d events of 2 MB were taken in on a budget of 128 MiB", len(kept))
	}
	answer, err := client.Post(server.url+"/api/v1/lineage", "application/json", strings.NewReader(string(bulky(t, 1000, 2<<20))))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("a full disk answers %d with Retry-After %q, want 503 with one", answer.StatusCode, answer.Header.Get("Retry-After"))
	}
	if status := post(client, server.url, kept[0]); status != http.StatusCreated {
		t.Errorf("a retry of what is kept answers %d, want 201: it takes no room", status)
	}
	quiet(t, server.url)
	sameAsFold(t, binary, server.url, kept)
	server.kill()
	server = start(t, binary, address, dir, "--disk-budget", "1GiB")
	more := bulky(t, 2000, 1000)
	if status := post(client, server.url, more); status != http.StatusCreated {
		t.Errorf("with a larger budget an event answers %d, want 201", status)
	}
	quiet(t, server.url)
	sameAsFold(t, binary, server.url, append(kept, more))
}

// TestEndInOrder ends a server with SIGTERM that is sent events.
func TestEndInOrder(t *testing.T) {
	binary := build(t)
	dir := t.TempDir()
	server := start(t, binary, freePort(t), dir)
	client := &http.Client{Timeout: 10 * time.Second}
	var kept [][]byte
	for i, body := range someEvents(400) {
		if i == 300 {
			if err := server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		if post(client, server.url, body) != http.StatusCreated {
			break
		}
		kept = append(kept, body)
	}
	if err := server.cmd.Wait(); err != nil {
		t.Errorf("SIGTERM ended the server with %v\n%s", err, server.stderr)
	}
	if len(kept) < 300 {
		t.Fatalf("%d events were taken in before the end, want 300 at least", len(kept))
	}
	got, other := output(t, binary, "snapshot", "--data", dir), t.TempDir()
	again := start(t, binary, freePort(t), other)
	for _, body := range kept {
		post(client, again.url, body)
	}
	quiet(t, again.url)
	if want := output(t, binary, "snapshot", "--to", again.url); string(got) != string(want) {
		t.Error("what was acknowledged before the end is not what the directory has")
	}
}
