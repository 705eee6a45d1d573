package lineage_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/openlineage"
)

// load is a history that grows without end and of which every step must stay
// as cheap as the first.
type load struct {
	name string
	// step returns the events of the n'th step, from 0.
	step func(m *maker, n int) []*fact.Event
	// lines are the events that step varies, as in testdata/cases.txt.
	lines map[string]string
}

var loads = []load{
	{"micro-batches of one application", func(m *maker, n int) []*fact.Event {
		return []*fact.Event{m.make("start", n, 2*n), m.make("complete", n, 2*n+1)}
	}, map[string]string{
		"start":    "START 0 W/w producer=spark parent=P/p in=A",
		"complete": "COMPLETE 0 W/w producer=spark parent=P/p out=M",
	}},
	{"micro-batches that each write a table of their own", func(m *maker, n int) []*fact.Event {
		e := m.make("complete", n, n)
		statement := *e.Statement
		statement.Outputs = []fact.DatasetUse{{Dataset: lineagetest.Table(fmt.Sprint("M", n))}}
		e.Statement = &statement
		return []*fact.Event{e}
	}, map[string]string{
		"complete": "COMPLETE 0 W/w producer=spark parent=P/p in=A out=M",
	}},
	{"runs without a parent", func(m *maker, n int) []*fact.Event {
		return []*fact.Event{m.make("start", n, 2*n), m.make("complete", n, 2*n+1)}
	}, map[string]string{
		"start":    "START 0 J/r in=A",
		"complete": "COMPLETE 0 J/r out=B",
	}},
	{"runs that arrive newest first", func(m *maker, n int) []*fact.Event {
		return []*fact.Event{m.make("start", n, 1_000_000-2*n), m.make("complete", n, 1_000_001-2*n)}
	}, map[string]string{
		"start":    "START 0 J/r in=A",
		"complete": "COMPLETE 0 J/r out=B",
	}},
	{"tries of one slot, all of which fail", func(m *maker, n int) []*fact.Event {
		return []*fact.Event{m.make("start", n, 2*n), m.make("fail", n, 2*n+1)}
	}, map[string]string{
		"start": "START 0 J/r slot=1 in=A",
		"fail":  "FAIL 0 J/r slot=1 out=B",
	}},
	{"mapped instances of one runId", func(m *maker, n int) []*fact.Event {
		e := m.make("complete", n, n)
		e.Attempt.RunID, e.Attempt.Map = lineagetest.RunID("t"), n
		e.Slot.Value = fmt.Sprintf(`["d","day1","T",%d]`, n)
		return []*fact.Event{e}
	}, map[string]string{
		"complete": "COMPLETE 0 T/t#0 airflow=d/day1/T parent=D/d in=A out=F",
	}},
}

// maker makes events of templates, without the cost of decoding each.
type maker struct{ templates map[string]*fact.Event }

func newMaker(t testing.TB, lines map[string]string) *maker {
	t.Helper()
	m := &maker{map[string]*fact.Event{}}
	for name, line := range lines {
		e, err := parseEvent(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		m.templates[name] = decode(t, e.Body())[0]
	}
	return m
}

// make returns the template's event as one of its n'th run, at a minute.
func (m *maker) make(name string, n, minute int) *fact.Event {
	e := *m.templates[name]
	e.Time = openlineage.InstantOf(scriptStart.Add(time.Duration(minute) * time.Minute))
	e.Attempt.RunID = lineagetest.RunID(fmt.Sprint(n))
	if e.Slot.Rule == fact.RuleRun {
		e.Slot.Value = fmt.Sprintf("[%q,null]", e.Attempt.RunID)
	}
	e.ID = fact.Hash("test event", name, e.Attempt.RunID)
	return &e
}

// TestAStepCostsTheSameHoweverLongTheHistory counts the rows that each step
// touches: at the end at most one and a half times those at the beginning.
func TestAStepCostsTheSameHoweverLongTheHistory(t *testing.T) {
	const steps, tenth = 1_500, 150
	for _, l := range loads {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			m := newMaker(t, l.lines)
			st := lineage.NewMemory(decoder(t).Version())
			rows := lineage.CountRows(st)
			var first, last int
			for n := range steps {
				*rows = 0
				for _, e := range l.step(m, n) {
					st.Merge(e)
					settle(st)
				}
				switch {
				case n >= tenth && n < 2*tenth: // the first ones find empty tables
					first += *rows
				case n >= steps-tenth:
					last += *rows
				}
			}
			t.Logf("rows a step: %d at the beginning, %d at the end", first/tenth, last/tenth)
			if 2*last > 3*first {
				t.Errorf("a step touches %d rows at the end, %d at the beginning", last/tenth, first/tenth)
			}
		})
	}
}

// BenchmarkGeneration100k merges and settles 100,000 micro-batches of one
// application one by one, and reports the CPU time of an event in each tenth,
// garbage collection included: what else the machine does shows less in it.
func BenchmarkGeneration100k(b *testing.B) {
	const batches, tenth = 100_000, 10_000
	l := loads[0]
	m := newMaker(b, l.lines)
	for b.Loop() {
		st := lineage.NewMemory(decoder(b).Version())
		began := cpuTime(b)
		for n := range batches {
			for _, e := range l.step(m, n) {
				st.Merge(e)
				settle(st)
			}
			if (n+1)%tenth == 0 {
				now := cpuTime(b)
				b.ReportMetric(float64((now-began).Nanoseconds())/(2*tenth), fmt.Sprintf("cpu-ns/event-%d", (n+1)/tenth))
				began = now
			}
		}
	}
}

// cpuTime returns the CPU time that the process has taken.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
