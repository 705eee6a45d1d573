package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
)

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		entries []Entry
		want    []fact.Outcome
	}{
		{"the same body twice", []Entry{said(1, 1, 1, 1), said(1, 1, 1, 1)}, []fact.Outcome{fact.New, fact.Retry}},
		{"other transport", []Entry{said(1, 1, 1, 1), said(1, 1, 1, 2)}, []fact.Outcome{fact.New, fact.Equivalent}},
		{"another drift", []Entry{said(1, 1, 1, 1), said(1, 1, 2, 2), said(1, 1, 2, 3), said(1, 1, 1, 4)},
			[]fact.Outcome{fact.New, fact.Redescribed, fact.Equivalent, fact.Equivalent}},
		{"other content", []Entry{said(1, 1, 1, 1), said(1, 2, 1, 2), said(1, 2, 1, 3), said(1, 1, 1, 4)},
			[]fact.Outcome{fact.New, fact.Collision, fact.Equivalent, fact.Equivalent}},
		{"drifts belong to a content", []Entry{said(1, 1, 1, 1), said(1, 2, 2, 2), said(1, 2, 1, 3)},
			[]fact.Outcome{fact.New, fact.Collision, fact.Redescribed}},
		{"another event", []Entry{said(1, 1, 1, 1), said(2, 1, 1, 2)}, []fact.Outcome{fact.New, fact.New}},
	} {
		t.Run(c.name, func(t *testing.T) {
			together := open(t, t.TempDir(), small())
			if got := outcomesOf(accept(t, together, c.entries...)); !slices.Equal(got, c.want) {
				t.Errorf("in one call: %v, want %v", got, c.want)
			}
			apart := open(t, t.TempDir(), small())
			var got []fact.Outcome
			for _, e := range c.entries {
				got = append(got, outcomesOf(accept(t, apart, e))...)
				apart = reopen(t, apart)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("in calls of their own, with restarts: %v, want %v", got, c.want)
			}
		})
	}
}

func TestVerdictTellsOfTheFirst(t *testing.T) {
	l := open(t, t.TempDir(), small())
	a, b := said(1, 1, 1, 10), said(1, 1, 1, 20)
	accept(t, l, fresh(5))
	want := Verdict{Outcome: fact.New, Event: a.Event, Sequence: 2, FirstSeen: a.Received, FirstEventTime: a.EventTime}
	if v := accept(t, l, a); v[0] != want {
		t.Errorf("first: %+v, want %+v", v[0], want)
	}
	want.Outcome, want.Sequence = fact.Equivalent, 3
	if v := accept(t, l, b); v[0] != want {
		t.Errorf("other transport: %+v, want %+v", v[0], want)
	}
	want.Outcome = fact.Retry
	later := b
	later.Received = b.Received.Add(time.Hour)
	if v := accept(t, l, later); v[0] != want {
		t.Errorf("retry: %+v, want %+v", v[0], want)
	}
	if v, ok := l.SeenRaw(b.Raw); !ok || v != want {
		t.Errorf("SeenRaw: %+v, %v, want %+v", v, ok, want)
	}
	if _, ok := l.SeenRaw(DigestRaw([]byte("no"))); ok {
		t.Error("SeenRaw knows what was never sent")
	}
	if _, ok := l.SeenRaw(RawDigest{}); ok {
		t.Error("SeenRaw knows the digest that is none")
	}
}

// The rules of identity may change: a body is then read as another event. It was
// received before all the same.
func TestBodyKnownUnderAnotherEvent(t *testing.T) {
	l := open(t, t.TempDir(), small())
	before := said(1, 1, 1, 1)
	accept(t, l, before)
	after := before
	after.Event, after.Received = digest("event", 2), before.Received.Add(time.Hour)
	want := Verdict{Outcome: fact.Retry, Event: after.Event, Sequence: 1, FirstSeen: before.Received, FirstEventTime: before.EventTime}
	if v := accept(t, l, after); v[0] != want {
		t.Errorf("got %+v, want %+v", v[0], want)
	}
	if err := l.Truncate(2); err != nil {
		t.Fatal(err)
	}
	want.FirstSeen = after.Received
	if v := accept(t, l, after); v[0] != want {
		t.Errorf("with its record gone: %+v, want %+v", v[0], want)
	}
}

func TestOneOfEqualBodiesAtOnceIsNoRetry(t *testing.T) {
	l := open(t, t.TempDir(), small())
	const senders, rounds = 8, 40
	for round := range uint64(rounds) {
		var mu sync.Mutex
		var all []Verdict
		var wg sync.WaitGroup
		for range senders {
			wg.Go(func() {
				v, err := l.Accept(t.Context(), []Entry{fresh(2 * round), fresh(2*round + 1), fresh(2 * round)})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, v...)
			})
		}
		wg.Wait()
		n := map[fact.Outcome]int{}
		for _, o := range outcomesOf(all) {
			n[o]++
		}
		if n[fact.New] != 2 || n[fact.Retry] != 3*senders-2 {
			t.Fatalf("round %d: %v", round, n)
		}
	}
	if l.Last() != 2*rounds {
		t.Errorf("the log ends with %d, want %d", l.Last(), 2*rounds)
	}
}

// Random streams, split over senders: whatever order the ledger chose, verdicts
// are the model's for that order.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			entries := stream(r, 3000)
			l := open(t, t.TempDir(), small())
			s := newSent(entries)
			sendAll(t, l, s, entries, 8, seed)
			var bodies = map[fact.ID]bool{}
			for i := range entries {
				bodies[entries[i].Body] = true
			}
			if int(l.Last()) != len(bodies) {
				t.Errorf("%d records for %d bodies", l.Last(), len(bodies))
			}
			s.checkRetries(t, l)
			l = reopen(t, l)
			s.check(t, l, s.acknowledged())
		})
	}
}

