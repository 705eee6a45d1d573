package lineage_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/normalize"
)

var newDecoder = sync.OnceValues(func() (*ingest.Decoder, error) {
	return ingest.NewDecoder(ingest.Options{Names: normalize.DefaultNameRules()})
})

// decoder returns the decoder with the shipped rules: tests of lineage begin
// with bodies, as they are sent.
func decoder(t testing.TB) *ingest.Decoder {
	t.Helper()
	d, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func decode(t testing.TB, bodies ...[]byte) (events []*fact.Event) {
	t.Helper()
	d := decoder(t)
	for _, body := range bodies {
		e, err := d.Decode(body)
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		events = append(events, e)
	}
	return events
}

func snapshot(t testing.TB, g *lineage.Graph) string {
	t.Helper()
	var b strings.Builder
	if err := g.WriteSnapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// settle does all that is pending.
func settle(st *lineage.State) {
	for st.Settle(1<<30) > 0 {
	}
}

// diff returns the lines of two snapshots that only one of them has.
func diff(want, got string) string {
	lines := func(s string) map[string]bool {
		m := map[string]bool{}
		for _, line := range strings.Split(s, "\n") {
			m[line] = true
		}
		return m
	}
	w, g := lines(want), lines(got)
	var b strings.Builder
	for _, line := range strings.Split(want, "\n") {
		if !g[line] {
			fmt.Fprintln(&b, "-", line)
		}
	}
	for _, line := range strings.Split(got, "\n") {
		if !w[line] {
			fmt.Fprintln(&b, "+", line)
		}
	}
	return b.String()
}

// attemptIndex finds the settled attempt that an event belongs to.
type attemptIndex struct {
	rows  map[fact.ID]*lineage.AttemptRow
	byRef map[fact.RunRef][]*lineage.AttemptRow
}

func attemptsOf(g *lineage.Graph) attemptIndex {
	x := attemptIndex{g.Attempts, map[fact.RunRef][]*lineage.AttemptRow{}}
	for _, row := range g.Attempts {
		x.byRef[row.Attempt.Ref()] = append(x.byRef[row.Attempt.Ref()], row)
	}
	return x
}

// of returns the attempt of an event that names a: an event without a map index
// belongs to the one mapped attempt of its run.
func (x attemptIndex) of(a fact.Attempt) *lineage.AttemptRow {
	if row := x.rows[a.Key()]; row != nil {
		return row
	}
	if group := x.byRef[a.Ref()]; a.Map == fact.NoMap && len(group) == 1 {
		return group[0]
	}
	return nil
}
