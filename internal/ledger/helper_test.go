package ledger

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// small are options that make everything happen soon: memtables rotate,
// dictionaries are learned.
func small() Options {
	return Options{
		CacheBytes: 1 << 20, RecentBytes: 1 << 16, FilterBytes: 1 << 20, WindowBytes: 16 << 20, DiskReserve: -1,
		memTable: 128 << 10, learnFrom: 32, learnEvery: 256,
	}
}

func open(t testing.TB, dir string, o Options) *Ledger {
	t.Helper()
	l, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func reopen(t testing.TB, l *Ledger) *Ledger {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, l.dir, l.opt)
}

func digest(domain string, n uint64) fact.ID {
	return fact.HashBytes(domain, binary.BigEndian.AppendUint64(nil, n))
}

var epoch = time.Date(2025, 3, 1, 12, 0, 0, 123_456_789, time.UTC)

// said makes the entry of a body that says content and drift under event.
func said(event, content, drift, body uint64) Entry {
	payload := fmt.Appendf(nil, `{"eventType":"START","run":{"runId":"%d"},"job":{"namespace":"default","name":"job-%d"},"n":%d}`, event, event%7, body)
	return Entry{
		Event: digest("event", event), Content: digest("content", content), Drift: digest("drift", drift), Body: digest("body", body),
		EventTime: openlineage.InstantOf(epoch.Add(time.Duration(body) * time.Millisecond)), Raw: DigestRaw(payload),
		Kind: openlineage.RunEvent, Producer: fmt.Sprintf("https://producer/%d", event%3), Payload: payload,
		Received: epoch.Add(time.Duration(body) * time.Second),
	}
}

// fresh makes an entry that is new.
func fresh(n uint64) Entry { return said(n, 0, 0, n) }

func accept(t testing.TB, l *Ledger, entries ...Entry) []Verdict {
	t.Helper()
	verdicts, err := l.Accept(t.Context(), entries)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}

func outcomesOf(verdicts []Verdict) (list []fact.Outcome) {
	for i := range verdicts {
		list = append(list, verdicts[i].Outcome)
	}
	return list
}

func readAll(t testing.TB, l *Ledger) (records []LogRecord) {
	t.Helper()
	for r, err := range l.Read(0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

// model is the ledger as a few maps: what Accept's comment says, and no more.
type model struct {
	bodies map[fact.ID]Verdict
	events map[fact.ID]*modelEvent
	last   uint64
}

type modelEvent struct {
	firstSeen time.Time
	firstTime openlineage.Instant
	contents  []fact.ID
	drifts    map[fact.ID][]fact.ID
}

func newModel() *model {
	return &model{bodies: map[fact.ID]Verdict{}, events: map[fact.ID]*modelEvent{}}
}

// first keeps the first and the latest n-1.
func first(list []fact.ID, n int) []fact.ID {
	for len(list) > n {
		list = append(list[:1:1], list[2:]...)
	}
	return list
}

func (m *model) accept(e *Entry) Verdict {
	if v, ok := m.bodies[e.Body]; ok {
		v.Outcome = fact.Retry
		return v
	}
	m.last++
	v := Verdict{Event: e.Event, Sequence: m.last}
	ev := m.events[e.Event]
	switch {
	case ev == nil:
		ev = &modelEvent{firstSeen: e.Received, firstTime: e.EventTime, contents: []fact.ID{e.Content}, drifts: map[fact.ID][]fact.ID{}}
		m.events[e.Event] = ev
		v.Outcome = fact.New
	case !slices.Contains(ev.contents, e.Content):
		ev.contents = first(append(ev.contents, e.Content), maxContents)
		delete(ev.drifts, e.Content)
		v.Outcome = fact.Collision
	case slices.Contains(ev.drifts[e.Content], e.Drift):
		v.Outcome = fact.Equivalent
	default:
		v.Outcome = fact.Redescribed
	}
	if v.Outcome != fact.Equivalent {
		ev.drifts[e.Content] = first(append(ev.drifts[e.Content], e.Drift), maxDrifts)
	}
	v.FirstSeen, v.FirstEventTime = ev.firstSeen.UTC(), ev.firstTime
	m.bodies[e.Body] = v
	return v
}

// stream makes n random deliveries with many retries, equivalents, drifts and
// collisions. A body always says the same.
func stream(r *rand.Rand, n int) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		body := r.Uint64N(uint64(n)/2 + 1)
		of := rand.New(rand.NewPCG(body, 7))
		event := of.Uint64N(uint64(n)/8 + 1)
		entries[i] = said(event, of.Uint64N(2)*of.Uint64N(2)*of.Uint64N(40), of.Uint64N(3), body)
		if of.Uint64N(16) == 0 {
			entries[i].Payload = append(entries[i].Payload, strings.Repeat(fmt.Sprint(of.Uint64()), 40+of.IntN(200))...)
			entries[i].Raw = DigestRaw(entries[i].Payload)
		}
	}
	return entries
}

