package lineage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
)

// streamLength bounds the events of a random stream.
const streamLength = 40

// streams is how many random streams a test tries: few of them meet everything.
func streams(full uint64) uint64 {
	const least = 100
	switch {
	case raceEnabled:
		return max(least, full/50)
	case testing.Short():
		return max(least, full/10)
	}
	return full
}

// TestAnyOrderOfAnyStreamMakesOneGraph is the invariant of docs/identity.md:
// the graph is a function of the set of bodies.
func TestAnyOrderOfAnyStreamMakesOneGraph(t *testing.T) {
	const shards = 4
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
			t.Parallel()
			for seed := shard; seed < streams(10_000); seed += shards {
				bodies := lineagetest.Stream(rand.New(rand.NewPCG(seed, 0)), streamLength)
				if diverges(t, seed, bodies) == "" {
					continue
				}
				bodies = shrink(bodies, func(b [][]byte) bool { return diverges(t, seed, b) != "" })
				t.Fatalf("seed %d: %s\nof the stream\n%s", seed, diverges(t, seed, bodies), joined(bodies))
			}
		})
	}
}

func joined(bodies [][]byte) string {
	var b strings.Builder
	for _, body := range bodies {
		fmt.Fprintf(&b, "%s\n", body)
	}
	return b.String()
}

// shrink removes events for as long as what is left still fails.
func shrink(bodies [][]byte, fails func([][]byte) bool) [][]byte {
	for size := max(1, len(bodies)/2); size > 0; size /= 2 {
		for at := 0; at+size <= len(bodies); {
			if less := slices.Delete(slices.Clone(bodies), at, at+size); len(less) > 0 && fails(less) {
				bodies = less
			} else {
				at++
			}
		}
	}
	return bodies
}

// diverges tells what is wrong with the graphs that a stream makes in several
// ways, "" if nothing. It is a function of its arguments.
func diverges(t testing.TB, seed uint64, bodies [][]byte) string {
	events := decode(t, bodies...)
	version := decoder(t).Version()
	rng := rand.New(rand.NewPCG(seed, 1))
	graph := lineage.Fold(version, events)
	want := snapshot(t, graph)
	if wrong := lineage.Broken(graph); len(wrong) > 0 {
		return strings.Join(wrong, "\n")
	}
	if got := snapshot(t, lineage.Fold(version, withRepeats(rng, events))); got != want {
		return "folded in another order:\n" + diff(want, got)
	}
	var rows map[string][]string
	for round := range rounds(seed) {
		st := lineage.NewMemory(version)
		if wrong := deliver(rng, st, withRepeats(rng, events)); wrong != "" {
			return wrong
		}
		settled := st.Graph()
		if got := snapshot(t, settled); got != want {
			return "settled:\n" + diff(want, got)
		}
		if wrong := lineage.BrokenRows(st, settled); len(wrong) > 0 {
			return strings.Join(wrong, "\n")
		}
		if rounds(seed) == 1 {
			break
		}
		now := lineage.TableRows(st)
		for table := range rows {
			if round > 0 && !slices.Equal(rows[table], now[table]) {
				return fmt.Sprintf("rows of %s:\n%s", table, diff(strings.Join(rows[table], "\n"), strings.Join(now[table], "\n")))
			}
		}
		rows = now
	}
	return ""
}

// rounds is how many States a stream is delivered to: two for a fourth of them,
// whose rows must be the same. A wrong row seldom goes unseen for long, and with
// one State more streams can be tried.
func rounds(seed uint64) int {
	if seed%4 == 0 {
		return 2
	}
	return 1
}

// deliver merges events, settling now and then by a little, and at the end all.
func deliver(rng *rand.Rand, st *lineage.State, events []*fact.Event) (wrong string) {
	pause := 1 << rng.IntN(5) // deliveries between two settlements, about
	limit := 1 + rng.IntN(6)
	if rng.IntN(3) == 0 {
		limit = 1 << 30
	}
	for _, e := range events {
		st.Merge(e)
		if rng.IntN(pause) > 0 {
			continue
		}
		st.Settle(limit)
		if rng.IntN(16) == 0 {
			if wrong := lineage.BrokenRows(st, st.Graph()); len(wrong) > 0 {
				return "while work is pending: " + strings.Join(wrong, "\n")
			}
		}
	}
	for st.Settle(limit) > 0 {
	}
	if st.Pending(1) > 0 {
		return "Settle says that nothing is pending, and Todos are left"
	}
	return ""
}

// withRepeats returns events in another order, some of them more than once.
func withRepeats(rng *rand.Rand, events []*fact.Event) []*fact.Event {
	out := slices.Clone(events)
	for range rng.IntN(len(events) + 1) {
		out = append(out, events[rng.IntN(len(events))])
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
