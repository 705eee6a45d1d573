package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/node"
)

// held is a graph that is not written before it may be.
type held struct {
	graph.Store
	may chan struct{}
}

func (h *held) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	select {
	case <-h.may:
		return h.Store.Write(ctx, b)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// long is how long a test waits for what should come at once.
const long = time.Minute

func open(t *testing.T, opt node.Options) *node.Node {
	t.Helper()
	n, err := node.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		n.Close(ended)
	})
	settle(t, n)
	return n
}

// settle waits until the graph has what the log has.
func settle(t *testing.T, n *node.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if err := n.Graph.Settled(ctx); err != nil {
		t.Fatal(err)
	}
}

// completed is the n-th run of a job. Further members come behind the job.
func completed(n int, job string, members ...string) []byte {
	e := fmt.Sprintf(`{"eventType":"COMPLETE","eventTime":"2026-03-01T10:00:%02dZ","producer":"https://example.com/etl/2.1",`+
		`"schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent","run":{"runId":"01972f3a-0000-7000-8000-%012x"},`+
		`"job":{"namespace":"shop","name":%q},"inputs":[{"namespace":"db","name":"in of %s"}],"outputs":[{"namespace":"db","name":"out of %s"}]`, n%60, n, job, job, job)
	return []byte(strings.Join(append([]string{e}, members...), ",") + "}")
}

func accept(t *testing.T, n *node.Node, body []byte) *ingest.Receipt {
	t.Helper()
	r, err := n.Pipeline.Accept(t.Context(), body, long)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReceiptsTellWhatADeliveryDid(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	n := open(t, node.Options{Now: func() time.Time { return now }})
	first := accept(t, n, completed(1, "load", `"x":NaN`))
	if first.Outcome != graph.New || first.Status != ingest.InGraph || first.Run == "" || first.Attempt == "" || !first.FirstSeenAt.Equal(now) ||
		first.FirstEventTime != "2026-03-01T10:00:01Z" || len(first.Warnings) == 0 || first.IdentityVersion != n.Decoder.Version() {
		t.Errorf("the first: %+v", first)
	}
	now = now.Add(time.Hour)
	// The same bytes are recognised without being read.
	again := accept(t, n, completed(1, "load", `"x":NaN`))
	if again.Outcome != graph.Retry || again.Status != ingest.InGraph || again.EventID != first.EventID || again.Run != "" || again.Attempt != "" ||
		!again.FirstSeenAt.Equal(first.FirstSeenAt) || again.FirstEventTime != first.FirstEventTime || again.Warnings == nil || len(again.Warnings) > 0 {
		t.Errorf("the same bytes: %+v", again)
	}
	// The same said in other bytes is read, and then recognised by what it says.
	spaced := accept(t, n, append([]byte(" "), completed(1, "load", `"x":NaN`)...))
	if spaced.Outcome != graph.Retry || spaced.EventID != first.EventID || spaced.Run != first.Run || spaced.Attempt != first.Attempt || len(spaced.Warnings) == 0 {
		t.Errorf("the same in other bytes: %+v", spaced)
	}
	// The clock's time, and not that of a start, says what is in the future.
	now = time.Date(2026, 3, 1, 9, 55, 1, 0, time.UTC)
	for i, want := range []bool{false, true} { // 4 min 59 s and 5 min 1 s ahead
		early := accept(t, n, completed(2*i, fmt.Sprint("early", i)))
		future := len(early.Warnings) == 1 && early.Warnings[0].Code == "future-time"
		if future != want {
			t.Errorf("an event %d s past 10:00 at %s: %+v", 2*i, now, early.Warnings)
		}
	}
}

func TestABodyThatIsRejectedFailsAlone(t *testing.T) {
	n := open(t, node.Options{})
	good, bad := completed(1, "load"), []byte(`{"a":1}`)
	items, err := n.Pipeline.AcceptAll(t.Context(), [][]byte{bad, good, bad, good, completed(2, "load")}, long)
	if err != nil || len(items) != 5 {
		t.Fatalf("%v: %+v", err, items)
	}
	for i, want := range []graph.Outcome{"", graph.New, "", graph.Retry, graph.New} {
		var no *ingest.Rejected
		switch item := items[i]; {
		case want == "" && (!errors.As(item.Err, &no) || item.Receipt != nil):
			t.Errorf("item %d was not rejected: %+v", i, item)
		case want != "" && (item.Err != nil || item.Receipt == nil || item.Receipt.Outcome != want || item.Receipt.Status != ingest.InGraph):
			t.Errorf("item %d: %+v %+v, want %s", i, item, item.Receipt, want)
		}
	}
	if kept, total := n.Inbox.Newest(10); total != 2 || len(kept) != 2 || kept[0].Body != string(bad) {
		t.Errorf("the inbox has %d of %d: %+v", len(kept), total, kept)
	}
	if none, err := n.Pipeline.AcceptAll(t.Context(), nil, long); err != nil || len(none) != 0 {
		t.Errorf("nothing: %v %v", none, err)
	}
	if last := n.Ledger.Last(); last != 2 {
		t.Errorf("%d bodies are in the log, want 2", last)
	}
}

// Once AcceptAll has returned the caller may do what it likes with the bodies,
// though the graph has not seen them yet.
func TestBodiesAreTheCallersAgain(t *testing.T) {
	may := make(chan struct{})
	n := open(t, node.Options{Wrap: func(s graph.Store) graph.Store { return &held{s, may} }})
	once := open(t, node.Options{})
	bodies := make([][]byte, 50)
	for i := range bodies {
		bodies[i] = completed(i, fmt.Sprint("job ", i), `"x":{"text":"as it was","list":["a","b",1.5]}`)
		accept(t, once, bytes.Clone(bodies[i]))
	}
	items, err := n.Pipeline.AcceptAll(t.Context(), bodies, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range items {
		if item.Err != nil || item.Receipt.Status != ingest.InLog || item.Receipt.Run != "" {
			t.Errorf("item %d: %+v %+v", i, item, item.Receipt)
		}
		for at := range bodies[i] {
			bodies[i][at] = '!'
		}
	}
	close(may)
	settle(t, n)
	settle(t, once)
	var got, want bytes.Buffer
	if err := n.Store.Snapshot(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	if err := once.Store.Snapshot(t.Context(), &want); err != nil {
		t.Fatal(err)
	}
	if want.Len() == 0 || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("the graph has what was written over: %d bytes, want %d", got.Len(), want.Len())
	}
}

func TestWhoeverWaitsReadsHisOwnWrites(t *testing.T) {
	n := open(t, node.Options{})
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 25 {
				job := fmt.Sprintf("job %d %d", c, i)
				r, err := n.Pipeline.Accept(t.Context(), completed(i, job), long)
				if err != nil || r.Status != ingest.InGraph || r.Outcome != graph.New || r.Run == "" {
					t.Errorf("%s: %v %+v", job, err, r)
					return
				}
				page, err := n.Store.Jobs(t.Context(), graph.EntityQuery{Paging: graph.Paging{Limit: 2}, Contains: job})
				if err != nil || len(page.Items) == 0 || page.Items[0].Name.Name != job {
					t.Errorf("%s is not there: %v %+v", job, err, page.Items)
				}
			}
		})
	}
	wg.Wait()
}

