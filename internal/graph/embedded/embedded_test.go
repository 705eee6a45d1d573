package embedded_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/graph/embedded"
	"github.com/graphd/graphd/internal/graph/graphtest"
)

// crashable is a store on a disk in memory, of which a crash loses a random part of
// what was not synced.
type crashable struct {
	*embedded.Store
	fs  *vfs.MemFS
	opt embedded.Options
}

func open(t *testing.T, fs *vfs.MemFS, opt embedded.Options) graph.Store {
	opt.FS = fs
	s, err := embedded.Open("graph", opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return crashable{s, fs, opt}
}

func TestConformance(t *testing.T) { conform(t, 8<<20) }

// TestConformanceCached keeps so few pages in memory that one event has more.
func TestConformanceCached(t *testing.T) { conform(t, 32<<10) }

func conform(t *testing.T, cache int64) {
	graphtest.Run(t, graphtest.Driver{
		Open: func(t *testing.T, version string, archive graph.Archive) graph.Store {
			return open(t, vfs.NewCrashableMem(), embedded.Options{Version: version, Archive: archive, CacheBytes: cache})
		},
		Crash: func(t *testing.T, s graph.Store) graph.Store {
			c := s.(crashable)
			percent := rand.IntN(101)
			return open(t, c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(rand.Uint64(), 0))}), c.opt)
		},
	})
}