// sendAll sends entries in random pieces, from several senders at once.
func sendAll(t testing.TB, l *Ledger, s *sent, entries []Entry, senders int, seed uint64) {
	var wg sync.WaitGroup
	for i := range senders {
		part := entries[i*len(entries)/senders : (i+1)*len(entries)/senders]
		r := rand.New(rand.NewPCG(seed, uint64(i)+100))
		wg.Go(func() {
			for len(part) > 0 {
				n := min(len(part), 1+r.IntN(1+r.IntN(40)))
				verdicts, err := l.Accept(t.Context(), part[:n])
				if err != nil {
					t.Error(err)
					return
				}
				s.acknowledge(part[:n], verdicts)
				part = part[n:]
			}
		})
	}
	wg.Wait()
}

// checkRetries sends all again: nothing comes of it.
func (s *sent) checkRetries(t *testing.T, l *Ledger) {
	t.Helper()
	last := l.Last()
	for body, v := range s.acknowledged() {
		v.Outcome = fact.Retry
		if got := accept(t, l, *s.entries[body]); got[0] != v {
			t.Fatalf("sent again: %+v, want %+v", got[0], v)
		}
	}
	if l.Last() != last {
		t.Errorf("retries made the log grow from %d to %d", last, l.Last())
	}
}

func TestOneEventSaysManyThings(t *testing.T) {
	l, m := open(t, t.TempDir(), small()), newModel()
	r := rand.New(rand.NewPCG(3, 3))
	for n := range uint64(600) {
		e := said(1, r.Uint64N(40), r.Uint64N(40), n)
		if v := accept(t, l, e); v[0] != m.accept(&e) {
			t.Fatalf("body %d: %+v, want %+v", n, v[0], m.bodies[e.Body])
		}
	}
}

func TestAcceptChecksItsEntries(t *testing.T) {
	l := open(t, t.TempDir(), small())
	early := fresh(2)
	early.Received = time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, e := range []Entry{{}, {Event: digest("event", 1)}, {Body: digest("body", 1)}, early} {
		if _, err := l.Accept(t.Context(), []Entry{fresh(1), e}); err == nil || !strings.Contains(err.Error(), "entry 2 of 2") {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if v, err := l.Accept(t.Context(), nil); err != nil || len(v) != 0 {
		t.Errorf("nothing: %v, %v", v, err)
	}
	if l.Last() != 0 {
		t.Error("something was kept")
	}
	empty := fresh(1)
	empty.Payload = nil
	accept(t, l, empty)
	if r := readAll(t, l); len(r) != 1 || len(r[0].Payload) != 0 {
		t.Errorf("an empty payload: %+v", r)
	}
}

func TestCancelledAccept(t *testing.T) {
	l := open(t, t.TempDir(), small())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Accept(ctx, []Entry{fresh(1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for n := range uint64(200) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*5*time.Microsecond)
		e := fresh(n)
		verdicts, err := l.Accept(ctx, []Entry{e})
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		clear(e.Payload) // the caller's again
		if again := accept(t, l, fresh(n)); err == nil && again[0].Outcome != fact.Retry {
			t.Errorf("%+v, then %+v", verdicts[0], again[0])
		}
	}
	for i, r := range readAll(t, l) {
		if want := fresh(uint64(i)); string(r.Payload) != string(want.Payload) {
			t.Fatalf("record %d holds %q", r.Sequence, r.Payload)
		}
	}
}

func TestClosedLedger(t *testing.T) {
	l := open(t, t.TempDir(), small())
	accept(t, l, fresh(1))
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	_, err := l.Accept(t.Context(), []Entry{fresh(2)})
	_, err2 := l.Stats()
	_, err3 := l.Counts(time.Time{})
	_, err4 := l.Record(1)
	var err5 error
	for _, err5 = range l.Read(1, 0) {
	}
	for i, err := range []error{err, err2, err3, err4, err5, l.Truncate(1), l.Wait(t.Context(), 1)} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, ok := l.SeenRaw(fresh(1).Raw); ok {
		t.Error("SeenRaw answers")
	}
}

// Close answers those who wait, and ends an iteration that itself uses the
// ledger. Whoever closes again waits for it too.
func TestCloseWhileBusy(t *testing.T) {
	l := open(t, t.TempDir(), small())
	for n := range uint64(50) {
		accept(t, l, fresh(n))
	}
	var wg sync.WaitGroup
	for i := range uint64(8) {
		wg.Go(func() {
			for n := uint64(0); ; n++ {
				if _, err := l.Accept(context.Background(), []Entry{fresh(i<<32 + n)}); errors.Is(err, ErrClosed) {
					return
				} else if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for {
			for _, err := range l.Read(1, 0) {
				if errors.Is(err, ErrClosed) {
					return
				} else if err != nil {
					t.Error(err)
				}
				_, _ = l.Stats()
			}
		}
	})
	time.Sleep(50 * time.Millisecond)
	for range 3 {
		wg.Go(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			select {
			case <-l.wrote:
			default:
				t.Error("Close returned and the writer runs")
			}
		})
	}
	wg.Wait()
}

// A reader may take its time: it holds nothing that Close waits for, even where
// it is the one who closes.
func TestCloseWhileReading(t *testing.T) {
	l := open(t, t.TempDir(), small())
	for n := range uint64(5) {
		accept(t, l, fresh(n))
	}
	n := 0
	for _, err := range l.Read(1, 0) {
		if n++; n == 1 {
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, ErrClosed) {
			t.Errorf("then: %v", err)
		}
	}
	if n != 2 {
		t.Errorf("%d steps", n)
	}
}
