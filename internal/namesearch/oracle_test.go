package namesearch

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// naive is the oracle: it looks at every entry, and says again in the plainest
// way what the package comment promises.
func naive(entries []Entry, q Query) (hits []Hit, more bool) {
	var words []string
	for _, w := range strings.Fields(q.Text) {
		if w = plain(w); !slices.Contains(words, w) && len(words) < MaxWords {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return nil, false
	}
	terms := append(slices.Clone(words), plain(strings.TrimSpace(q.Text)))
	seen := map[string]bool{}
	for _, e := range entries {
		if key := fmt.Sprint(e.Kind, e.ID); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		if q.Kind != "" && q.Kind != e.Kind || q.Namespace != "" && q.Namespace != e.Name.Namespace {
			continue
		}
		name, space := plain(e.Name.Name), plain(e.Name.Namespace)
		if slices.ContainsFunc(words, func(w string) bool {
			return !strings.Contains(name, w) && !strings.Contains(space, w)
		}) {
			continue
		}
		best := MatchNamespace
		for _, t := range terms {
			best = min(best, naiveMatch(name, t))
		}
		hits = append(hits, Hit{e, best})
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		x, y := plain(a.Name.Name), plain(b.Name.Name)
		return cmp.Or(cmp.Compare(a.Match, b.Match), cmp.Compare(len(x), len(y)), cmp.Compare(x, y),
			cmp.Compare(a.Name.Name, b.Name.Name), cmp.Compare(a.Name.Namespace, b.Name.Namespace),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return hits[:min(len(hits), q.Limit)], len(hits) > q.Limit
}

// plain folds a text. The middle of a long one, which is ASCII in these tests,
// is cut out.
func plain(s string) string {
	if len(s) > 1024 {
		return plain(s[:512]) + "\xfe" + plain(s[len(s)-512:])
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(foldRune(r)) // held to unicode.SimpleFold by TestFoldRune
	}
	return b.String()
}

func naiveMatch(name, term string) Match {
	best := MatchNamespace
	for p := range name {
		rest, ok := strings.CutPrefix(name[p:], term)
		starts := p == 0 || strings.ContainsRune("/.:_-", rune(name[p-1]))
		switch {
		case !ok:
		case p == 0 && rest == "":
			best = min(best, MatchName)
		case starts && rest == "":
			best = min(best, MatchLastSegment)
		case p == 0:
			best = min(best, MatchNamePrefix)
		case starts:
			best = min(best, MatchSegmentPrefix)
		default:
			best = min(best, MatchSubstring)
		}
	}
	return best
}

// entry makes an entry with an ID of its own for each name.
func entry(kind fact.EntityKind, namespace, name string) Entry {
	id := fact.HashBytes("test", fmt.Appendf(nil, "%s %q %q", kind, namespace, name))
	return Entry{kind, id, openlineage.Name{Namespace: namespace, Name: name}}
}

var letters = []string{
	"a", "b", "c", "A", "B", "k", "K", "\u212a", "s", "\u017f", "é", "É", "Σ", "σ", "ς", "世", "界", "\xff", "\xe4\xb8",
	"/", ".", ":", "_", "-", " ", "order", "Orders", "sales",
}

func randomText(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		b.WriteString(letters[r.IntN(len(letters))])
	}
	return b.String()
}

func randomEntries(r *rand.Rand, n int) (entries []Entry) {
	spaces := []string{"", "prod", "Sales"}
	for range r.IntN(5) {
		spaces = append(spaces, randomText(r, 6))
	}
	common := randomText(r, 8)
	for range n {
		name := randomText(r, 8)
		switch r.IntN(100) {
		case 0:
			name = strings.Repeat(randomASCII(r), 400)
		case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
			name = common + name
		}
		kind := []fact.EntityKind{fact.JobEntity, fact.DatasetEntity}[r.IntN(2)]
		entries = append(entries, entry(kind, spaces[r.IntN(len(spaces))], name))
	}
	return entries
}

func randomASCII(r *rand.Rand) string {
	return []string{"ab.", "Orders/", "kkkkk", "a", "sales_"}[r.IntN(5)]
}

func randomQuery(r *rand.Rand, entries []Entry) (q Query) {
	q.Limit = []int{1, 2, 10, 1000}[r.IntN(4)]
	if r.IntN(4) == 0 {
		q.Kind = fact.JobEntity
	}
	e := entries[r.IntN(len(entries))]
	if r.IntN(4) == 0 {
		q.Namespace = e.Name.Namespace
	}
	switch name := e.Name.Name; r.IntN(6) {
	case 0:
		q.Text = name
	case 1, 2:
		from := r.IntN(len(name) + 1)
		q.Text = name[from : from+r.IntN(len(name)-from+1)]
	case 3:
		q.Text = e.Name.Namespace + " " + randomText(r, 2)
	case 4:
		for range r.IntN(20) {
			q.Text += randomText(r, 1) + " "
		}
	default:
		q.Text = randomText(r, 3)
	}
	if r.IntN(2) == 0 {
		q.Text = strings.ToUpper(q.Text)
	}
	return q
}

// check holds the answer of an index of entries to the oracle's.
func check(t *testing.T, x *Index, entries []Entry, q Query) {
	t.Helper()
	hits, more := x.Search(q)
	want, wantMore := naive(entries, q)
	same(t, q, hits, want, more, wantMore)
}

// same fails with the first difference between two answers.
func same(t *testing.T, q Query, got, want []Hit, more, wantMore bool) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got) || i >= len(want):
			t.Fatalf("%#v: %d hits, want %d", q, len(got), len(want))
		case got[i] != want[i]:
			t.Fatalf("%#v: hit %d\n got %v %q\nwant %v %q", q, i, got[i].Match, got[i].Name, want[i].Match, want[i].Name)
		}
	}
	if more != wantMore {
		t.Fatalf("%#v: more is %v, want %v", q, more, wantMore)
	}
}

