package ledger

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/klauspost/compress/zstd"
)

// A dictionary is text that payloads are compressed against: what they share
// with it costs next to nothing, although each is compressed alone. A record
// names its dictionary by number, and no dictionary is ever changed or removed.
//
// Numbers up to lastShipped are shipped with graphd, greater ones are learned by
// a ledger from its own payloads and kept in it.

//go:embed dictionary1.txt
var shipped1 []byte

const (
	shippedNewest = 1
	lastShipped   = 255
	// maxDictionaries bounds the learned ones, 64 KB each.
	maxDictionaries = 64
)

type dictionary struct {
	id      uint32
	content []byte
	coders  sync.Once
	enc     *zstd.Encoder
	dec     *zstd.Decoder
	err     error
}

// dictionaries are all that records may name.
type dictionaries struct {
	// current is what new records are compressed with.
	current atomic.Pointer[dictionary]
	mu      sync.Mutex
	known   map[uint32]*dictionary
}

func loadDictionaries(db *pebble.DB) (*dictionaries, error) {
	ds := &dictionaries{known: map[uint32]*dictionary{}}
	ds.adopt(&dictionary{id: shippedNewest, content: shipped1})
	it, err := db.NewIter(family(dictionaryFamily))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		value := it.Value()
		if len(it.Key()) != 5 || len(value) < crcBytes || binary.LittleEndian.Uint32(value) != crc32.Checksum(value[crcBytes:], castagnoli) {
			return nil, fmt.Errorf("%w: a dictionary's checksum does not fit", ErrCorrupt)
		}
		ds.adopt(&dictionary{id: binary.BigEndian.Uint32(it.Key()[1:]), content: append([]byte(nil), value[crcBytes:]...)})
	}
	if err := it.Error(); err != nil {
		return nil, err
	}
	return ds, ds.current.Load().init()
}

// adopt makes d the current one. A learned one must be on disk.
func (ds *dictionaries) adopt(d *dictionary) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.known[d.id] = d
	ds.current.Store(d)
}

// next returns the number of the next one to be learned, 0 if there are enough.
func (ds *dictionaries) next() uint32 {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if len(ds.known) > maxDictionaries {
		return 0
	}
	greatest := uint32(lastShipped)
	for id := range ds.known {
		greatest = max(greatest, id)
	}
	return greatest + 1
}

func (ds *dictionaries) get(id uint32) (*dictionary, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d := ds.known[id]
	if d == nil {
		if id <= lastShipped {
			return nil, fmt.Errorf("%w: it needs dictionary %d, which this one has not", ErrNewer, id)
		}
		return nil, fmt.Errorf("%w: its dictionary %d is missing", ErrCorrupt, id)
	}
	return d, nil
}

func (ds *dictionaries) count() int {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return len(ds.known)
}

func (d *dictionary) row() []byte {
	row := binary.LittleEndian.AppendUint32(nil, crc32.Checksum(d.content, castagnoli))
	return append(row, d.content...)
}

// init makes the coders; they hold about a megabyte a core.
func (d *dictionary) init() error {
	d.coders.Do(func() {
		cores := min(4, runtime.GOMAXPROCS(0))
		// The fastest level: with a dictionary the slower ones win a tenth and take
		// four times as long. The record has a checksum and the size.
		d.enc, d.err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(cores),
			zstd.WithEncoderCRC(false), zstd.WithWindowSize(512<<10), zstd.WithEncoderDictRaw(d.id, d.content))
		if d.err != nil {
			return
		}
		d.dec, d.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(cores), zstd.WithDecoderMaxMemory(MaxPayload+1),
			zstd.WithDecoderDictRaw(d.id, d.content))
	})
	return d.err
}

// compress appends the payload's frame to b. d was initialised without error.
func (d *dictionary) compress(b, payload []byte) []byte { return d.enc.EncodeAll(payload, b) }

func (d *dictionary) decompress(packed []byte, size int) ([]byte, error) {
	if err := d.init(); err != nil {
		return nil, err
	}
	payload, err := d.dec.DecodeAll(packed, make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if len(payload) != size {
		return nil, fmt.Errorf("%w: the payload has %d bytes and should have %d", ErrCorrupt, len(payload), size)
	}
	return payload, nil
}
