package projection

import "time"

// Stats is how the graph follows the log.
type Stats struct {
	// Found says that it is known how far the graph has come; until then the store
	// is being opened, or does not answer.
	Found bool
	// Position is the last record of the log that is in the graph, Last the last one.
	Position, Last uint64
	// Lag is about how long ago the first record was received that is not written; 0
	// if all are, or before the first one is read.
	Lag time.Duration
	// Settling says that something that is written is not settled yet.
	Settling bool
	// Skipped counts records that could not be read as events, since the start.
	Skipped uint64
	// Failure is why nothing is written at the moment, nil if it is.
	Failure error
}

// Stats returns how the graph follows the log.
func (p *Projector) Stats() Stats {
	s := Stats{Last: p.opt.Log.Last(), Found: p.found.Load(), Position: p.position.Load(), Settling: p.backlog.Load(), Skipped: p.skipped.Load()}
	if at := p.received.Load(); s.Position < s.Last && at != 0 {
		s.Lag = max(0, p.opt.Now().Sub(time.Unix(0, at)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Failure = p.failure
	return s
}
