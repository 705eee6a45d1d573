package embedded

import (
	"fmt"
	"testing"
)

// TestReadCache: nobody is given a row of another moment than his own.
func TestReadCache(t *testing.T) {
	c := newReadCache(1 << 20)
	key := appendPageKey(nil, datasetPage, "a dataset's 24 bytes...!")
	expect := func(commit uint64, want string) {
		t.Helper()
		if got := string(c.get(key, commit)); got != want {
			t.Errorf("a reader of commit %d is given %q, want %q", commit, got, want)
		}
	}
	expect(0, "")
	c.put(key, []byte("old"), 0)
	expect(0, "old")
	c.change(key) // by commit 1, which may be on disk from now on
	expect(0, "")
	c.put(key, []byte("old or new"), 0)
	expect(0, "")
	c.commit.Add(1)
	expect(1, "")
	c.put(key, []byte("new"), 1)
	expect(1, "new")
	expect(0, "")
	c.commit.Add(1) // changes something else
	expect(2, "new")
	expect(1, "new")
	c.put(key, []byte("new"), 2)

	// It is bounded, and keeps what is asked for.
	for i := range 100_000 {
		c.put(appendPageKey(nil, datasetPage, fmt.Sprintf("%024d", i)), make([]byte, 1000), 2)
		expect(2, "new")
		if t.Failed() {
			t.Fatalf("after %d others", i)
		}
	}
	held := 0
	for i := range c.stripes {
		for _, half := range []map[string][]byte{c.stripes[i].young, c.stripes[i].old} {
			for _, text := range half {
				held += len(text) + entryBytes
			}
		}
	}
	if held > 1<<20 || held == 0 {
		t.Errorf("it holds %d bytes", held)
	}
}
