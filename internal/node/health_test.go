package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/graph/embedded"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/node"
)

// streams returns the bodies of random streams, with some that take room, so that
// what they come to does not fit into memtables.
func streams(from, to uint64) (bodies [][]byte) {
	for seed := from; seed < to; seed++ {
		bodies = append(bodies, lineagetest.Stream(rand.New(rand.NewPCG(seed, 77)), 40)...)
		for i := range 16 {
			bodies = append(bodies, lineagetest.LoadEvent(int(seed)*16+i))
		}
	}
	return bodies
}

func openOn(t *testing.T, opt node.Options) *node.Node {
	t.Helper()
	n, err := node.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close(ended()) })
	return n
}

// live runs a node on fs until all bodies are in its graph, and closes it.
func live(t *testing.T, fs vfs.FS, bodies [][]byte) {
	t.Helper()
	n := openOn(t, tiny(fs))
	if err := newTraffic(bodies).send(t.Context(), n, bodies, 0, 7); err != nil {
		t.Fatal(err)
	}
	if err := settled(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// comesTo waits until the node's graph is that of bodies, over all that passes.
func comesTo(t *testing.T, n *node.Node, bodies [][]byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), alive)
	defer cancel()
	fold := newTraffic(bodies).fold()
	for {
		err := n.Graph.Settled(ctx)
		got := ""
		if err == nil {
			got, err = snapshot(ctx, n)
		}
		switch _, _, rebuilding := n.Rebuilding(); {
		case err == nil && got == fold && !rebuilding:
			return
		case err == nil && got != fold && !rebuilding && n.Graph.Stats().Failure == nil:
			// A snapshot of the graph that was given up a moment ago is right too.
			t.Fatalf("the snapshot is not Fold's: %s", difference(got, fold))
		case ctx.Err() != nil || n.Failure() != nil:
			t.Fatalf("it does not come to the graph: %v, %v", err, n.Failure())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A graph that is not of the log, or has what the log lost, is moved aside, whole,
// and the one that is made in its place is that of the log.
func TestAGraphOfAnotherLogIsMovedAside(t *testing.T) {
	t.Parallel()
	one, two := streams(0, 1), streams(1, 3)
	for name, prepare := range map[string]func(fs vfs.FS) (there, more [][]byte){
		"the ledger is lost": func(fs vfs.FS) (there, more [][]byte) {
			live(t, fs, one)
			if err := fs.RemoveAll("data/ledger"); err != nil {
				t.Fatal(err)
			}
			return nil, two
		},
		"the ledger is an older one": func(fs vfs.FS) (there, more [][]byte) {
			live(t, fs, one)
			old := vfs.NewMem()
			copyDir(t, fs, old, "data/ledger")
			live(t, fs, two)
			copyDir(t, old, fs, "data/ledger")
			return one, nil
		},
		"the ledger is an older one that went on": func(fs vfs.FS) (there, more [][]byte) {
			live(t, fs, one)
			old := vfs.NewMem()
			copyDir(t, fs, old, "data/ledger")
			live(t, fs, two[:len(two)/2])
			copyDir(t, old, fs, "data/ledger")
			move(t, fs, "data/graph", "data/kept")
			live(t, fs, two[len(two)/2-10:])
			move(t, fs, "data/kept", "data/graph")
			return append(slices.Clone(one), two[len(two)/2-10:]...), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			there, more := prepare(fs)
			// Who only reads is told, and nothing is touched.
			reader := tiny(fs)
			reader.KeepGraph = true
			n := openOn(t, reader)
			if err := n.Graph.Settled(t.Context()); !errors.Is(err, embedded.ErrForeign) {
				t.Errorf("a reader is told %v", err)
			}
			if err := n.Close(ended()); err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			opt := tiny(fs)
			opt.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
			n = openOn(t, opt)
			if err := newTraffic(more).send(t.Context(), n, more, 0, 7); err != nil {
				t.Fatal(err)
			}
			comesTo(t, n, append(there, more...))
			if err := n.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			aside := beside(t, fs, "aside")
			if len(aside) != 1 || !strings.Contains(log.String(), aside[0]) || !strings.Contains(log.String(), "move the graph back") {
				t.Fatalf("moved aside: %q; the log: %s", aside, &log)
			}
			kept, err := fs.List("data/" + aside[0])
			if err != nil || !slices.ContainsFunc(kept, func(name string) bool { return strings.HasSuffix(name, ".sst") }) {
				t.Errorf("what was moved has %q, %v", kept, err)
			}
			// The next start finds nothing wrong.
			n = openOn(t, tiny(fs))
			comesTo(t, n, append(there, more...))
			if again := beside(t, fs, "aside"); len(again) != 1 {
				t.Errorf("moved aside: %q", again)
			}
		})
	}
}

// Whatever of the graph's files is damaged or gone, the node makes another graph, and
// intake does not notice.
func TestACorruptGraphIsMadeAnew(t *testing.T) {
	t.Parallel()
	bodies := streams(3, 6)
	half := len(bodies) / 2
	past := vfs.NewCrashableMem()
	live(t, past, bodies[:half/2]) // so that there are tables
	n := openOn(t, tiny(past))
	if err := newTraffic(bodies).send(t.Context(), n, bodies[:half], 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := settled(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	killed := past.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	for name, c := range map[string]struct {
		damage func(t *testing.T, fs vfs.FS)
		// whole says that the damage may go unnoticed, since nothing is lost.
		whole bool
	}{
		"nothing":                       {func(*testing.T, vfs.FS) {}, true},
		"tables, a byte":                {func(t *testing.T, fs vfs.FS) { each(t, fs, ".sst", func(p string) { flip(t, fs, p, 20, 1, 1) }) }, false},
		"tables, cut":                   {func(t *testing.T, fs vfs.FS) { each(t, fs, ".sst", func(p string) { cut(t, fs, p, 100) }) }, false},
		"tables, gone":                  {func(t *testing.T, fs vfs.FS) { remove(t, fs, graphFiles(t, fs, ".sst")...) }, false},
		"the manifest, gone":            {func(t *testing.T, fs vfs.FS) { remove(t, fs, graphFiles(t, fs, "MANIFEST")...) }, false},
		"the manifest, empty":           {func(t *testing.T, fs vfs.FS) { each(t, fs, "MANIFEST", func(p string) { cut(t, fs, p, 0) }) }, false},
		"the manifest, a byte":          {func(t *testing.T, fs vfs.FS) { each(t, fs, "MANIFEST", func(p string) { flip(t, fs, p, 20, 1, 1) }) }, false},
		"the manifest, bytes":           {func(t *testing.T, fs vfs.FS) { each(t, fs, "MANIFEST", func(p string) { flip(t, fs, p, 60, 1, 3) }) }, false},
		"the marker, gone":              {func(t *testing.T, fs vfs.FS) { remove(t, fs, graphFiles(t, fs, "marker.manifest")...) }, false},
		"the version's marker, gone":    {func(t *testing.T, fs vfs.FS) { remove(t, fs, graphFiles(t, fs, "marker.format")...) }, false},
		"the write-ahead log, a byte":   {func(t *testing.T, fs vfs.FS) { each(t, fs, ".log", func(p string) { flip(t, fs, p, 30, 1, 1) }) }, true},
		"the write-ahead log, cut":      {func(t *testing.T, fs vfs.FS) { each(t, fs, ".log", func(p string) { cut(t, fs, p, 50) }) }, true},
		"the write-ahead logs, gone":    {func(t *testing.T, fs vfs.FS) { remove(t, fs, graphFiles(t, fs, ".log")...) }, true},
		"the options, another file":     {func(t *testing.T, fs vfs.FS) { write(t, fs, graphFiles(t, fs, "OPTIONS")[0], []byte("[x]\n  y=z\n")) }, true},
		"found before, and not by open": {func(t *testing.T, fs vfs.FS) { write(t, fs, "data/graph/corrupt", []byte("because")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fs := killed.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
			c.damage(t, fs)
			n := openOn(t, tiny(fs))
			if err := newTraffic(bodies).send(t.Context(), n, bodies[half:], 0, 7); err != nil {
				t.Fatalf("intake failed: %v", err)
			}
			comesTo(t, n, bodies)
			if moved := beside(t, fs, "corrupt"); len(moved) != 1 && !c.whole {
				t.Errorf("moved aside: %q", moved)
			}
		})
	}
}

// Wherever the manifest is cut, the graph that comes of it is whole.
func TestAManifestThatIsCutLosesNothing(t *testing.T) {
	t.Parallel()
	bodies := streams(6, 8)
	past := vfs.NewCrashableMem()
	live(t, past, bodies[:len(bodies)/2])
	n := openOn(t, tiny(past))
	if err := newTraffic(bodies).send(t.Context(), n, bodies, 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := settled(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	killed := past.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	marker := graphFiles(t, killed, "marker.manifest")[0]
	manifest := "data/graph/" + marker[strings.Index(marker, "MANIFEST"):]
	size := len(content(t, killed, manifest))
	places, made := rounds(40, 10, 6), 0
	for i := range places {
		fs := killed.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
		// Most of them near the end, where tables that are still there get lost.
		cut(t, fs, manifest, max(1, size-1-size*i*i/(places-1)/(places-1)))
		n := openOn(t, tiny(fs))
		comesTo(t, n, bodies)
		made += len(beside(t, fs, "corrupt"))
		if err := n.Close(ended()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("cut at %d places, made anew %d times", places, made)
	if made == 0 {
		t.Error("no cut made the graph useless")
	}
}

// A graph that is found to be corrupt while it is open is replaced, once.
func TestAGraphThatGetsCorruptIsReplaced(t *testing.T) {
	t.Parallel()
	bodies := streams(8, 14)
	third := len(bodies) / 3
	fs := vfs.NewMem()
	live(t, fs, bodies[:third])
	w := newTraffic(bodies)
	n := openOn(t, tiny(fs))
	if err := settled(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	damage := func() {
		each(t, fs, ".sst", func(p string) { flip(t, fs, p, 20, 200, 10_000) })
	}
	damage()
	reading, stop := context.WithCancel(t.Context())
	read := make(chan error, 1)
	go func() {
		for reading.Err() == nil {
			switch _, err := n.Store.Runs(reading, graph.RunQuery{Paging: graph.Paging{Limit: 10}}); {
			case err == nil, reading.Err() != nil, errors.Is(err, graph.ErrCorrupt):
			default:
				read <- fmt.Errorf("a read says %w", err)
				return
			}
		}
		read <- nil
	}()
	if err := w.send(t.Context(), n, bodies[third:2*third], 0, 7); err != nil {
		t.Fatalf("intake failed: %v", err)
	}
	_, _ = snapshot(t.Context(), n) // reads all of it
	comesTo(t, n, bodies[:2*third])
	stop()
	if err := <-read; err != nil {
		t.Error(err)
	}
	if moved := beside(t, fs, "corrupt"); len(moved) != 1 {
		t.Fatalf("moved aside: %q", moved)
	}
	// What is made anew and is corrupt again tells of a disk on which it makes no sense.
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	n = openOn(t, tiny(fs))
	if err := settled(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	damage()
	_, _ = snapshot(t.Context(), n)
	comesTo(t, n, bodies[:2*third])
	if err := w.send(t.Context(), n, bodies[2*third:], 0, 7); err != nil {
		t.Fatalf("intake failed: %v", err)
	}
	comesTo(t, n, bodies)
	// Again and again, since what is read may be in memory yet.
	for begin, next := time.Now(), byte(0); n.Failure() == nil && time.Since(begin) < alive; time.Sleep(20 * time.Millisecond) {
		if next++; next%2 == 1 { // twice would be as it was
			each(t, fs, ".sst", func(p string) { flip(t, fs, p, 20+int(next), 200, 10_000) })
		}
		_, _ = snapshot(t.Context(), n)
	}
	select {
	case <-n.Failed():
		if !errors.Is(n.Failure(), graph.ErrCorrupt) {
			t.Errorf("it fails with %v", n.Failure())
		}
	case <-time.After(alive):
		t.Error("a graph that is corrupt again is no failure")
	}
	if moved := beside(t, fs, "corrupt"); len(moved) != 1 {
		t.Errorf("moved aside: %q", moved)
	}
}
