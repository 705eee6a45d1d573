package graphtest

import (
	"fmt"
	"testing"
)

// wide runs a job with more outputs than lie together anywhere, then again with
// others and fewer, and with the first run's events again.
func (s *suite) wide(t *testing.T) {
	const n = 500
	names := func(kind string, from, to int) (out []string) {
		for i := from; i < to; i++ {
			out = append(out, fmt.Sprintf("%s_%d", kind, i))
		}
		return out
	}
	store := s.open(t)
	var sent [][]byte
	for _, bodies := range [][][]byte{
		complete("wide", 10, names("in", 0, n), names("out", 0, n)),
		complete("wide", 20, names("in", n/2, n), names("out", n/4, n)),
		complete("wide", 15, names("in", 0, n/2), names("out", n, n+n/2)),
		complete("other", 30, names("out", 0, n/2), names("in", 0, n/2)),
		complete("wide", 10, names("in", 0, n), names("out", 0, n)),
	} {
		s.write(t, store, bodies...)
		sent = append(sent, bodies...)
		equal(t, snapshot(t, store), s.fold(t, sent))
	}
	for _, again := range s.reopened(t, store) {
		equal(t, snapshot(t, again), s.fold(t, sent))
	}
}
