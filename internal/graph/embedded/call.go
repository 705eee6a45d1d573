package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/namesearch"
)

// do runs whatever touches the store. If the disk fails meanwhile, or the store is
// found to be corrupt, it does not wait for op (see disk.Stop), which then runs on
// with nobody to hear of it.
func do[T any](ctx context.Context, s *Store, op func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if s.stop.Stopped() {
		return none, s.stop.Err()
	}
	if err := s.Corruption(); err != nil {
		return none, err
	}
	type result struct {
		out T
		err error
	}
	done := make(chan result, 1)
	go func() {
		s.close.RLock()
		defer s.close.RUnlock()
		select {
		case <-s.quit:
			done <- result{err: graph.ErrClosed}
		default:
			out, err := op()
			if errors.Is(err, graph.ErrCorrupt) {
				s.condemn(err)
			}
			done <- result{out, err}
		}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return none, r.err
		}
		return r.out, nil
	case <-s.stop.Failed():
		return none, s.stop.Err()
	case <-s.corruption.found:
		return none, s.corruption.err
	}
}

// room says ErrFull where the disk is nearly full.
func (s *Store) room() error {
	usage, err := s.opt.FS.GetDiskUsage(s.dir)
	if err == nil && s.opt.Reserve > 0 && usage.AvailBytes < uint64(s.opt.Reserve) {
		return fmt.Errorf("%w: %d bytes are free on the disk, %d are to be left free", graph.ErrFull, usage.AvailBytes, s.opt.Reserve)
	}
	return nil
}

// index puts the names on disk into the index, in the background.
func (s *Store) index() {
	v, done := s.view()
	add := func(kind fact.EntityKind) bool {
		n := 0
		for id, name := range v.State.Names(kind) {
			s.names.Add(namesearch.Entry{Kind: kind, ID: id, Name: name})
			if n++; n%1024 == 0 {
				select {
				case <-s.quit:
					return false
				default:
				}
			}
		}
		return true
	}
	whole := false
	err := guard(func() error {
		whole = add(fact.DatasetEntity) && add(fact.JobEntity)
		return nil
	})
	if err := errors.Join(err, done()); errors.Is(err, graph.ErrCorrupt) {
		s.condemn(fmt.Errorf("making the index of names: %w", err))
		return
	} else if err != nil {
		s.opt.Logger.Error("the index of names was not made: search does not find everything", "error", err)
		return
	}
	s.indexing.Store(!whole)
}
