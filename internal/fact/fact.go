// Package fact holds what graphd was told, before anything is concluded from
// it: events with their contents, observations of them, and the words they
// carry. Facts only grow; every merge of two facts is commutative, associative
// and idempotent, so a set of facts does not remember the order, the number or
// the process of its deliveries (docs/identity.md, the invariant).
//
// normalize makes facts of deliveries, lineage concludes from them, stores
// keep them. The package does no I/O and knows no rule of lineage.
package fact

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

// ID is the 24-byte prefix of a SHA-256: an event ID, a content digest or the
// key of an entity. Its text is 48 lowercase hex digits, which fit inside a
// property record of Neo4j. The zero ID is none.
type ID [24]byte

// String returns the 48 hex digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText makes an ID readable in JSON.
func (id ID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText reads 48 hex digits.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) != 2*len(id) {
		return fmt.Errorf("want %d hex digits, got %d characters", 2*len(id), len(text))
	}
	_, err := hex.Decode(id[:], text)
	return err
}

// IsZero reports whether id is none.
func (id ID) IsZero() bool { return id == ID{} }

// ParseID reads 48 hex digits.
func ParseID(s string) (id ID, err error) { return id, id.UnmarshalText([]byte(s)) }

// Hash returns the ID of a canonical JSON array of parts under a domain. No two
// different lists of parts share a preimage: nothing is concatenated without a
// delimiter.
func Hash(domain string, parts ...string) ID {
	buf := make([]byte, 0, 256)
	for i, p := range parts {
		buf = append(buf, "[,"[min(i, 1)])
		buf = jsontree.AppendString(buf, p)
	}
	return HashBytes(domain, append(buf, ']'))
}

// HashBytes returns the ID of a document under a domain.
func HashBytes(domain string, document []byte) (id ID) {
	buf := make([]byte, 0, 1024) // most documents fit, and cost no allocation
	buf = append(append(append(buf, "graphd "...), domain...), '\n')
	if len(buf)+len(document) <= cap(buf) {
		sum := sha256.Sum256(append(buf, document...))
		return ID(sum[:len(id)])
	}
	h := sha256.New()
	h.Write(buf)
	h.Write(document)
	return ID(h.Sum(nil)[:len(id)])
}

// JobKey is the key of a job.
func JobKey(n openlineage.Name) ID { return Hash("job", n.Namespace, n.Name) }

// DatasetKey is the key of a dataset entity, whose name the name rules have cut.
func DatasetKey(n openlineage.Name) ID { return Hash("dataset", n.Namespace, n.Name) }

// NoMap is the map index of an attempt that is no mapped instance.
const NoMap = -1

// Attempt names what one producer calls a run. The runId alone is no key:
// Dagster shares one over many jobs, Airflow 2.10 over all mapped instances.
type Attempt struct {
	Job   openlineage.Name
	RunID string
	// Map is Airflow's map index, or NoMap.
	Map int
}

// Ref returns the run that a parent reference to this attempt names: a
// reference on the wire has no map index.
func (a Attempt) Ref() RunRef { return RunRef{Job: a.Job, RunID: a.RunID} }

// Key is the hash of (job, runId, map index).
func (a Attempt) Key() ID {
	m := ""
	if a.Map != NoMap {
		m = fmt.Sprint(a.Map)
	}
	return Hash("attempt", a.Job.Namespace, a.Job.Name, a.RunID, m)
}

// RunRef names a run as a parent facet does.
type RunRef struct {
	Job   openlineage.Name `json:"job"`
	RunID string           `json:"runId"`
}

// IsZero reports whether r names nothing.
func (r RunRef) IsZero() bool { return r == RunRef{} }

// Key is that of the attempt without a map index.
func (r RunRef) Key() ID { return Attempt{Job: r.Job, RunID: r.RunID, Map: NoMap}.Key() }

// Compare orders references bytewise.
func (r RunRef) Compare(s RunRef) int {
	return cmp.Or(r.Job.Compare(s.Job), cmp.Compare(r.RunID, s.RunID))
}

// Rule is the rule that found a slot; the smaller one is the better one
// (docs/identity.md, Slots and logical runs).
type Rule uint8

// The slot rules, best first.
const (
	RuleAirflow Rule = 1 + iota // Airflow facets: dag_id, run_id, task_id, map_index
	RuleNominal                 // nominalTime.nominalStartTime
	RulePlace                   // a child's place under its parent's run
	RuleRun                     // none of these: the attempt's own runId
)

// String returns the rule's name as it stands in identity documents.
func (r Rule) String() string {
	return [...]string{"", "airflow", "nominal", "place", "run"}[r]
}

// MarshalText makes a Rule readable in JSON.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Slot is the place in a schedule that one event gives its attempt.
type Slot struct {
	Rule Rule
	// Value is the canonical JSON array of what fills the slot: for RuleAirflow
	// [dag_id, run_id] or [dag_id, run_id, task_id, map_index or null], for
	// RuleNominal [instant], for RulePlace what tells children of one parent
	// apart beside their job ([] or [digest of the SQL]), for RuleRun [runId,
	// map index or null].
	Value string
}

// Compare orders slots: the better rule first, then by bytes.
func (s Slot) Compare(t Slot) int {
	return cmp.Or(cmp.Compare(s.Rule, t.Rule), cmp.Compare(s.Value, t.Value))
}
