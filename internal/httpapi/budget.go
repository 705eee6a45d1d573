package httpapi

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// budget bounds the memory that all request bodies take together, decoded and
// parsed. A request that finds none left waits: intake is slowed, not refused.
type budget struct {
	free  *semaphore.Weighted
	total int64
	wait  time.Duration
}

func newBudget(total int64, wait time.Duration) *budget {
	return &budget{free: semaphore.NewWeighted(total), total: total, wait: wait}
}

// lease is what one request holds of a budget: a part that it needs to its end,
// and one that grows and shrinks.
type lease struct {
	of    *budget
	fixed int64
	held  int64 // fixed included
}

func (b *budget) lease() *lease { return &lease{of: b} }

// reserve takes n bytes that are held until release.
func (l *lease) reserve(ctx context.Context, n int64) error {
	if err := l.grow(ctx, l.held-l.fixed+n); err != nil {
		return err
	}
	l.fixed += n
	return nil
}

// now grows the lease to n bytes beside what is reserved, if they are free at
// once.
func (l *lease) now(n int64) bool {
	n += l.fixed
	if n <= l.held {
		return true
	}
	if !l.of.free.TryAcquire(n - l.held) {
		return false
	}
	l.held = n
	return true
}

// grow grows the lease to n bytes beside what is reserved, waiting for them. It fails for good if the
// whole budget is not enough, and for the moment after a while: several
// requests that each hold a part and wait for more would wait for ever.
func (l *lease) grow(ctx context.Context, n int64) error {
	if l.fixed+n > l.of.total {
		return fail("too-large", nil, "To read this would take about %d bytes of memory, which is more than the %d that all requests "+
			"together may take. Send less at once, or give graphd a larger --request-memory.", n, l.of.total)
	}
	if l.now(n) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, l.of.wait)
	defer cancel()
	if err := l.of.free.Acquire(waiting, l.fixed+n-l.held); err != nil {
		return fail("unavailable", nil, "Other requests hold the memory that this one needs. Send it again.").retry(busyPause).because(err)
	}
	l.held = l.fixed + n
	return nil
}

// release gives everything back.
func (l *lease) release() {
	l.fixed = 0
	l.shrink(0)
}

// shrink gives back what is held beyond n bytes and what is reserved.
func (l *lease) shrink(n int64) {
	if n += l.fixed; l.held > n {
		l.of.free.Release(l.held - n)
		l.held = n
	}
}

// What a body takes while it is decoded, as measured by TestWeightCoversMemory:
// its text, its copies in canonical form, and the tree. A value of the tree
// takes 72 bytes, and as much again, twice, while its container is read: one
// megabyte of "[1,1,1" takes a hundred.
const (
	bytesPerByte  = 6
	bytesPerValue = 200
)

// weight estimates the memory that decoding a body takes.
func weight(body []byte) int64 {
	values := int64(1)
	quoted, escaped := false, false
	for _, c := range body {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == ',' || c == '[' || c == '{':
			values++
		}
	}
	return int64(len(body))*bytesPerByte + values*bytesPerValue
}
