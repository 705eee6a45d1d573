package lineage_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/openlineage"
	"github.com/graphd/graphd/internal/sharedtest"
)

// truth is what happened in the real world while a stream was recorded.
type truth struct {
	LogicalRuns   []trueRun  `json:"logical_runs"`
	Edges         []trueEdge `json:"true_edges"`
	FailedOnly    []trueEdge `json:"edges_claimed_only_by_attempts_that_failed"`
	FailedOnlyToo []trueEdge `json:"edges_only_a_failed_attempt_claimed"`
	Product       []trueEdge `json:"edges_that_inputs_x_outputs_would_add"`
	ColumnOnly    []trueEdge `json:"edges_named_only_by_columnLineage"`
}

type trueRun struct {
	Job      string        `json:"job"`
	Slot     string        `json:"slot"`
	Attempts []trueAttempt `json:"attempts"`
}

// trueAttempt is named by the deliveries that speak of it, so that nothing is
// assumed about how graphd tells attempts apart.
type trueAttempt struct {
	RunID      string   `json:"runId"`
	Outcome    string   `json:"outcome"`
	Events     [][2]any `json:"events"` // delivery, event type
	deliveries []delivery
}

// trueEdge is (job, input, output) as the truth files write them.
type trueEdge [3]string

func edgeOf(e lineage.Edge) trueEdge {
	return trueEdge{
		e.Job.Namespace + "/" + e.Job.Name,
		e.Input.Namespace + " " + e.Input.Name, e.Output.Namespace + " " + e.Output.Name,
	}
}

// delivery names one delivery of a stream.
type delivery struct {
	stream string
	n      int
}

// outcomes are the states that the words of the truth files mean.
var outcomes = map[string]lineage.RunState{
	"success": lineage.Complete, "failed": lineage.Failed, "aborted": lineage.Aborted,
	"never finished in the stream": lineage.Running,
}

// untold lists what truly happened and no event tells, so that no rule can find
// it: the logical runs that the events do tell, and of which jobs theirs are
// parts of true ones. Parts of two true runs are never one.
var untold = map[string]struct {
	runs int
	jobs string // every job with split runs begins with it
	why  string
}{
	"dbt/bikes": {58, "dbt-bikes/",
		"no event of dbt has a slot: each invocation of a day is a run, and so is each node under it"},
	"dbt/bikes-logs": {112, "dbt-bikes/",
		"the same, and each statement under its node"},
	"dagster/weather": {20, "dagster-weather/weather",
		"the partition is in no event: two Dagster runs of one partition are two, each with its steps"},
	"airflow/retail": {103, "retail-prod/retail_daily.check_region.query.1",
		"one try sends two statements as its query.1: they are told apart by their SQL, the truth counts names"},
}

// untoldOutcomes are attempts, by job and slot, whose true outcome is in no event.
var untoldOutcomes = map[[2]string]struct {
	told lineage.RunState
	why  string
}{
	{"spark-retail/orders_etl.execute_create_data_source_table_as_select_command.default_customer_totals", "application run 2"}: {
		lineage.Complete, "the CTAS failed, the driver crashed, and COMPLETE is all that was sent"},
}

// history is one or several streams that belong to one installation, with what
// truly happened.
type history struct {
	name   string
	events []*fact.Event // in recorded order, repetitions included
	of     []delivery    // of events
	truth  truth
}

// histories reads the recorded streams that have a truth.
func histories(t *testing.T) []*history {
	t.Helper()
	d := decoder(t)
	var all []*history
	byName := map[string]*history{}
	for _, s := range sharedtest.RecordedStreams(t) {
		raw, err := os.ReadFile(filepath.Join(s.Dir, "truth.json"))
		if os.IsNotExist(err) {
			continue // python-client/odd: one odd thing each, no lineage
		}
		h := &history{name: s.Name}
		if err := cmp.Or(err, json.Unmarshal(raw, &h.truth)); err != nil {
			t.Fatal(err)
		}
		for _, delivered := range s.Deliveries {
			e, err := d.Decode(delivered.Body)
			if err != nil {
				t.Fatalf("%s, delivery %d: %v", s.Name, delivered.N, err)
			}
			h.events = append(h.events, e)
			h.of = append(h.of, delivery{s.Name, delivered.N})
		}
		for i := range h.truth.LogicalRuns {
			for j := range h.truth.LogicalRuns[i].Attempts {
				a := &h.truth.LogicalRuns[i].Attempts[j]
				for _, e := range a.Events {
					a.deliveries = append(a.deliveries, delivery{s.Name, int(e[0].(float64))})
				}
			}
		}
		all = append(all, h)
		byName[s.Name] = h
	}
	// The rerun played the same twelve slots again two days later.
	return append(all, join(byName["python-client/http"], byName["python-client/rerun"]))
}

