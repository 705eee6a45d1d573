package normalize_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/normalize"
)

const randomEvents = 200

// However an event is spelled, it is the same event and says the same.
func TestSpellingIsNoIdentity(t *testing.T) {
	n := normalizer(t)
	for seed := range uint64(randomEvents) {
		event := newGenerator(seed).runEvent()
		first := factOf(t, n, spell(event, seed))
		for again := range uint64(3) {
			text := spell(event, seed+1000*(again+1))
			e := factOf(t, n, text)
			if o := outcomeOf(first, e); o != fact.Retry && o != fact.Equivalent {
				t.Fatalf("seed %d: is %s\n%s\n%s", seed, o, document(t, n, spell(event, seed)), document(t, n, text))
			}
			if a, b := distinct(t, first.Statement), distinct(t, e.Statement); a != b {
				t.Fatalf("seed %d: says\n%s\n%s", seed, a, b)
			}
			if first.Attempt != e.Attempt || first.Parent != e.Parent || first.Slot != e.Slot || first.Time != e.Time {
				t.Fatalf("seed %d: of %v at %s, and of %v at %s", seed, first.Attempt, first.Time, e.Attempt, e.Time)
			}
		}
	}
}

// distinct returns a statement without the order and repetition of its uses.
func distinct(t *testing.T, s *fact.Statement) string {
	t.Helper()
	c := *s
	for _, uses := range []*[]fact.DatasetUse{&c.Inputs, &c.Outputs} {
		texts := map[string]fact.DatasetUse{}
		for _, u := range *uses {
			texts[marshal(t, u)] = u
		}
		*uses = nil
		for _, text := range sortedKeys(texts) {
			*uses = append(*uses, texts[text])
		}
	}
	return marshal(t, c)
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// A change of any field has the consequence of the field's class.
func TestEveryFieldHasTheConsequenceOfItsClass(t *testing.T) {
	n := normalizer(t)
	want := map[normalize.Class]fact.Outcome{
		normalize.Identity: fact.New, normalize.Drifting: fact.Redescribed, normalize.Fixed: fact.Collision, normalize.Transport: fact.Equivalent,
	}
	seen := map[normalize.Class]int{}
	for seed := range uint64(randomEvents / 4) {
		g := newGenerator(seed)
		event := g.runEvent()
		first := factOf(t, n, spell(event, seed))
		for i, l := range g.leaves {
			old := l.value
			l.value = text(fmt.Sprintf("changed %d", i))
			text := spell(event, seed+1)
			if got := outcomeOf(first, factOf(t, n, text)); got != want[l.class] {
				t.Fatalf("seed %d, leaf %d, %v, %s: is %s\n%s\n%s", seed, i, old, l.class, got, document(t, n, spell(event, seed)), text)
			}
			l.value = old
			seen[l.class]++
		}
	}
	for class := range want {
		if seen[class] < 100 {
			t.Errorf("only %d leaves are %s", seen[class], class)
		}
	}
}
