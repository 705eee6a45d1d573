package normalize_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/openlineage"
)

//go:generate go test -count=1 -run ^TestVectors$ . -update

var update = flag.Bool("update", false, "rewrite the expectations in docs/identity-vectors.json")

var (
	vectorsFile = filepath.Join("..", "..", "docs", "identity-vectors.json")
	rulesFile   = filepath.Join("..", "..", "docs", "identity-rules.json")
)

// vectors are events with their identity, for every implementation of the
// contract. To add one, write its name, what it shows and its event, and run
// go generate ./internal/normalize.
type vectors struct {
	// Version is the identity version of all vectors without rules of their own.
	Version string    `json:"version"`
	Vectors []*vector `json:"vectors"`
}

type vector struct {
	Name  string `json:"name"`
	Shows string `json:"shows"`
	// Event is the body as sent: text, since spelling matters.
	Event string `json:"event"`
	// Rules are an operator's.
	Rules []normalize.ClassRule `json:"rules,omitempty"`
	// After names another vector; Outcome is what this one is, received after it.
	After   string       `json:"after,omitempty"`
	Outcome fact.Outcome `json:"outcome,omitempty"`

	// The rest is computed.

	// Version is given where Rules make another one.
	Version string   `json:"version,omitempty"`
	EventID string   `json:"eventId,omitempty"`
	Content string   `json:"content,omitempty"`
	Slot    string   `json:"slotRule,omitempty"`
	Warn    []string `json:"warnings,omitempty"`
	// Document is the identity document: the text that the event ID hashes.
	Document string `json:"document,omitempty"`
	// Rejected is the pointer to what makes it no event.
	Rejected string `json:"rejected,omitempty"`
}

func readVectors(t testing.TB) (all vectors, text []byte) {
	t.Helper()
	text, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%s: %v", vectorsFile, err)
	}
	return all, text
}

func decoder(t testing.TB, rules []normalize.ClassRule) *ingest.Decoder {
	t.Helper()
	d, err := ingest.NewDecoder(ingest.Options{Rules: rules, Names: normalize.DefaultNameRules()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// compute fills in what is computed, and returns the fact, nil if rejected.
func (v *vector) compute(t *testing.T, shipped *ingest.Decoder) *fact.Event {
	t.Helper()
	*v = vector{Name: v.Name, Shows: v.Shows, Event: v.Event, Rules: v.Rules, After: v.After, Outcome: v.Outcome}
	d := shipped
	if v.Rules != nil {
		d = decoder(t, v.Rules)
		v.Version = d.Version()
	}
	e, err := d.Decode([]byte(v.Event))
	var no *ingest.Rejected
	if errors.As(err, &no) {
		v.Rejected = no.Problems[0].Pointer
		return nil
	}
	x, err := d.Explain([]byte(v.Event))
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	v.EventID, v.Content, v.Document = e.ID.String(), e.Content.String(), string(x.Document)
	if e.Kind == openlineage.RunEvent {
		v.Slot = e.Slot.Rule.String()
	}
	for _, w := range e.Warnings {
		if !slices.Contains(v.Warn, w.Code) {
			v.Warn = append(v.Warn, w.Code)
		}
	}
	return e
}

// The recorded constants: one byte of difference is another identity contract.
func TestVectors(t *testing.T) {
	all, recorded := readVectors(t)
	shipped := decoder(t, nil)
	all.Version = shipped.Version()
	facts := map[string]*fact.Event{}
	for _, v := range all.Vectors {
		if _, taken := facts[v.Name]; taken {
			t.Errorf("two vectors are named %q", v.Name)
		}
		facts[v.Name] = v.compute(t, shipped)
		if v.After == "" {
			continue
		}
		if first := facts[v.After]; first == nil || facts[v.Name] == nil {
			t.Errorf("%s: %q is none of the events before it", v.Name, v.After)
		} else if got := outcomeOf(first, facts[v.Name]); got != v.Outcome {
			t.Errorf("%s: is %s after %q, want %s", v.Name, got, v.After, v.Outcome)
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(all); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(vectorsFile, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text.Bytes(), recorded) {
		t.Errorf("%s is not what the code computes; if the contract is meant to change, run: go generate ./internal/normalize\n%s",
			vectorsFile, firstDifference(recorded, text.Bytes()))
	}
}

func firstDifference(recorded, computed []byte) string {
	old, now := strings.Split(string(recorded), "\n"), strings.Split(string(computed), "\n")
	for i := range min(len(old), len(now)) {
		if old[i] != now[i] {
			return "recorded " + old[i] + "\ncomputed " + now[i]
		}
	}
	return "one is longer"
}

// The vectors speak of every kind of event, slot rule, outcome and warning.
func TestVectorsCoverTheContract(t *testing.T) {
	all, _ := readVectors(t)
	seen := map[string]bool{}
	for _, v := range all.Vectors {
		for _, key := range append([]string{v.Slot, string(v.Outcome)}, v.Warn...) {
			seen[key] = true
		}
		switch {
		case v.Rejected != "":
			seen["rejected"] = true
		case v.Slot == "":
			seen[strings.Split(strings.Split(v.Document, `"kind":"`)[1], `"`)[0]] = true
		}
		if v.Rules != nil {
			seen["rules"] = true
		}
	}
	want := []string{"rejected", "rules", "job", "dataset"}
	for _, o := range []fact.Outcome{fact.Retry, fact.Equivalent, fact.Redescribed, fact.Collision, fact.New} {
		want = append(want, string(o))
	}
	for _, r := range []fact.Rule{fact.RuleAirflow, fact.RuleNominal, fact.RulePlace, fact.RuleRun} {
		want = append(want, r.String())
	}
	for _, w := range normalize.WarningCodes() {
		want = append(want, w.Code)
	}
	for _, key := range want {
		if !seen[key] {
			t.Errorf("no vector shows %q", key)
		}
	}
	if len(all.Vectors) < 40 {
		t.Errorf("only %d vectors", len(all.Vectors))
	}
}
