package httpapi

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/graph"
)

const ndjson = "application/x-ndjson"

func TestBatchInEveryForm(t *testing.T) {
	one, two := flow(1, "j", []string{"a"}, []string{"b"}), flow(2, "k", []string{"b"}, []string{"c"})
	for name, tc := range map[string]struct{ body, kind, coding string }{
		"array":           {"[" + one + ",\n" + two + "]", "application/json", ""},
		"lines":           {one + "\n\n" + two + "\r\n", ndjson, ""},
		"array as lines":  {" [" + one + "," + two + "]", ndjson, ""},
		"gzip":            {gzipped("[" + one + "," + two + "]"), "application/json", "gzip"},
		"lines over gzip": {gzipped(one + "\n" + two), ndjson, "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(t)
			for _, outcome := range []string{"new", "retry"} {
				got := a.post("/api/v1/lineage/batch", tc.body, "Content-Type", tc.kind, "Content-Encoding", tc.coding).is(200)
				got.has("success", "status").has(2, "summary", "received").has(2, "summary", "successful").has(0, "summary", "failed")
				got.has(outcome, "receipts", 0, "outcome").has(outcome, "receipts", 1, "outcome")
				if len(got.at("failed_events").([]any)) != 0 {
					t.Errorf("failed: %s", got.body)
				}
			}
			if n := a.count(); n != 2 {
				t.Errorf("%d events", n)
			}
		})
	}
}

func TestBadEventsOfABatchFailAlone(t *testing.T) {
	a := serve(t)
	good := func(n int) string { return flow(n, "j", []string{"a"}, []string{"b"}) }
	bad := []string{`{"a":}`, `{}`, `7`, strings.Replace(good(9), "2026-03", "2026-19", 1), ``}
	parts := []string{good(0)}
	for i, b := range bad {
		parts = append(parts, b, good(i+1))
	}
	got := a.post("/api/v1/lineage/batch", "["+strings.Join(parts, ",")+"]").is(200).has("partial_success", "status")
	got.has(11, "summary", "received").has(6, "summary", "successful").has(5, "summary", "failed")
	got.has(0, "summary", "retriable").has(5, "summary", "non_retriable")
	for i := range bad {
		at := 2*i + 1
		got.has(at, "failed_events", i, "index").has(false, "failed_events", i, "retriable")
		got.has("urn:graphd:problem:invalid-event", "receipts", at, "type").has("new", "receipts", at+1, "outcome")
	}
	got.has("/eventTime", "receipts", 7, "errors", 0, "pointer")
	if n := a.count(); n != 6 {
		t.Errorf("%d events", n)
	}

	// The standard has no word for a batch of which nothing succeeded.
	a.post("/api/v1/lineage/batch", "[1,2]").is(200).has("partial_success", "status").has(0, "summary", "successful")
	a.post("/api/v1/lineage/batch", "[]").is(200).has("success", "status").has(0, "summary", "received")
}

func TestBatchesThatAreNone(t *testing.T) {
	a := serve(t)
	one := flow(1, "j", []string{"a"}, []string{"b"})
	for _, body := range []string{"", " ", "{}", "hello", one, one + "\n" + one} {
		a.post("/api/v1/lineage/batch", body).problem(400, "invalid-body", "")
	}
	a.post("/api/v1/lineage/batch", gzipped("[]")[:12], "Content-Encoding", "gzip").problem(400, "invalid-body", "")
	a.post("/api/v1/lineage/batch", "[]", "Content-Type", "text/csv").problem(415, "unsupported-media-type", "Content-Type")

	// An array that breaks off: what came whole is stored, the rest is told.
	got := a.post("/api/v1/lineage/batch", "["+one+","+one[:40]).is(200)
	got.has(1, "summary", "successful").has(1, "failed_events", 0, "index").has("/1", "receipts", 1, "errors", 0, "pointer")
	a.post("/api/v1/lineage/batch", "["+one+"] x").is(200).has(1, "summary", "successful").has(1, "summary", "failed")
	long := gzipped(one + "\n" + one + strings.Repeat("\n"+flow(2, "k", nil, nil), 3000))
	got = a.post("/api/v1/lineage/batch", long[:len(long)-20], "Content-Encoding", "gzip", "Content-Type", ndjson).is(200)
	if got.at("summary", "successful").(float64) < 1000 {
		t.Errorf("what came whole was not stored: %v", got.at("summary"))
	}
	got.has(1, "summary", "failed")
}

