package node

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/graph/embedded"
	"github.com/graphd/graphd/internal/graph/memory"
)

// graphs opens the node's graph, and makes it anew from the log where it is not the
// log's, or is corrupt: of the two the log is what cannot be made again.
type graphs struct {
	*Node
	opt     Options
	dir     string
	archive graph.Archive
	// remade counts the corrupt graphs that were given up.
	remade atomic.Int32
}

// closingTime is how long a corrupt store may take to close. Until it has, its files
// must not be touched.
const closingTime = 30 * time.Second

func newGraphs(n *Node, opt Options, archive graph.Archive) *graphs {
	if opt.FS == nil {
		opt.FS = vfs.Default
	}
	return &graphs{Node: n, opt: opt, dir: filepath.Join(opt.Dir, "graph"), archive: archive}
}

// first is the node's first attempt; last is where the log ended before anything was
// taken in.
func (g *graphs) first(a *attempt, last uint64) {
	if g.opt.Store == Embedded {
		g.open(a, last, nil)
		return
	}
	a.end(g.wrap(memory.New(g.Decoder.Version(), g.archive)), nil)
}

func (g *graphs) wrap(s graph.Store) graph.Store {
	if g.opt.Wrap == nil {
		return s
	}
	return g.opt.Wrap(s)
}

// open opens the graph in the directory. useless says why the one that is there is
// of no use, nil if that is not known.
func (g *graphs) open(a *attempt, last uint64, useless error) {
	var store *embedded.Store
	err := useless
	for store == nil {
		if err != nil {
			if err = g.clear(err); err != nil {
				break
			}
		}
		store, err = embedded.Open(g.dir, embedded.Options{
			Version: g.Decoder.Version(), Names: g.Names.Digest().String(), Log: embedded.Log{ID: g.Ledger.LogID(), Last: last}, Archive: g.archive,
			CacheBytes: g.opt.CacheBytes, FS: g.opt.FS, Logger: g.opt.Logger,
		})
		if err != nil {
			store = nil
		}
	}
	if err != nil {
		if errors.Is(err, graph.ErrFailed) {
			g.fail(err)
		}
		g.opt.Logger.Error("the graph cannot be opened: events are taken in, and nothing can be read", "error", err)
		a.end(nil, err)
		return
	}
	a.target.Store(store.Began())
	go g.look(store)
	a.end(g.wrap(store), nil)
}

// clear takes away the graph that err speaks of, so that another can be made. It
// returns an error where it must not.
func (g *graphs) clear(err error) error {
	version, foreign, corrupt := errors.Is(err, embedded.ErrVersion), errors.Is(err, embedded.ErrForeign), errors.Is(err, graph.ErrCorrupt)
	log := g.opt.Logger
	switch {
	case !version && !foreign && !corrupt, g.opt.KeepGraph:
		return err
	case g.Ledger.First() > 1:
		return fmt.Errorf("%v; it is not made anew, since the log no longer has what it began with", err)
	case version:
		log.Warn("the graph is made anew from the log", "because", err)
		if err := g.opt.FS.RemoveAll(g.dir); err != nil {
			return fmt.Errorf("removing the graph of other rules: %w", err)
		}
		return nil
	case foreign:
		aside, bad := embedded.MoveAside(g.opt.FS, g.dir, embedded.Aside, g.now())
		if bad != nil {
			return fmt.Errorf("moving the graph aside: %w (%v)", bad, err)
		}
		log.Error("the graph has what the log has not: it was moved aside, and another one is made from the log", "because", err, "moved", aside,
			"do", "if the ledger was lost or is an old one, end graphd, restore "+filepath.Join(g.opt.Dir, "ledger")+" from a backup and move the graph back to "+g.dir+
				"; else delete what was moved")
		return nil
	case g.remade.Add(1) > 1:
		err = fmt.Errorf("%w; it was made anew before since graphd began: the disk may be failing", err)
		g.fail(err)
		return err
	}
	aside, bad := embedded.MoveAside(g.opt.FS, g.dir, embedded.Corrupt, g.now())
	if bad != nil {
		return fmt.Errorf("moving the corrupt graph aside: %v (%w)", bad, err)
	}
	log.Error("the graph on disk is corrupt: it was moved aside, and another one is made from the log", "because", err, "moved", aside,
		"do", "the disk or the memory may be failing: check them; delete what was moved when nobody wants to look into it")
	return nil
}

// look waits until a store has stopped or is corrupt.
func (g *graphs) look(store *embedded.Store) {
	select {
	case <-store.Failed():
		g.fail(graph.ErrFailed)
	case <-store.Corrupt():
		g.replace(store)
	case <-g.closed:
	}
}

// replace gives up a store that was found to be corrupt, and opens another one in
// its place. Intake goes on meanwhile.
func (g *graphs) replace(store *embedded.Store) {
	err := store.Corruption()
	if g.opt.KeepGraph || g.Ledger.First() > 1 { // whoever reads is told
		g.opt.Logger.Error("the graph on disk is corrupt, and is not made anew", "because", err)
		return
	}
	a := g.opening.again(g.Ledger.Last())
	if a == nil {
		return
	}
	closed := make(chan error, 1)
	go func() { closed <- store.Close() }()
	var bad error
	select {
	case bad = <-closed:
		if bad != nil {
			g.opt.Logger.Warn("the corrupt graph was not closed in order", "error", bad)
		}
		if !errors.Is(bad, graph.ErrFailed) {
			g.open(a, g.Ledger.Last(), err)
			return
		}
	case <-time.After(closingTime):
		bad = fmt.Errorf("closing it takes longer than %s", closingTime)
	}
	err = fmt.Errorf("%w; it cannot be given up while graphd runs, and is made anew at the next start: %w", err, bad)
	g.fail(err)
	a.end(nil, err)
}

// Rebuilding reports whether the graph is being made, wholly or once more, from a
// log that had events when that began: it has come to position, and answers for all
// of them from target on. Whoever reads before that is told how far it has come.
func (n *Node) Rebuilding() (position, target uint64, rebuilding bool) {
	a := n.opening.now()
	target = a.target.Load()
	if !a.caught.Load() {
		select {
		case <-a.done:
		default:
			return 0, target, a.again
		}
		if s := n.Graph.Stats(); a.sought.Load() && s.Found {
			position = s.Position
		}
		if position < target {
			return position, target, true
		}
		a.caught.Store(true)
	}
	return n.Graph.Stats().Position, target, false
}
