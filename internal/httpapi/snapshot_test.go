package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/graph"
)

// snapshotStore is a store whose snapshot a test writes.
type snapshotStore struct {
	graph.Store
	write func(ctx context.Context, w io.Writer) error
}

func (s snapshotStore) Snapshot(ctx context.Context, w io.Writer) error { return s.write(ctx, w) }

func snapshots(write func(ctx context.Context, w io.Writer) error) setting {
	return withStore(func(s graph.Store) graph.Store { return snapshotStore{s, write} })
}

// stream asks for a snapshot and reads it as far as it comes.
func (a *api) stream(method, query string) (r *http.Response, text []byte, err error) {
	a.Helper()
	q, err := http.NewRequestWithContext(a.Context(), method, a.url+"/api/v1/snapshot"+query, nil)
	if err != nil {
		a.Fatal(err)
	}
	if r, err = http.DefaultClient.Do(q); err != nil {
		a.Fatal(err)
	}
	defer r.Body.Close()
	text, err = io.ReadAll(r.Body)
	return r, text, err
}

func TestSnapshotIsTheStores(t *testing.T) {
	a := serve(t)
	for _, events := range []int{0, 300} {
		for n := range events {
			a.post("/api/v1/lineage", flow(n, fmt.Sprintf("job %d", n), []string{"a"}, []string{fmt.Sprintf("b%d", n)})).is(201)
		}
		var want bytes.Buffer
		if err := a.settled().node.Store.Snapshot(t.Context(), &want); err != nil {
			t.Fatal(err)
		}
		r, got, err := a.stream("GET", "?wait=60")
		if err != nil || r.StatusCode != 200 || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("after %d events: %d, %v, %d bytes, want %d", events, r.StatusCode, err, len(got), want.Len())
		}
		sum := sha256.Sum256(got)
		if digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"; r.Trailer.Get("Content-Digest") != digest {
			t.Errorf("the trailer is %v, want %s", r.Trailer, digest)
		}
		if kind := r.Header.Get("Content-Type"); kind != "application/x-ndjson" || r.Header.Get("Etag") != "" || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("the head is %v", r.Header)
		}
		if r, got, err := a.stream("HEAD", ""); err != nil || r.StatusCode != 200 || len(got) > 0 {
			t.Errorf("HEAD: %d %v %q", r.StatusCode, err, got)
		}
	}
}

func TestSnapshotWaitsForAsLongAsItIsTold(t *testing.T) {
	a := serve(t, snapshots(func(ctx context.Context, _ io.Writer) error {
		<-ctx.Done()
		return fmt.Errorf("waiting for the graph to settle: %w", ctx.Err())
	}))
	answer := a.get("/api/v1/snapshot?wait=1").problem(503, "unavailable", "-")
	if answer.header.Get("Retry-After") != "2" || !strings.Contains(string(answer.body), "still settling, and has not ended within 1s") {
		t.Errorf("%v %s", answer.header, answer.body)
	}
	for _, wait := range []string{"0", "601", "-1", "1.5", "30s", ""} {
		a.get("/api/v1/snapshot?wait="+wait).problem(400, "invalid-parameter", "wait")
	}
	a.get("/api/v1/snapshot?asOf=now").problem(400, "invalid-parameter", "asOf")
}

func TestSnapshotHasAllThatWasAcknowledged(t *testing.T) {
	hold, release := holding()
	a := serve(t, hold)
	a.post("/api/v1/lineage", flow(1, "j", []string{"a"}, []string{"b"}), "Prefer", "respond-async").is(201).has("accepted", "status")
	a.get("/api/v1/snapshot?wait=1").problem(503, "unavailable", "-")
	text := make(chan []byte)
	go func() {
		_, got, _ := a.stream("GET", "")
		text <- got
	}()
	a.eventually("it waits", func() bool { return len(a.server.snapshot) == 1 })
	release()
	var want bytes.Buffer
	got := <-text
	if err := a.settled().node.Store.Snapshot(t.Context(), &want); err != nil || !bytes.Equal(got, want.Bytes()) || !bytes.Contains(got, []byte(`"name":"b"`)) {
		t.Errorf("%v: %d bytes, want %d", err, len(got), want.Len())
	}
}

func TestOneSnapshotAtATime(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	a := serve(t, snapshots(func(_ context.Context, w io.Writer) error {
		close(entered)
		<-release
		_, err := io.WriteString(w, "x\n")
		return err
	}))
	text := make(chan string)
	go func() {
		_, got, _ := a.stream("GET", "")
		text <- string(got)
	}()
	<-entered
	p := a.get("/api/v1/snapshot").problem(503, "unavailable", "-")
	if p.header.Get("Retry-After") == "" || !strings.Contains(string(p.body), "one at a time") {
		t.Errorf("%v %s", p.header, p.body)
	}
	close(release)
	if got := <-text; got != "x\n" {
		t.Errorf("the first one is %q", got)
	}
	a.eventually("there is room again", func() bool { return len(a.server.snapshot) == 0 })
}