func TestLargeBatches(t *testing.T) {
	a := serve(t, limits(func(l *Limits) {
		l.Memory = 32 << 20
		l.EventBytes = 1 << 20
		l.BatchBytes = 40 << 20
		l.BatchEvents = 12_000
	}))
	events := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = flow(i, fmt.Sprint("job", i%50), []string{fmt.Sprint("in", i%100)}, []string{fmt.Sprint("out", i%70)})
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	a.post("/api/v1/lineage/batch", events(10_000)).is(200).has(10_000, "summary", "successful").has("new", "receipts", 9999, "outcome")
	if n := a.count(); n != 10_000 {
		t.Errorf("%d events", n)
	}
	a.post("/api/v1/lineage/batch", events(12_001)).problem(413, "too-large", "-")

	// One event too long fails alone, in either form; a batch too long does not.
	long := flow(1, strings.Repeat("x", 1<<20), nil, nil)
	one := flow(20_000, "j", nil, nil)
	a.post("/api/v1/lineage/batch", "["+one+","+long+","+one+"]").is(200).has(2, "summary", "successful").has(1, "failed_events", 0, "index")
	a.post("/api/v1/lineage/batch", one+"\n"+long+"\n"+one, "Content-Type", ndjson).is(200).has(2, "summary", "successful").has(1, "failed_events", 0, "index")
	lines := gzipped(strings.Repeat(flow(2, strings.Repeat("y", 500<<10), nil, nil)+"\n", 100))
	p := a.post("/api/v1/lineage/batch", lines, "Content-Type", ndjson, "Content-Encoding", "gzip").problem(413, "too-large", "-")
	if !strings.Contains(p.at("detail").(string), "were stored") {
		t.Errorf("the answer does not say what was stored: %s", p.body)
	}
	a.post("/api/v1/lineage/batch", strings.Repeat(" ", 41<<20)).problem(413, "too-large", "-")

	// Many small faults are no way to make graphd hold more than it may.
	a.post("/api/v1/lineage/batch", "["+strings.Repeat("1,", 11_000)+"1]").is(200).has(11_001, "summary", "failed")
	if !a.server.budget.free.TryAcquire(32 << 20) {
		t.Error("the requests did not give back their memory")
	}
}

