package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/node"
)

// TestDataScripts runs the scripts below testdata/data, which keep data in
// directories. Beside the usual commands they have await FILE VAR, which sets a
// variable to the URL that a server writes to FILE, and terminate, which sends
// SIGTERM to what runs in the background.
func TestDataScripts(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/data",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": func(ts *testscript.TestScript, _ bool, args []string) {
				for range 1500 {
					text, err := os.ReadFile(ts.MkAbs(args[0]))
					if m := address.FindStringSubmatch(string(text)); err == nil && m != nil {
						ts.Setenv(args[1], m[1])
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
				ts.Fatalf("no server writes to %s", args[0])
			},
			"terminate": func(ts *testscript.TestScript, _ bool, _ []string) {
				for _, cmd := range ts.BackgroundCmds() {
					if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
						ts.Fatalf("terminate: %v", err)
					}
				}
			},
		},
	})
}

// stuck is a graph that is not written before it may be.
type stuck struct {
	graph.Store
	may chan struct{}
	err error
}

func (s *stuck) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	select {
	case <-s.may:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	return s.Store.Write(ctx, b)
}

// said is what a command says on the way.
type said chan string

func (s said) say(format string, _ ...any) { s <- format }

func openLocal(t *testing.T, err error) (in *localIntake, s *stuck, told said) {
	t.Helper()
	s, told = &stuck{may: make(chan struct{}), err: err}, make(said, 10)
	n, bad := node.Open(node.Options{Wrap: func(store graph.Store) graph.Store { s.Store = store; return s }})
	if bad != nil {
		t.Fatal(bad)
	}
	in = &localIntake{n, told.say}
	items, bad := in.send(t.Context(), [][]byte{[]byte(event), []byte("{}")})
	if bad != nil || items[0].Receipt == nil || items[0].Receipt.Outcome != fact.New || items[1].Err == nil {
		t.Fatalf("%v: %+v", bad, items)
	}
	return in, s, told
}

func TestLocalIntakeWaitsForTheGraphAndSaysSo(t *testing.T) {
	in, s, told := openLocal(t, nil)
	ended := make(chan error)
	go func() { ended <- in.close(t.Context()) }()
	if text := <-told; !strings.Contains(text, "all events are kept; waiting for the graph") {
		t.Errorf("told: %s", text)
	}
	close(s.may)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if s := in.node.Graph.Stats(); s.Position != 1 || s.Settling {
		t.Errorf("it did not wait: %+v", s)
	}
}

func TestLocalIntakeSaysThatTheGraphIsBehind(t *testing.T) {
	fire := errors.New("the disk is on fire")
	in, s, _ := openLocal(t, fire)
	close(s.may)
	if err := in.close(t.Context()); !errors.Is(err, fire) || !strings.Contains(err.Error(), "what was taken in is kept") {
		t.Errorf("a graph that cannot be written: %v", err)
	}
	in, _, _ = openLocal(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := in.close(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "it goes on from there at the next start") {
		t.Errorf("an interrupt: %v", err)
	}
}

// A graph that the rules do not fit any more cannot be had now: a snapshot must
// not be of less than what is kept.
func TestLocalSnapshotOfAGraphThatIsBehind(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "events.ndjson")
	if err := os.WriteFile(file, []byte(event), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if code, _, stderr := ingestAll(t.Context(), nil, "--data", data, file); code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	// Something stands in the place of the graph.
	if err := os.RemoveAll(filepath.Join(data, "graph")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "graph"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr output
	code := run(t.Context(), []string{"snapshot", "--data", data}, nil, &stdout, &stderr, func(string) string { return "" })
	if code != exitNotNow || stdout.String() != "" || !strings.Contains(stderr.String(), "the graph does not have all that the log has") {
		t.Errorf("exit status %d: %s%s", code, &stdout, &stderr)
	}
	// What comes is kept all the same, and it is told that the graph lacks it.
	code, out, told := ingestAll(t.Context(), nil, "--data", data, file)
	if code != exitFailed || !strings.Contains(out, "retry                    1\n") || !strings.Contains(told, "what was taken in is kept, but the graph does not have all of it") {
		t.Errorf("exit status %d: %s%s", code, out, told)
	}
}

// A log that is corrupt ends the server with one line, which says what to do.
func TestServeTellsOfACorruptLog(t *testing.T) {
	data := t.TempDir()
	url, _, stop := serveInProcess(t, nil, "--data", data)
	ask(t, "POST", url+"/api/v1/lineage", event)
	if code := stop(); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	manifests, err := filepath.Glob(filepath.Join(data, "ledger", "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	for _, path := range manifests {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr output
	code := run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--data", data}, strings.NewReader(""), &stdout, &stderr, func(string) string { return "" })
	got := stderr.String()
	if code != exitFailed || strings.Count(got, "\n") != 1 || !strings.Contains(got, "the ledger is corrupt") ||
		!strings.Contains(got, "restore "+filepath.Join(data, "ledger")+" from a backup") {
		t.Errorf("exit status %d: %s", code, got)
	}
}