// A snapshot that waits must not hold up the end of the server; one that is being
// written may come to its end.
func TestSnapshotsWhenTheServerEnds(t *testing.T) {
	hold, release := holding()
	a := serve(t, hold)
	t.Cleanup(release)
	a.post("/api/v1/lineage", flow(1, "j", nil, nil), "Prefer", "respond-async").is(201)
	waiting := make(chan *answer)
	go func() { waiting <- a.get("/api/v1/snapshot?wait=600") }()
	a.eventually("it waits", func() bool { return len(a.server.snapshot) == 1 })
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	p := (<-waiting).problem(503, "unavailable", "-")
	if !strings.Contains(string(p.body), "shutting down") || p.header.Get("Retry-After") == "" {
		t.Errorf("%v %s", p.header, p.body)
	}

	begun := make(chan struct{})
	part := strings.Repeat("x", 2*snapshotBuffer)
	var b *api
	b = serve(t, snapshots(func(ctx context.Context, w io.Writer) error {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
		close(begun)
		b.eventually("the server ends", b.server.draining.Load)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, err := io.WriteString(w, part)
		return err
	}))
	ended := make(chan error, 1)
	go func() {
		<-begun
		ended <- b.stop()
	}()
	if r, got, err := b.stream("GET", ""); err != nil || string(got) != part+part || r.Trailer.Get("Content-Digest") == "" {
		t.Errorf("%v: %d bytes, want %d", err, len(got), 2*len(part))
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is written has settled: neither the wait nor the server's time for bodies
// ends it then.
func TestSnapshotMayTakeItsTimeOnceItHasBegun(t *testing.T) {
	line := strings.Repeat("x", 1000) + "\n"
	a := serve(t, limits(func(l *Limits) { l.BodyTime, l.BatchTime = 100*time.Millisecond, 100*time.Millisecond }),
		snapshots(func(ctx context.Context, w io.Writer) error {
			for range 2 {
				if _, err := io.WriteString(w, line); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(1200 * time.Millisecond):
				}
			}
			return nil
		}))
	if r, got, err := a.stream("GET", "?wait=1"); err != nil || string(got) != line+line {
		t.Errorf("%d, %v, %d bytes", r.StatusCode, err, len(got))
	}
	// The connection is as good as before for whoever comes next on it.
	a.get("/livez").is(200)
}

func TestSnapshotThatBreaksOffIsNoSuccess(t *testing.T) {
	broken := errors.New("the disk is gone")
	writes := 0
	a := serve(t, snapshots(func(_ context.Context, w io.Writer) error {
		for range writes {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<10)); err != nil {
				return err
			}
		}
		return broken
	}))
	writes = 10 // nothing of it is sent yet
	a.get("/api/v1/snapshot").problem(500, "internal", "-")
	writes = 1000
	r, got, err := a.stream("GET", "")
	if r.StatusCode != 200 || !errors.Is(err, io.ErrUnexpectedEOF) || len(got) == 0 || len(got) >= writes<<10 {
		t.Errorf("%d, %v, %d bytes", r.StatusCode, err, len(got))
	}
	if digest := r.Trailer.Get("Content-Digest"); digest != "" {
		t.Errorf("half a snapshot has the digest %s", digest)
	}
	if log := a.log.String(); !strings.Contains(log, "a snapshot broke off") || !strings.Contains(log, "the disk is gone") || strings.Contains(log, "panicked") {
		t.Errorf("the log does not tell:\n%s", tail(log))
	}
}

// A client that does not read holds up the store: nothing gathers in between.
func TestSnapshotIsNotHeld(t *testing.T) {
	const total = 256 << 20
	reading := make(chan struct{})
	written := make(chan int64, 1)
	a := serve(t, snapshots(func(ctx context.Context, w io.Writer) error {
		n, part := int64(0), make([]byte, 1<<20)
		stalled := time.AfterFunc(time.Second, func() { close(reading) })
		defer stalled.Stop()
		defer func() { written <- n }()
		for n < total {
			m, err := w.Write(part)
			if n += int64(m); err != nil {
				return err
			}
			select {
			case <-reading: // the client has gone without reading
				return errors.New("enough")
			default:
			}
		}
		return nil
	}))
	r, err := http.Get(a.url + "/api/v1/snapshot")
	if err != nil {
		t.Fatal(err)
	}
	<-reading
	r.Body.Close()
	if n := <-written; n >= total {
		t.Errorf("%d bytes were taken, and the client read none", n)
	}
}
