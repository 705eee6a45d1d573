package ledger

import (
	"fmt"
	"time"
)

// Stats is the state of a ledger, for gauges.
type Stats struct {
	LogID string
	// First and Last are the log's range, LogBytes what it takes on disk, about;
	// what is still in memory (at most two memtables) is not in it.
	First, Last uint64
	LogBytes    uint64
	Window      WindowStats
	// Hits counts deliveries whose event was known, by Accept since the opening,
	// Misses those whose was not; RecentHits what SeenRaw answered.
	Hits, Misses, RecentHits uint64
	// Entries and Groups count what Accept took and in how many commits.
	Entries, Groups uint64
	// Rows and RowBytes count what was written since the opening beside the payloads:
	// rows, deletions too, and the bytes of their keys and values.
	Rows, RowBytes int64
	// DiskBytes is what the directory takes, DiskBudget Options.DiskBudget.
	DiskBytes    uint64
	DiskBudget   int64
	Dictionaries int
	RecentBytes  int64 // memory of the table behind SeenRaw
	// BackgroundErrors counts flushes and compactions that failed and were tried
	// again, and reads that met corruption.
	BackgroundErrors    uint64
	LastBackgroundError string
}

// WindowStats is the state of the dedupe window.
type WindowStats struct {
	// Oldest is when the first delivery was received that it still remembers; zero
	// if it is empty. Its age is the horizon: alert when it is shorter than the
	// longest delay of a retry.
	Oldest time.Time
	// Keys and Bytes count its rows (a body and, with the first, an event), Bound
	// is Options.WindowBytes.
	Keys, Bytes, Bound int64
	Generations        int
	// FilterBytes is the memory of its filters; FiltersReady is how many
	// generations they answer for. FalseProbes counts look-ups that a filter sent
	// to the disk in vain.
	FilterBytes  int64
	FiltersReady int
	FalseProbes  uint64
}

// Stats returns the state of the ledger. It reads metadata only. Errors:
// ErrClosed, ErrFailed.
func (l *Ledger) Stats() (Stats, error) {
	var s Stats
	err := l.do(func() (err error) {
		s, err = l.stats()
		return err
	})
	if err != nil {
		return Stats{}, err
	}
	return s, nil
}

func (l *Ledger) stats() (Stats, error) {
	logBytes, err := l.db.EstimateDiskUsage([]byte{logFamily}, []byte{logFamily + 1})
	if err != nil {
		return Stats{}, fmt.Errorf("reading the log's size: %w", err)
	}
	s := Stats{
		LogID: l.id, First: l.First(), Last: l.Last(), LogBytes: logBytes, Window: l.window.stats(),
		Hits: l.tally.hits.Load(), Misses: l.tally.misses.Load(), RecentHits: l.tally.recentHits.Load(),
		Entries: l.tally.entries.Load(), Groups: l.tally.groups.Load(), Rows: l.tally.rows.Load(), RowBytes: l.tally.rowBytes.Load(),
		DiskBytes: l.db.Metrics().DiskSpaceUsage(), DiskBudget: l.opt.DiskBudget, Dictionaries: l.dicts.count(),
		RecentBytes: l.recent.bytes(), BackgroundErrors: l.tally.backgroundErrors.Load(),
	}
	if text := l.tally.lastBackgroundError.Load(); text != nil {
		s.LastBackgroundError = *text
	}
	return s, nil
}

func (w *window) stats() WindowStats {
	list := *w.generations.Load()
	s := WindowStats{Bound: w.bound, Generations: len(list), FalseProbes: w.tally.falseProbes.Load()}
	for _, g := range list {
		s.Keys += g.keys.Load()
		s.Bytes += g.bytes.Load()
		s.Oldest = g.start.Time()
		if f := g.filter.Load(); f != nil {
			s.FilterBytes += f.bytes()
			if g.ready.Load() {
				s.FiltersReady++
			}
		}
	}
	return s
}
