package memory_test

import (
	"testing"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/graph/graphtest"
	"github.com/graphd/graphd/internal/graph/memory"
)

func TestConformance(t *testing.T) {
	graphtest.Run(t, graphtest.Driver{Open: func(t *testing.T, version string, archive graph.Archive) graph.Store {
		store := memory.New(version, archive)
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		return store
	}})
}
