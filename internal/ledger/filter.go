package ledger

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/graphd/graphd/internal/fact"
)

// filter is a Bloom filter in blocks of one cache line, so that a look-up costs
// at most one miss of the cache. A key sets one bit in each of a block's eight
// words. IDs are digests already: their own bytes are the hash.
//
// Keys may be added and looked up at once.
type filter struct {
	blocks []filterBlock
}

type filterBlock [8]atomic.Uint64

const (
	filterBitsPerKey = 12
	filterBlockBits  = 512
	filterBlockBytes = filterBlockBits / 8
)

// filterBytes is what a filter for so many keys takes.
func filterBytes(keys int64) int64 {
	return max(1, (keys*filterBitsPerKey+filterBlockBits-1)/filterBlockBits) * filterBlockBytes
}

func newFilter(keys int64) *filter {
	return &filter{blocks: make([]filterBlock, filterBytes(keys)/filterBlockBytes)}
}

func (f *filter) bytes() int64 { return int64(len(f.blocks)) * filterBlockBytes }

func (f *filter) block(id *fact.ID) (*filterBlock, uint64) {
	i, _ := bits.Mul64(binary.LittleEndian.Uint64(id[:]), uint64(len(f.blocks)))
	return &f.blocks[i], binary.LittleEndian.Uint64(id[8:])
}

func (f *filter) add(id *fact.ID) {
	b, h := f.block(id)
	for i := range b {
		b[i].Or(1 << (h >> (6 * i) & 63))
	}
}

// has reports whether id may have been added: never no for one that was, and
// yes for less than one in a hundred that were not.
func (f *filter) has(id *fact.ID) bool {
	b, h := f.block(id)
	for i := range b {
		if b[i].Load()&(1<<(h>>(6*i)&63)) == 0 {
			return false
		}
	}
	return true
}