// join makes one history of two: runs of one job and slot are one.
func join(a, b *history) *history {
	h := &history{name: a.name + " and " + b.name, events: slices.Concat(a.events, b.events), of: slices.Concat(a.of, b.of)}
	h.truth.LogicalRuns = slices.Clone(a.truth.LogicalRuns)
	for _, r := range b.truth.LogicalRuns {
		i := slices.IndexFunc(h.truth.LogicalRuns, func(q trueRun) bool { return q.Job == r.Job && q.Slot == r.Slot })
		if i < 0 {
			h.truth.LogicalRuns = append(h.truth.LogicalRuns, r)
			continue
		}
		h.truth.LogicalRuns[i].Attempts = slices.Concat(h.truth.LogicalRuns[i].Attempts, r.Attempts)
	}
	h.truth.Edges = slices.Concat(a.truth.Edges, b.truth.Edges)
	h.truth.FailedOnly = slices.Concat(a.truth.FailedOnly, b.truth.FailedOnly)
	h.truth.Product = slices.Concat(a.truth.Product, b.truth.Product)
	return h
}

// trueEdges are the edges that must be current at the end. The truth files
// derive true_edges from inputs and outputs; what only column lineage names
// stands apart, and is true too: dbt's artifacts name a seed nowhere else.
func (h *history) trueEdges() map[trueEdge]bool {
	edges := map[trueEdge]bool{}
	for _, e := range slices.Concat(h.truth.Edges, h.truth.ColumnOnly) {
		edges[e] = true
	}
	return edges
}

// phantoms are edges that must never be current.
func (h *history) phantoms() map[trueEdge]string {
	edges := map[trueEdge]string{}
	for _, e := range slices.Concat(h.truth.FailedOnly, h.truth.FailedOnlyToo) {
		edges[e] = "only attempts that failed claim it"
	}
	for _, e := range h.truth.Product {
		edges[e] = "only the product of inputs and outputs has it"
	}
	for e := range h.trueEdges() {
		delete(edges, e)
	}
	return edges
}

// checkPhantoms checks what is current against what must never be.
func (h *history) checkPhantoms(t *testing.T, g *lineage.Graph) (current map[trueEdge]bool) {
	t.Helper()
	phantoms := h.phantoms()
	current = map[trueEdge]bool{}
	for edge := range g.CurrentEdges() {
		e := edgeOf(edge)
		current[e] = true
		if why := phantoms[e]; why != "" {
			t.Errorf("%v is current: %s", e, why)
		}
		if strings.Contains(e[1]+e[2], "__dbt__cte__") {
			t.Errorf("%v is current: a common table expression is no dataset", e)
		}
	}
	return current
}

func (h *history) check(t *testing.T, g *lineage.Graph) {
	t.Helper()
	current := h.checkPhantoms(t, g)
	want := h.trueEdges()
	for e := range want {
		if !current[e] {
			t.Errorf("%v is true and not current", e)
		}
	}
	for e := range current {
		if !want[e] {
			t.Errorf("%v is current and not true", e)
		}
	}
	h.checkRuns(t, g)
}

