package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/graphd/graphd/internal/disk"
)

// Options of a ledger. The zero value is a useful one.
type Options struct {
	// WindowBytes bounds the rows of the dedupe window, keys and values, oldest
	// first; about 110 bytes an event with one body. Past the window a delivery
	// counts as new here, and only the graph's constraint tells it. Default 1 GiB,
	// which is nine million events; at least 64 KiB.
	WindowBytes int64
	// FilterBytes bounds the filters in memory that answer for unknown keys. They
	// want about 3% of WindowBytes; with less, the oldest generations are looked up
	// on disk. Default 64 MiB.
	FilterBytes int64
	// RecentBytes bounds the table behind SeenRaw, 88 bytes a body. Default 32 MiB;
	// negative for none.
	RecentBytes int64
	// CacheBytes bounds Pebble's cache of blocks, in which its two memtables have
	// their place, and each of those, which have 8 MB at most. Default 64 MiB.
	CacheBytes int64
	// DiskBudget bounds what the directory takes, in bytes; 0 for no bound. Above
	// it Accept says ErrFull. Compactions need room beside it for a while. At least
	// 128 MiB.
	DiskBudget int64
	// DiskReserve is how much of the file system is left free: with less, Accept
	// says ErrFull. A disk that is really full would stop the ledger. Default 256
	// MiB; negative for none.
	DiskReserve int64
	// MaxProducers bounds the producers told apart in the counts of one hour; the
	// rest count as "other". Default 100.
	MaxProducers int

	// Now is the clock, by default time.Now.
	Now func() time.Time
	// FS is the file system, by default the operating system's. Tests inject
	// faults through it.
	FS vfs.FS
	// Logger is told what Pebble and the ledger have to say. Default: nobody.
	Logger *slog.Logger

	// What tests make smaller: the memtable, how many bodies a dictionary is
	// learned from, and how many lie between two attempts. And longer: how long
	// counts wait to be saved.
	memTable              uint64
	learnFrom, learnEvery int
	countsWait            time.Duration
}

// Sizes of what Open reads back after a crash. Measured with both memtables full,
// rows being small: 0.2 s with 8 MB, 0.3 s with 12 MB, 0.5 s with 16 MB.
// MinBudget is the least DiskBudget that is not 0.
const MinBudget = 128 << 20

const (
	memTableBytes = 8 << 20
	memTables     = 2
	minWindow     = 64 << 10
)

func (o Options) withDefaults() (Options, error) {
	setDefault(&o.WindowBytes, 1<<30)
	setDefault(&o.FilterBytes, 64<<20)
	setDefault(&o.RecentBytes, 32<<20)
	setDefault(&o.CacheBytes, 64<<20)
	setDefault(&o.DiskReserve, 256<<20)
	setDefault(&o.MaxProducers, 100)
	setDefault(&o.memTable, uint64(min(memTableBytes, o.CacheBytes)))
	setDefault(&o.learnFrom, 128)
	setDefault(&o.learnEvery, 1<<16)
	setDefault(&o.countsWait, 200*time.Millisecond)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var errs []error
	if o.WindowBytes < minWindow {
		errs = append(errs, fmt.Errorf("a window of %d bytes is less than %d", o.WindowBytes, minWindow))
	}
	if o.FilterBytes < 0 || o.CacheBytes < 0 || o.MaxProducers < 0 {
		errs = append(errs, errors.New("FilterBytes, CacheBytes and MaxProducers cannot be negative"))
	}
	if o.DiskBudget != 0 && o.DiskBudget < MinBudget && o.memTable == memTableBytes {
		errs = append(errs, fmt.Errorf("a disk budget of %d bytes is less than %d", o.DiskBudget, MinBudget))
	}
	return o, errors.Join(errs...)
}

func setDefault[T int | int64 | uint64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// formatVersion is pinned: a newer Pebble must not change files on disk before
// somebody decided so, since an older graphd could not open them any more.
const formatVersion = pebble.FormatValueSeparation

func (l *Ledger) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FS:                          l.fs,
		Lock:                        l.lock,
		Logger:                      l.stop,
		FormatMajorVersion:          formatVersion,
		MemTableSize:                l.opt.memTable,
		MemTableStopWritesThreshold: memTables,
		CacheSize:                   l.opt.CacheBytes,
		MaxOpenFiles:                500,
		CompactionConcurrencyRange:  l.compactions,
		// Work on L0 early, and stop writers late: an intake that stands still loses
		// events of clients that do not wait.
		L0CompactionThreshold: 2,
		L0StopWritesThreshold: 1000,
		// The space of a dropped generation and of a truncated log comes back once
		// the deletion has left the memtable.
		FlushDelayDeleteRange: time.Second,
		FlushSplitBytes:       4 << 20,
		LBaseMaxBytes:         64 << 20,
		MaxManifestFileSize:   8 << 20,
		EventListener:         l.listener(),
	}
	o.TargetFileSizes[0] = 4 << 20
	for i := range o.Levels {
		o.Levels[i] = pebble.LevelOptions{
			BlockSize:      16 << 10,
			IndexBlockSize: 128 << 10,
			FilterPolicy:   bloom.FilterPolicy(10),
			FilterType:     pebble.TableFilter,
			// Payloads are compressed and digests do not compress.
			Compression: func() *block.CompressionProfile { return block.FastestCompression },
		}
	}
	// The first level is soon rewritten, and its writing is what an opening after a
	// crash waits for.
	o.Levels[0].Compression = func() *block.CompressionProfile { return block.NoCompression }
	return o
}

// compactions bounds how many go on at once. There is none before the ledger is
// open, unless many are due: what is recovered after a crash is written to
// tables, which may call for one at once, and it would take its part of the disk
// and of the processor from the opening. They begin with the first flush.
func (l *Ledger) compactions() (least, most int) {
	if !l.stop.Opened() {
		return 0, 2
	}
	return 1, 2
}

func (l *Ledger) listener() *pebble.EventListener {
	note := func(what string, err error) {
		n, text := l.tally.backgroundErrors.Add(1), err.Error()
		if last := l.tally.lastBackgroundError.Swap(&text); last == nil || *last != text || n%100 == 0 {
			l.log.Error(what, "dir", l.dir, "error", disk.Line(err), "errors", n)
		}
	}
	return &pebble.EventListener{
		FlushEnd: l.stop.Flushed,
		// Pebble tries flushes and compactions again; meanwhile the log takes what
		// comes.
		BackgroundError: func(err error) { note("the ledger's background work failed", err) },
		// Whoever read it gets the error too. What else the store holds is sound.
		DataCorruption: func(info pebble.DataCorruptionInfo) { note("the ledger is corrupt", info.Details) },
	}
}