// slow is a graph that takes its time to be written.
type slow struct{ graph.Store }

func (s slow) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Store.Write(ctx, b)
}

// What comes after a long pause finds a graph that is not behind.
func TestAPauseIsNoLag(t *testing.T) {
	var clock atomic.Int64
	n := open(t, node.Options{
		Now:  func() time.Time { return time.Unix(1772366400, clock.Load()) },
		Wrap: func(s graph.Store) graph.Store { return slow{s} },
	})
	for i := range 3 {
		if r := accept(t, n, completed(i, "load")); r.Outcome != graph.New || r.Status != ingest.InGraph {
			t.Errorf("delivery %d: %+v", i, r)
		}
		clock.Add(int64(time.Hour))
		if lag := n.Graph.Stats().Lag; lag != 0 {
			t.Errorf("a graph that has all lags by %s", lag)
		}
	}
}

// full is a file system on which nothing is free.
type full struct{ vfs.FS }

func (full) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{TotalBytes: 1 << 40, UsedBytes: 1 << 40}, nil
}

func TestErrorsOfTheLogHaveTheNamesThatCallersKnow(t *testing.T) {
	n := open(t, node.Options{Store: node.Embedded, Dir: "data", FS: full{vfs.NewMem()}})
	if _, err := n.Pipeline.Accept(t.Context(), completed(1, "load"), 0); !errors.Is(err, graph.ErrFull) {
		t.Errorf("a full disk: %v", err)
	}
	n = open(t, node.Options{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Pipeline.Accept(ended, completed(1, "load"), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has gone: %v", err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Pipeline.Accept(t.Context(), completed(2, "load"), 0); !errors.Is(err, graph.ErrClosed) {
		t.Errorf("a closed log: %v", err)
	}
}