func TestSearchFindsWhatAScanFinds(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		entries := randomEntries(r, []int{1, 50, 2500}[seed%3])
		x := New()
		for _, e := range entries {
			x.Add(e)
		}
		if seed%3 == 2 && len(x.sealed) < 15 {
			t.Fatalf("only %d sealed blocks: the lists are hardly tested", len(x.sealed))
		}
		for range 60 {
			check(t, x, entries, randomQuery(r, entries))
		}
	}
}

func TestOrderOfAddsDoesNotShow(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	entries := randomEntries(r, 2500)
	first, second := New(), New()
	for _, e := range entries {
		first.Add(e)
	}
	for _, i := range r.Perm(len(entries)) {
		second.Add(entries[i])
		second.Add(entries[i/2])
	}
	if first.Len() != second.Len() {
		t.Fatalf("%d and %d entries", first.Len(), second.Len())
	}
	for range 200 {
		q := randomQuery(r, entries)
		a, moreA := first.Search(q)
		b, moreB := second.Search(q)
		same(t, q, a, b, moreA, moreB)
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("s3://bucket/Orders\nb.orders\nORDERS\nsales", "prod", "orders", uint8(3))
	f.Add("\xff\xfe\n\u212a\nσς", "\xe4\xb8", "k \xff", uint8(1))
	f.Fuzz(func(t *testing.T, names, namespace, text string, limit uint8) {
		x, entries := New(), []Entry(nil)
		for i, name := range strings.Split(names, "\n") {
			// Long texts that are not ASCII are cut between runes, which the oracle does not do.
			if len(name) > 1024 || len(namespace) > 1024 || len(text) > 1024 || i > 100 {
				return
			}
			for j := range 1 + 70*(i%2) { // enough to fill blocks
				entries = append(entries, entry(fact.JobEntity, namespace, name+strings.Repeat("x", j%4)))
			}
			e := entries[len(entries)-1]
			e.ID = fact.Hash("another", name)
			entries = append(entries, e)
		}
		for _, e := range entries {
			x.Add(e)
		}
		check(t, x, entries, Query{Text: text, Limit: 1 + int(limit)})
		check(t, x, entries, Query{Text: text, Namespace: namespace, Limit: 1 + int(limit)})
	})
}