func TestBatchAgainstALogThatBecomesFull(t *testing.T) {
	// Three chunks, of more than a megabyte compressed: how much is free is asked for after every megabyte.
	noise := make([]byte, 2500)
	var events []string
	for i := range 1200 {
		rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(noise)
		events = append(events, flow(i, "j", []string{"a"}, []string{hex.EncodeToString(noise)}))
	}
	body := "[" + strings.Join(events, ",") + "]"
	disk := &fullDisk{FS: vfs.NewMem()}
	a := serve(t, onDisk(disk))
	// It becomes full while the batch comes in: a part is stored, the rest is told, and
	// may be sent again.
	fill := func(n int) io.Reader {
		cut := strings.Index(body, events[n])
		return io.MultiReader(strings.NewReader(body[:cut]), readerFunc(func([]byte) (int, error) {
			a.eventually("the first chunk is stored", func() bool { return a.node.Ledger.Last() >= chunkEvents })
			disk.full.Store(true)
			return 0, io.EOF
		}), strings.NewReader(body[cut:]))
	}
	got := a.send("POST", "/api/v1/lineage/batch", fill(chunkEvents+2)).is(200).has("partial_success", "status")
	stored := int(got.at("summary", "successful").(float64))
	if stored != chunkEvents && stored != 2*chunkEvents {
		t.Errorf("%d events were stored", stored)
	}
	got.has(1200-stored, "summary", "retriable").has(0, "summary", "non_retriable").has("new", "receipts", stored-1, "outcome")
	got.has(stored, "failed_events", 0, "index").has(true, "failed_events", 0, "retriable").has(1199, "failed_events", 1199-stored, "index")
	got.has("urn:graphd:problem:store-full", "receipts", stored, "type")
	// Nothing of one is stored: the whole of it may be sent again.
	a.post("/api/v1/lineage/batch", "["+flow(9999, "j", nil, nil)+"]").problem(503, "store-full", "-")
	if n := a.settled().count(); n != stored {
		t.Errorf("%d events, want %d", n, stored)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestIdempotencyKey(t *testing.T) {
	a := serve(t, limits(func(l *Limits) { l.IdempotencyKeys = 2 }))
	one, two := flow(1, "j", []string{"a"}, []string{"b"}), flow(2, "j", []string{"a"}, []string{"b"})
	for _, path := range []string{"/api/v1/lineage", "/api/v1/lineage/batch"} {
		first, second, ok := one, two, 201
		if strings.HasSuffix(path, "batch") {
			first, second, ok = "["+one+"]", "["+two+"]", 200
		}
		a.post(path, first, "Idempotency-Key", "k1").is(ok)
		a.post(path, first, "Idempotency-Key", "k1").is(ok)
		a.post(path, gzipped(first), "Idempotency-Key", "k1", "Content-Encoding", "gzip").is(ok)
		a.post(path, second, "Idempotency-Key", "k1").problem(422, "idempotency-key-reused", "Idempotency-Key")
		a.post(path, first, "Idempotency-Key", strings.Repeat("k", 256)).problem(400, "invalid-header", "Idempotency-Key")
	}
	if n := a.count(); n != 1 {
		t.Errorf("%d events: a refused body was stored", n)
	}
	// Keys are forgotten, the oldest first.
	for _, k := range []string{"k2", "k3", "k4"} {
		a.post("/api/v1/lineage", two, "Idempotency-Key", k).is(201)
	}
	a.post("/api/v1/lineage", two, "Idempotency-Key", "k1").is(201)
	// A refused body leaves its key free for the mended one.
	if refused := a.post("/api/v1/lineage", "{}", "Idempotency-Key", "k5"); refused.status == 201 {
		t.Error("an empty object was taken for an event")
	}
	a.post("/api/v1/lineage", one, "Idempotency-Key", "k5").is(201)
}

func TestPrefer(t *testing.T) {
	a := serve(t)
	body := flow(1, "j", []string{"a"}, []string{"b"})
	for prefer, applied := range map[string]string{
		"wait=10": "wait=10", "respond-async, wait=0": "respond-async", "wait=7, respond-async": "wait=7", "WAIT = \"3\"; x=y": "wait=3",
		"respond-async": "respond-async", "wait=0": "wait=0", "wait=15": "wait=15", "wait=16": "wait=15", "wait=999999": "wait=15", "return=minimal": "", "": "",
	} {
		if got := a.post("/api/v1/lineage", body, "Prefer", prefer).is(201).header.Get("Preference-Applied"); got != applied {
			t.Errorf("Prefer: %s gives Preference-Applied: %q, want %q", prefer, got, applied)
		}
	}
	for _, prefer := range []string{"wait", "wait=soon", "wait=-1", "wait=1.5", "respond-async=yes"} {
		a.post("/api/v1/lineage", body, "Prefer", prefer).problem(400, "invalid-header", "Prefer")
	}
	if got := a.post("/api/v1/lineage/batch", "[]", "Prefer", "wait=1").is(200).header.Get("Preference-Applied"); got != "wait=1" {
		t.Errorf("Preference-Applied: %q", got)
	}
}

// held is a graph that is written when a test lets it.
type held struct {
	graph.Store
	open chan struct{}
}

func (h *held) Write(ctx context.Context, b graph.Batch) ([]graph.Standing, error) {
	select {
	case <-h.open:
		return h.Store.Write(ctx, b)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// holding returns a setting that holds the graph until release.
func holding() (s setting, release func()) {
	open := make(chan struct{})
	return withStore(func(s graph.Store) graph.Store { return &held{s, open} }), sync.OnceFunc(func() { close(open) })
}

func TestPreferSaysHowLongToWaitForTheGraph(t *testing.T) {
	hold, release := holding()
	a := serve(t, hold)
	a.settled()
	one, two := flow(1, "j", []string{"a"}, []string{"b"}), flow(2, "j", []string{"a"}, []string{"b"})
	for _, prefer := range []string{"respond-async", "wait=0", ""} { // the last one waits, for a moment
		got := a.post("/api/v1/lineage", flow(3, "j"+prefer, nil, []string{"c"}), "Prefer", prefer).is(201)
		got.has("accepted", "status").has("new", "outcome").has(nil, "run").has(nil, "attempt")
	}
	a.post("/api/v1/lineage/batch", "["+one+","+two+"]", "Prefer", "respond-async").is(200).has("accepted", "receipts", 1, "status")
	a.post("/api/v1/lineage", one, "Prefer", "respond-async").is(201).has("accepted", "status").has("retry", "outcome")
	if n := a.count(); n != 0 {
		t.Errorf("%d events are in the graph", n)
	}
	// Whoever waits has his answer when the graph shows the event.
	answered := make(chan *answer)
	go func() { answered <- a.post("/api/v1/lineage", flow(4, "j", nil, []string{"c"}), "Prefer", "wait=60") }()
	a.eventually("it is in the log", func() bool { return a.node.Ledger.Last() == 6 })
	select {
	case got := <-answered:
		t.Errorf("it was answered before: %s", got.body)
	default:
	}
	release()
	got := (<-answered).is(201).has("settled", "status")
	if run, attempt := got.at("run"), got.at("attempt"); run == nil || attempt == nil {
		t.Errorf("no run: %s", got.body)
	}
	a.settled().post("/api/v1/lineage", one).is(201).has("settled", "status").has("retry", "outcome").has(nil, "run")
	if n := a.count(); n != 6 {
		t.Errorf("%d events, want 6", n)
	}
}

func TestIdentityStoresNothing(t *testing.T) {
	a := serve(t)
	one := runEvent("START", "2026-03-01T10:00:00", uuid(1), "j", `"x":1`)
	got := a.post("/api/v1/identity", one).is(200).has("run", "events", 0, "kind").has("zoneless-time", "events", 0, "warnings", 0, "code")
	got.has("run", "events", 0, "slot", "rule").has(uuid(1), "events", 0, "slot", "value", 0)
	got.has("j", "events", 0, "document", "event", "job", "name").has("2026-03-01T10:00:00", "events", 0, "transport", "eventTime")
	many := a.post("/api/v1/identity", "["+one+",{},"+flow(2, "k", nil, []string{"b"})+"]").is(200)
	many.has(got.at("events", 0, "eventId"), "events", 0, "eventId").has("urn:graphd:problem:invalid-event", "events", 1, "type").has(2, "events", 2, "index")
	if n := a.count(); n != 0 {
		t.Fatalf("%d events were stored", n)
	}
	stored := a.post("/api/v1/lineage", one).is(201)
	stored.has(got.at("events", 0, "eventId"), "eventId").has(got.at("events", 0, "run"), "run").has(got.at("events", 0, "attempt"), "attempt")

	a.post("/api/v1/identity", "{}").problem(400, "invalid-event", "")
	a.post("/api/v1/identity", "  ").problem(400, "invalid-event", "")
	a.post("/api/v1/identity", "[1").problem(400, "invalid-body", "")
	a.post("/api/v1/identity", "["+strings.Repeat("1,", 1000)+"1]").problem(413, "too-large", "-")
}

// TestManyClientsSendTheSame is the invariant over HTTP: what remains is a
// function of the set of bodies.
func TestManyClientsSendTheSame(t *testing.T) {
	a := serve(t)
	events := make([]string, 100)
	for i := range events {
		events[i] = flow(i, fmt.Sprint("job", i%10), []string{fmt.Sprint("t", i%10)}, []string{fmt.Sprint("t", i%10+1)})
	}
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for round := range 20 {
				for i := range events {
					e := events[(i*(2*c+1)+round*7)%len(events)]
					r, err := http.Post(a.url+"/api/v1/lineage", "application/json", strings.NewReader(e))
					if err != nil {
						t.Error(err)
						return
					}
					r.Body.Close()
					if r.StatusCode != 201 {
						t.Errorf("status %d", r.StatusCode)
					}
				}
			}
		})
	}
	wg.Wait()
	st := a.get("/api/v1/stats").is(200)
	st.has(100, "events").has(10, "jobs").has(11, "datasets").has(10, "derivations").has(100, "runs").has(100, "deliveries", "new").has(15_900, "deliveries", "retry")
	once := serve(t)
	once.post("/api/v1/lineage/batch", "["+strings.Join(events, ",")+"]").is(200)
	var many, single strings.Builder
	if err := a.settled().node.Store.Snapshot(t.Context(), &many); err != nil {
		t.Fatal(err)
	}
	if err := once.settled().node.Store.Snapshot(t.Context(), &single); err != nil {
		t.Fatal(err)
	}
	if many.String() != single.String() {
		t.Error("the graph depends on how often and by whom the events were sent")
	}
}