// sent remembers what was sent and what was acknowledged.
type sent struct {
	mu       sync.Mutex
	entries  map[fact.ID]*Entry  // by body
	verdicts map[fact.ID]Verdict // the first acknowledged verdict over a body
}

func newSent(entries []Entry) *sent {
	s := &sent{entries: map[fact.ID]*Entry{}, verdicts: map[fact.ID]Verdict{}}
	for i := range entries {
		s.entries[entries[i].Body] = &entries[i]
	}
	return s
}

func (s *sent) acknowledge(entries []Entry, verdicts []Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range entries {
		if _, known := s.verdicts[entries[i].Body]; !known {
			s.verdicts[entries[i].Body] = verdicts[i]
		}
	}
}

func (s *sent) acknowledged() map[fact.ID]Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := make(map[fact.ID]Verdict, len(s.verdicts))
	for b, v := range s.verdicts {
		m[b] = v
	}
	return m
}

// check says that the log of l is what it promises to be, given what was sent and
// what of it was acknowledged, and that verdicts go on from there.
func (s *sent) check(t testing.TB, l *Ledger, acknowledged map[fact.ID]Verdict) {
	t.Helper()
	m := newModel()
	records := readAll(t, l)
	if uint64(len(records)) != l.Last() {
		t.Fatalf("the log has %d records and ends with %d", len(records), l.Last())
	}
	if err := totalsFit(l, records); err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		e := s.entries[r.Body]
		switch {
		case r.Sequence != uint64(i+1):
			t.Fatalf("record %d has sequence %d", i+1, r.Sequence)
		case e == nil:
			t.Fatalf("record %d was never sent", r.Sequence)
		case string(r.Payload) != string(e.Payload) || !r.Received.Equal(e.Received):
			t.Fatalf("record %d is not what was sent", r.Sequence)
		}
		if want := m.accept(e); r.Outcome != want.Outcome || want.Sequence != r.Sequence {
			t.Fatalf("record %d is %s; by the log before it, it is %s of %d", r.Sequence, r.Outcome, want.Outcome, want.Sequence)
		}
	}
	for body, v := range acknowledged {
		kept, ok := m.bodies[body]
		if !ok {
			t.Fatalf("a body was acknowledged as %s with sequence %d and is gone", v.Outcome, v.Sequence)
		}
		if v.Outcome == fact.Retry {
			kept.Outcome = fact.Retry
		}
		if v != kept {
			t.Fatalf("a body was acknowledged as %+v and is kept as %+v", v, kept)
		}
		if again := accept(t, l, *s.entries[body]); again[0] != m.accept(s.entries[body]) {
			t.Fatalf("sent again, a body is %+v, want %+v", again[0], m.accept(s.entries[body]))
		}
	}
	for n := range uint64(20) {
		e := said(n, n%3, n, 1<<40+n)
		if v := accept(t, l, e); v[0] != m.accept(&e) {
			t.Fatalf("the next verdict is %+v, want %+v", v[0], m.bodies[e.Body])
		}
	}
}
