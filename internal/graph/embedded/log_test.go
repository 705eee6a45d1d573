package embedded

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/graph"
)

// A graph of which rows are gone that were there before others is not opened.
func TestLostCommitsAreNoticed(t *testing.T) {
	for name, lost := range map[string][]byte{
		"nothing":        commitKey(9),
		"a commit":       commitKey(2),
		"the version":    {versionFamily},
		"what log it is": {logFamily},
	} {
		t.Run(name, func(t *testing.T) {
			opt := Options{FS: vfs.NewMem(), CacheBytes: 64 << 10, Reserve: -1}
			for i := range uint64(3) {
				s, err := Open("graph", opt)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Write(t.Context(), graph.Batch{Log: "log", Through: i + 1}); err != nil {
					t.Fatal(err)
				}
				if i == 2 {
					err = s.db.Delete(lost, pebble.NoSync)
				}
				if err = errors.Join(err, s.Close()); err != nil { // it commits
					t.Fatal(err)
				}
			}
			s, err := Open("graph", opt)
			if err == nil {
				err = s.Close()
			}
			if errors.Is(err, graph.ErrCorrupt) != (name != "nothing") {
				t.Errorf("opening it again: %v", err)
			}
		})
	}
}
