package projection

import (
	"errors"
	"fmt"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/ledger"
)

// Archive is the log as a graph's archive of bodies.
type Archive struct {
	Log interface {
		Record(uint64) (ledger.LogRecord, error)
	}
	Decode func(body []byte) (*fact.Event, error)
}

// Event implements graph.Archive.
func (a Archive) Event(sequence uint64) (graph.LoggedEvent, error) {
	r, err := a.Log.Record(sequence)
	switch {
	case errors.Is(err, ledger.ErrTruncated):
		return graph.LoggedEvent{}, fmt.Errorf("%w: %w", graph.NotFound{What: fmt.Sprintf("record %d of the log", sequence)}, err)
	case errors.Is(err, ledger.ErrNotFound):
		// The graph has it from somewhere else.
		return graph.LoggedEvent{}, fmt.Errorf("record %d of the log: %w: %w", sequence, graph.ErrCorrupt, err)
	case err != nil:
		return graph.LoggedEvent{}, err
	}
	e, err := a.Decode(r.Payload)
	if err != nil {
		return graph.LoggedEvent{}, fmt.Errorf("decoding record %d of the log: %w", sequence, err)
	}
	return graph.LoggedEvent{Event: e, Sequence: sequence, Outcome: r.Outcome, Received: r.Received, Payload: r.Payload}, nil
}
