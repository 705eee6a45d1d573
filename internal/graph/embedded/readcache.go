package embedded

import (
	"sync"
	"sync/atomic"

	"github.com/graphd/graphd/internal/lineage"
)

// readCache keeps rows as they are on disk, for all readers: the pages of datasets
// and the derivations between them, which walks read again and again and writes
// seldom change.
//
// A reader reads the graph of one moment. It numbers commits: a reader may use
// the cache, and add to it, where nothing was changed after the commit that was the
// last one when the reader's snapshot was taken. What changed is told by stripe.
type readCache struct {
	// commit is the number of the last commit.
	commit  atomic.Uint64
	limit   int // of the bytes of one half of a stripe
	stripes [256]stripe
}

type stripe struct {
	mu         sync.Mutex
	changed    uint64 // the last commit that changed one of its rows
	young, old map[string][]byte
	bytes      int
}

func newReadCache(bytes int64) *readCache {
	c := &readCache{}
	c.limit = int(bytes) / len(c.stripes) / 2
	return c
}

// shared reports whether a key's row belongs into the cache.
func shared(key []byte) bool {
	return key[0] == pageFamily && key[1] == datasetPage.id || key[0] == rowFamily && lineage.TableID(key[1]) == lineage.DerivationsTable
}

// stripe returns that of a key: keys end with a digest.
func (c *readCache) stripe(key []byte) *stripe { return &c.stripes[key[len(key)-1]] }

// get returns the row of a key for a reader of a commit; nil where it is not known,
// and the reader has to look.
func (c *readCache) get(key []byte, commit uint64) []byte {
	s := c.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed > commit {
		return nil
	}
	if text := s.young[string(key)]; text != nil {
		return text
	}
	text := s.old[string(key)]
	if text != nil {
		s.keep(string(key), text, c.limit)
	}
	return text
}

// put keeps what a reader of a commit has found.
func (c *readCache) put(key, text []byte, commit uint64) {
	s := c.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed <= commit {
		s.keep(string(key), text, c.limit)
	}
}

// entryBytes is about what an entry takes beside its text.
const entryBytes = 128

func (s *stripe) keep(key string, text []byte, limit int) {
	if s.bytes += len(text) + entryBytes; s.bytes > limit || s.young == nil {
		s.old, s.young, s.bytes = s.young, map[string][]byte{}, len(text)+entryBytes
	}
	s.young[key] = text
}

// change forgets a row that the next commit changes. It is called before that.
func (c *readCache) change(key []byte) {
	if !shared(key) {
		return
	}
	s := c.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = c.commit.Load() + 1
	delete(s.young, string(key))
	delete(s.old, string(key))
}
