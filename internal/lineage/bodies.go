package lineage

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// Where the bodies of events stand in a log. Nothing is concluded from it, and no
// snapshot shows it.

// Log notes the place of an event's body in the log, from 1.
func (st *State) Log(e *fact.Event, sequence uint64) {
	st.EventBodies.Put(bodyKey(e.ID, sequence), struct{}{})
	st.EntityBodies.Put(bodyKey(entityOf(e), sequence), struct{}{})
}

// entityOf is the entity whose event it is.
func entityOf(e *fact.Event) fact.ID {
	if e.Kind == openlineage.DatasetEvent {
		return fact.DatasetKey(e.Dataset)
	}
	return fact.JobKey(e.Job)
}

func bodyKey(id fact.ID, sequence uint64) string {
	return string(binary.BigEndian.AppendUint64(keyOf(id), sequence))
}

func sequenceAt(key string) uint64 { return binary.BigEndian.Uint64([]byte(key[idLen:])) }

// EventSequences yields the places of an event's bodies, the first one first.
func (st *State) EventSequences(event fact.ID) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for key := range st.EventBodies.Scan(keyOf(event).String(), "") {
			if !yield(sequenceAt(key)) {
				return
			}
		}
	}
}

// EntitySequences yields the places before before of the bodies of a job's run
// and job events, or of a dataset's own events, the last one first.
func (st *State) EntitySequences(entity fact.ID, before uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for key := range st.EntityBodies.ScanBefore(keyOf(entity).String(), bodyKey(entity, before)) {
			if !yield(sequenceAt(key)) {
				return
			}
		}
	}
}

// RunSequences returns the places before before of the bodies of the events that
// a logical run's attempts were observed of, the last one first. It reads at most
// limit observations: of a run that has more, those that were not read are left
// out.
func (st *State) RunSequences(run RunID, before uint64, limit int) (sequences []uint64) {
	s := settlement{State: st}
	seen := map[fact.ID]bool{}
	for a := range st.AttemptsOf(run) {
		for _, o := range s.observationsOf(a.Attempt) {
			if limit--; limit < 0 {
				break
			}
			if seen[o.Event] {
				continue
			}
			seen[o.Event] = true
			for sequence := range st.EventSequences(o.Event) {
				if sequence < before {
					sequences = append(sequences, sequence)
				}
			}
		}
	}
	slices.Sort(sequences)
	slices.Reverse(sequences)
	return sequences
}

// Standing returns what an attempt is settled as, nil if as nothing, and whether
// nothing of its own is pending.
func (st *State) Standing(a fact.Attempt) (row *AttemptRow, settled bool) {
	row = st.AttemptOf(a)
	pending := has(st.Todos, Todo{Kind: TodoAttempt, Attempt: a}.key())
	if row != nil && row.Attempt != a {
		pending = pending || has(st.Todos, Todo{Kind: TodoAttempt, Attempt: row.Attempt}.key())
	}
	return row, !pending
}
