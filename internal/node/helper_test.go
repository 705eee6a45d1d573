package node_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/node"
	"github.com/graphd/graphd/internal/normalize"
)

// alive is how long anything may take of which a test says that it ends.
const alive = time.Minute

// small are the options of a node on fs that is cheap to open.
func small(fs vfs.FS) node.Options {
	return node.Options{Store: node.Embedded, Dir: "data", FS: fs, CacheBytes: 128 << 10, Decoder: decoder()}
}

// ended is a context that is over: a node closed with it waits for nothing.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// traffic is what is sent to one node after the other, and what they said to it.
type traffic struct {
	bodies  [][]byte // distinct or not
	events  []*fact.Event
	version string
	of      map[string]*fact.Event // by bytes

	mu           sync.Mutex
	acknowledged map[fact.ID]bool // by Body
}

var decoder = sync.OnceValue(func() *ingest.Decoder {
	d, err := ingest.NewDecoder(ingest.Options{Names: normalize.DefaultNameRules()})
	if err != nil {
		panic(err) // the shipped rules are sound
	}
	return d
})

// newTraffic leaves out what is no event.
func newTraffic(bodies [][]byte) *traffic {
	w := &traffic{version: decoder().Version(), of: map[string]*fact.Event{}, acknowledged: map[fact.ID]bool{}}
	for _, body := range bodies {
		e, err := decoder().Decode(body)
		if err != nil {
			continue
		}
		w.bodies, w.events, w.of[string(body)] = append(w.bodies, body), append(w.events, e), e
	}
	return w
}

// shuffled returns parts for so many senders: all bodies in any order, some of
// them twice.
func (w *traffic) shuffled(r *rand.Rand, senders int) [][][]byte {
	all := slices.Clone(w.bodies)
	for range r.IntN(len(all)/2 + 1) {
		all = append(all, w.bodies[r.IntN(len(w.bodies))])
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	parts := make([][][]byte, senders)
	for _, body := range all {
		i := r.IntN(senders)
		parts[i] = append(parts[i], body)
	}
	return parts
}

// send sends a part, some bodies at a time, and notes what is acknowledged. It
// ends with the first error.
func (w *traffic) send(ctx context.Context, n *node.Node, part [][]byte, wait time.Duration, at int) error {
	for len(part) > 0 {
		now := part[:min(at, len(part))]
		part = part[len(now):]
		items, err := n.Pipeline.AcceptAll(ctx, now, wait)
		if err != nil {
			return err
		}
		for i, it := range items {
			if it.Err != nil {
				return fmt.Errorf("an event was rejected: %w", it.Err)
			}
			w.mu.Lock()
			w.acknowledged[w.of[string(now[i])].Body] = true
			w.mu.Unlock()
		}
	}
	return nil
}

// sendAll sends all parts at once.
func (w *traffic) sendAll(ctx context.Context, n *node.Node, parts [][][]byte, wait time.Duration) error {
	errs := make([]error, len(parts))
	var senders sync.WaitGroup
	for i, part := range parts {
		senders.Go(func() { errs[i] = w.send(ctx, n, part, wait, 1+i%4) })
	}
	senders.Wait()
	return errors.Join(errs...)
}

// known returns what is acknowledged at this moment.
func (w *traffic) known() map[fact.ID]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := make(map[fact.ID]bool, len(w.acknowledged))
	for body := range w.acknowledged {
		known[body] = true
	}
	return known
}

// checkLog holds the log to its promises: what was acknowledged is in it, each body
// once, and nothing that was never sent.
func (w *traffic) checkLog(n *node.Node, acknowledged map[fact.ID]bool) error {
	have := map[fact.ID]bool{}
	for r, err := range n.Ledger.Read(0, 0) {
		if err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		e := w.of[string(r.Payload)]
		switch {
		case e == nil:
			return fmt.Errorf("record %d was never sent: %s", r.Sequence, r.Payload)
		case have[e.Body]:
			return fmt.Errorf("record %d is in the log already: %s", r.Sequence, r.Payload)
		}
		have[e.Body] = true
	}
	for body := range acknowledged {
		if !have[body] {
			return fmt.Errorf("body %s was acknowledged and is gone; the log has %d", body, len(have))
		}
	}
	return nil
}

// fold returns what everything that is sent amounts to.
func (w *traffic) fold() string {
	var b bytes.Buffer
	if err := lineage.Fold(w.version, w.events).WriteSnapshot(&b); err != nil {
		panic(err) // a Buffer takes everything
	}
	return b.String()
}

func snapshot(ctx context.Context, n *node.Node) (string, error) {
	var b bytes.Buffer
	err := n.Store.Snapshot(ctx, &b)
	return b.String(), err
}

// converge sends everything to a node, waits until it has settled, and compares it
// with fold.
func (w *traffic) converge(ctx context.Context, n *node.Node, parts [][][]byte, fold string) error {
	if err := w.sendAll(ctx, n, parts, 0); err != nil {
		return fmt.Errorf("sending everything: %w", err)
	}
	return w.settles(ctx, n, fold)
}

func (w *traffic) settles(ctx context.Context, n *node.Node, fold string) error {
	if err := settled(ctx, n); err != nil {
		return err
	}
	got, err := snapshot(ctx, n)
	if err != nil {
		return fmt.Errorf("taking the snapshot: %w", err)
	}
	if got != fold {
		return fmt.Errorf("the snapshot is not Fold's: %s", difference(got, fold))
	}
	if err := w.checkLog(n, w.known()); err != nil {
		return err
	}
	return nil
}

// settled waits over failures that pass.
func settled(ctx context.Context, n *node.Node) error {
	for {
		err := n.Graph.Settled(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || n.Failure() != nil || errors.Is(err, graph.ErrClosed) {
			return fmt.Errorf("waiting for the graph to settle: %w (%+v)", err, n.Graph.Stats())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// difference names the first lines that only one of them has.
func difference(got, want string) string {
	lines := func(s string) map[string]bool {
		m := map[string]bool{}
		for _, l := range bytes.Split([]byte(s), []byte("\n")) {
			m[string(l)] = true
		}
		return m
	}
	g, w := lines(got), lines(want)
	only := func(a, b map[string]bool) (out []string) {
		for l := range a {
			if !b[l] {
				out = append(out, l)
			}
		}
		slices.Sort(out)
		return out[:min(3, len(out))]
	}
	return fmt.Sprintf("too much: %q, missing: %q", only(g, w), only(w, g))
}

// rounds is how many are run: fewer where they are slow or nobody wants to wait.
func rounds(all, short, race int) int {
	switch {
	case raceEnabled:
		return race
	case testing.Short():
		return short
	}
	return all
}
