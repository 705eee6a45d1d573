package lineage

import (
	"cmp"
	"slices"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// RunState is the state of an episode, an attempt or a logical run.
type RunState string

// The states. Running is every run that no terminal observation ended.
const (
	Running  RunState = "running"
	Complete RunState = "complete"
	Failed   RunState = "failed"
	Aborted  RunState = "aborted"
)

// Own is what an attempt's own observations say, without regard to any other
// run: the first level of settlement.
type Own struct {
	Attempt fact.Attempt
	// Slot is the best that any event names, Parent the parent reference of the
	// best event that names one.
	Slot   fact.Slot
	Parent fact.RunRef
	// Backfill says that one of its events is of an Airflow backfill.
	Backfill bool
	// Terminal says that a terminal observation was ever made.
	Terminal bool
	// Completed is the latest time of a standing COMPLETE, zero if none.
	Completed openlineage.Instant
	// First and Last are the first and last event time.
	First, Last openlineage.Instant
	Episodes    []Episode
	Warnings    []string
}

// Episode is one stretch of an attempt, from a START to what ended it: a START
// after a terminal observation opens a new one (Airflow 2 clears a DAG run
// under one runId).
type Episode struct {
	First, Last openlineage.Instant
	State       RunState
	// Ended is the time of the standing terminal observation, zero while it runs.
	Ended openlineage.Instant
	// Continuous says that its job is STREAMING or a SERVICE.
	Continuous bool
	// Said is what its events say together, nil if they name no dataset.
	Said *Said
	// digest identifies the moments that it was concluded from.
	digest mark
}

// Asserts reports whether what the episode says counts as lineage. completed is
// the latest standing COMPLETE of the parent attempt: a run that runs still
// though its parent completed after it began lost its own end.
func (e *Episode) Asserts(completed openlineage.Instant) bool {
	switch {
	case e.Said == nil:
		return false
	case e.State == Complete, e.Continuous:
		return true
	default:
		return e.State == Running && !completed.IsZero() && !completed.Before(e.First)
	}
}

// decides returns the time at which the episode's word counts: of its standing
// terminal observation, or of its last event while it runs.
func (e *Episode) decides() openlineage.Instant {
	if e.State == Running {
		return e.Last
	}
	return e.Ended
}

// last returns the episode that is the attempt's state.
func (o *Own) last() *Episode { return &o.Episodes[len(o.Episodes)-1] }

// moment is one observation at one of its times.
type moment struct {
	at  openlineage.Instant
	obs *fact.Observation
}

// rank orders observations of one time: START first, terminal ones last, and
// among those FAIL, ABORT, COMPLETE.
func rank(t openlineage.EventType) int {
	switch t {
	case openlineage.Start:
		return 0
	case openlineage.Fail:
		return 2
	case openlineage.Abort:
		return 3
	case openlineage.Complete:
		return 4
	}
	return 1
}

// compareMoments orders moments by time, rank and then by event and content, so
// that no order of arrival shows.
func compareMoments(a, b moment) int {
	return cmp.Or(
		a.at.Compare(b.at), cmp.Compare(rank(a.obs.Type), rank(b.obs.Type)),
		fact.CompareIDs(a.obs.Event, b.obs.Event), fact.CompareIDs(a.obs.Content, b.obs.Content),
		a.obs.Parent.Compare(b.obs.Parent))
}

// readAttempt concludes from an attempt's observations, of which there is at
// least one; group are the attempts of its run.
//
// before is what was concluded earlier, nil for nothing: what an episode said that
// has the same moments still is not united again, since a runId that is used for
// ever has thousands of episodes.
func readAttempt(a fact.Attempt, group []fact.Attempt, observations []fact.Observation, before *Own) Own {
	o := Own{Attempt: a}
	if apart(a, group) {
		o.Warnings = append(o.Warnings, "several mapped attempts")
	}
	moments := make([]moment, 0, len(observations)+2)
	for i := range observations {
		obs := &observations[i]
		moments = append(moments, moment{obs.First, obs})
		if obs.Last != obs.First {
			moments = append(moments, moment{obs.Last, obs})
		}
	}
	slices.SortFunc(moments, compareMoments)
	o.First, o.Last = moments[0].at, moments[len(moments)-1].at
	o.readSlot(moments)

	united := map[mark]*Episode{}
	if before != nil {
		for i := range before.Episodes {
			united[before.Episodes[i].digest] = &before.Episodes[i]
		}
	}
	from := 0
	ended := false
	for i, m := range moments {
		if m.obs.Type == openlineage.Start && ended {
			o.closeEpisode(moments[from:i], united)
			from, ended = i, false
		}
		ended = ended || m.obs.Type.Terminal()
		o.Terminal = o.Terminal || ended
		o.Backfill = o.Backfill || m.obs.Backfill
	}
	o.closeEpisode(moments[from:], united)
	return o
}

// readSlot finds the best slot and parent: of the better rule, then of the
// earliest event, then of the smallest bytes. moments are sorted by time.
func (o *Own) readSlot(moments []moment) {
	var slotAt, parentAt openlineage.Instant
	var parentRule fact.Rule
	slots, parents := 0, 0
	var anySlot fact.Slot
	var anyParent fact.RunRef
	for _, m := range moments {
		s := m.obs.Slot
		if s != anySlot {
			anySlot = s
			slots++
		}
		better := cmp.Or(cmp.Compare(s.Rule, o.Slot.Rule), m.at.Compare(slotAt), s.Compare(o.Slot)) < 0
		if o.Slot.Rule == 0 || better {
			o.Slot, slotAt = s, m.at
		}
		p := m.obs.Parent
		if p.IsZero() {
			continue
		}
		if p != anyParent {
			anyParent = p
			parents++
		}
		better = cmp.Or(cmp.Compare(s.Rule, parentRule), m.at.Compare(parentAt), p.Compare(o.Parent)) < 0
		if o.Parent.IsZero() || better {
			o.Parent, parentAt, parentRule = p, m.at, s.Rule
		}
	}
	if slots > 1 && differentSlots(moments, o.Slot) {
		o.Warnings = append(o.Warnings, "several slots")
	}
	if parents > 1 {
		o.Warnings = append(o.Warnings, "several parents")
	}
}

// differentSlots reports whether two events name different slots by one rule:
// that an event names a worse slot than the best one is normal.
func differentSlots(moments []moment, best fact.Slot) bool {
	for _, m := range moments {
		if s := m.obs.Slot; s.Rule == best.Rule && s != best {
			return true
		}
	}
	return false
}

// closeEpisode adds the episode that moments make. united are the episodes whose
// word is known.
func (o *Own) closeEpisode(moments []moment, united map[mark]*Episode) {
	e := Episode{digest: digestOf(moments), State: Running, First: moments[0].at, Last: moments[len(moments)-1].at}
	several := false
	for _, m := range moments {
		if !m.obs.Type.Terminal() {
			continue
		}
		state := map[openlineage.EventType]RunState{
			openlineage.Complete: Complete, openlineage.Fail: Failed, openlineage.Abort: Aborted,
		}[m.obs.Type]
		if e.State == Running { // the first one stands
			e.State, e.Ended = state, m.at
		} else if state != e.State {
			several = true
		}
	}
	if several {
		o.Warnings = append(o.Warnings, "several outcomes")
	}
	if e.State == Complete && o.Completed.Before(e.Ended) {
		o.Completed = e.Ended
	}
	if known := united[e.digest]; known != nil {
		e.Said, e.Continuous = known.Said, known.Continuous
	} else {
		e.Said, e.Continuous = unite(o.Attempt.Job, moments)
	}
	o.Episodes = append(o.Episodes, e)
}

// mark tells whether something is as it was: a part of a digest, of one row only.
type mark [12]byte

func markOf(id fact.ID) (m mark) {
	copy(m[:], id[:])
	return m
}

// digestOf identifies moments by what unite reads of them.
func digestOf(moments []moment) mark {
	k := make(keyBuilder, 0, len(moments)*(timeLen+2*idLen))
	for _, m := range moments {
		k = k.time(m.at).id(m.obs.Event).id(m.obs.Content)
	}
	return markOf(fact.HashBytes("moments", k))
}
