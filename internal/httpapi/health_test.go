package httpapi

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/node"
)

// waiting is a store of which writes wait.
type waiting struct {
	graph.Store
	may chan struct{}
}

func (h *waiting) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	select {
	case <-h.may:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return h.Store.Write(ctx, b)
}

// A graph that is made from the log once more answers, and is not ready before it has
// what the log had; one that only lags is.
func TestNotReadyWhileTheGraphIsMadeAnew(t *testing.T) {
	fs := vfs.NewMem()
	one := flow(1, "j", []string{"a"}, []string{"b"})
	a := serve(t, onDisk(fs))
	a.post("/api/v1/lineage", one).is(201)
	a.settled()
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	if err := a.node.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := fs.RemoveAll("data/graph"); err != nil {
		t.Fatal(err)
	}
	h := &waiting{may: make(chan struct{})}
	write := sync.OnceFunc(func() { close(h.may) })
	a = serve(t, onDisk(fs), withStore(func(s graph.Store) graph.Store { h.Store = s; return h }))
	t.Cleanup(write)
	a.eventually("the graph is open", func() bool { return a.node.Graph.Stats().Found })
	p := a.get("/readyz").problem(503, "unavailable", "-")
	if p.at("detail") != "The graph is being made anew from the log and has come to record 0 of 1; events are taken in meanwhile." {
		t.Errorf("%s", p.body)
	}
	a.post("/api/v1/lineage", flow(2, "j", nil, nil), "Prefer", "respond-async").is(201).has("accepted", "status")
	a.get("/api/v1/datasets").is(200)
	write()
	a.settled().get("/readyz").is(200)
	a.get("/api/v1/datasets").is(200).has("a", "items", 0, "name")
}

// What is not there is told apart from what should be.
func TestAnswersToWhatIsMissing(t *testing.T) {
	for err, want := range map[error]string{
		fmt.Errorf("reading: %w", graph.NotFound{What: "dataset a:b"}):                        "404 The dataset a:b is not known here.",
		fmt.Errorf("record 7 of the log: %w: log record 7: it ends with 3", graph.ErrCorrupt): "503 The graph on disk is corrupt and is being made anew",
		fmt.Errorf("reading the log: log record 7: %w: it is missing", node.ErrLogCorrupt):    "500 The log on disk is corrupt",
	} {
		f := failureOf(err)
		if got := fmt.Sprint(f.Status, " ", f.Detail); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}
