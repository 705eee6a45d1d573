package ledger

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// space knows how much may still be written. The truth is asked for now and
// then, since to ask is not free; in between it counts.
type space struct {
	l *Ledger
	// The writer's: when the truth was asked for, and what was written since.
	asked time.Time
	since int64
	left  int64

	used, free atomic.Int64 // as asked last; free is -1 where the system does not tell
}

// How old the truth may get.
const (
	spaceBytes    = 1 << 20
	spaceInterval = time.Second
)

func newSpace(l *Ledger) *space {
	s := &space{l: l}
	s.ask()
	return s
}

func (s *space) ask() {
	s.asked, s.since, s.left = time.Now(), 0, math.MaxInt64
	used, free := int64(s.l.db.Metrics().DiskSpaceUsage()), int64(-1)
	if usage, err := s.l.fs.GetDiskUsage(s.l.dir); err == nil {
		free = int64(min(usage.AvailBytes, math.MaxInt64))
	}
	s.used.Store(used)
	s.free.Store(free)
	if budget := s.l.opt.DiskBudget; budget > 0 {
		s.left = budget - used
	}
	if reserve := s.l.opt.DiskReserve; reserve >= 0 && free >= 0 {
		s.left = min(s.left, free-reserve)
	}
}

// room returns how many bytes may be written, 0 or less if none. The writer
// calls it.
func (s *space) room() int64 {
	if s.since >= spaceBytes || time.Since(s.asked) >= spaceInterval {
		s.ask()
	}
	return s.left - s.since
}

// wrote says that the writer wrote n bytes.
func (s *space) wrote(n int) { s.since += int64(n) }

func (s *space) describe() string {
	text := fmt.Sprintf("%d bytes are used", s.used.Load())
	if budget := s.l.opt.DiskBudget; budget > 0 {
		text += fmt.Sprintf(" of a budget of %d", budget)
	}
	if free := s.free.Load(); free >= 0 {
		text += fmt.Sprintf(", %d are free on the disk", free)
	}
	return text
}