func (h *history) checkRuns(t *testing.T, g *lineage.Graph) {
	t.Helper()
	rows := map[delivery]*lineage.AttemptRow{}
	attempts := attemptsOf(g)
	for i, e := range h.events {
		if e.Kind == openlineage.RunEvent {
			rows[h.of[i]] = attempts.of(e.Attempt)
		}
	}
	told, split := len(h.truth.LogicalRuns), "none is split"
	if u, ok := untold[h.name]; ok {
		told, split = u.runs, u.jobs
	}
	if len(g.Runs) != told {
		t.Errorf("%d logical runs, want %d", len(g.Runs), told)
	}
	seenAttempts, seenRuns := map[fact.ID]string{}, map[lineage.RunID]string{}
	for i, r := range h.truth.LogicalRuns {
		name := fmt.Sprintf("%s, %s (%d)", r.Job, r.Slot, i)
		parts := map[lineage.RunID]bool{}
		for j := range r.Attempts {
			a := &r.Attempts[j]
			row := rows[a.deliveries[0]]
			for _, d := range a.deliveries {
				if rows[d] == nil || rows[d] != row {
					t.Fatalf("%s: delivery %d is not of attempt %s", name, d.n, a.RunID)
				}
			}
			attempt := fmt.Sprintf("%s, attempt %d", name, j)
			if other, ok := seenAttempts[row.Key]; ok {
				t.Errorf("one attempt is two: %s and %s", other, attempt)
			}
			seenAttempts[row.Key] = attempt
			if other, ok := seenRuns[row.Run]; ok && other != name {
				t.Errorf("one logical run is two: %s and %s", other, name)
			}
			seenRuns[row.Run] = name
			parts[row.Run] = true
			checkOutcome(t, r, attempt, a.Outcome, row)
		}
		if len(parts) > 1 && !strings.HasPrefix(r.Job, split) {
			t.Errorf("%s is %d logical runs", name, len(parts))
		}
	}
	if len(seenAttempts) != len(g.Attempts) {
		t.Errorf("%d attempts, want %d", len(g.Attempts), len(seenAttempts))
	}
}

func checkOutcome(t *testing.T, r trueRun, attempt, outcome string, row *lineage.AttemptRow) {
	t.Helper()
	want, ok := outcomes[outcome]
	if !ok {
		t.Fatalf("%s: unknown outcome %q", attempt, outcome)
	}
	if u, ok := untoldOutcomes[[2]string{r.Job, r.Slot}]; ok {
		want = u.told
	}
	if row.State() != want {
		t.Errorf("%s is %s, want %s", attempt, row.State(), want)
	}
}

func TestRecordedStreamsAreTrueInAnyOrder(t *testing.T) {
	const seeds = 4
	for _, h := range histories(t) {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			version := h.events[0].Version
			recorded := lineage.Fold(version, h.events)
			h.check(t, recorded)
			want := snapshot(t, recorded)
			for seed := range uint64(seeds) {
				rng := rand.New(rand.NewPCG(seed, 1))
				twice := slices.Concat(h.events, h.events)
				rng.Shuffle(len(twice), func(i, j int) { twice[i], twice[j] = twice[j], twice[i] })
				if got := snapshot(t, lineage.Fold(version, twice)); got != want {
					t.Fatalf("seed %d: shuffled and sent twice, the fold differs:\n%s", seed, diff(want, got))
				}
				st := lineage.NewMemory(version)
				for _, e := range twice {
					st.Merge(e)
					if rng.IntN(3) > 0 {
						st.Settle(1 + rng.IntN(8))
					}
				}
				settle(st)
				if got := snapshot(t, st.Graph()); got != want {
					t.Fatalf("seed %d: shuffled and sent twice, the settled state differs:\n%s", seed, diff(want, got))
				}
			}
		})
	}
}

func TestRecordedStreamsAreTrueAfterEveryDelivery(t *testing.T) {
	for _, h := range histories(t) {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			want := h.trueEdges()
			st := lineage.NewMemory(h.events[0].Version)
			before := map[trueEdge]bool{}
			for i, e := range h.events {
				st.Merge(e)
				// Not even between two steps of one settlement may a phantom show.
				for st.Settle(1) > 0 {
					h.checkPhantoms(t, st.Graph())
				}
				now := h.checkPhantoms(t, st.Graph())
				for edge := range before {
					if want[edge] && !now[edge] {
						t.Errorf("%v is true, was current and is gone", edge)
					}
				}
				if t.Failed() {
					t.Fatalf("after delivery %d", h.of[i].n)
				}
				before = now
			}
		})
	}
}
