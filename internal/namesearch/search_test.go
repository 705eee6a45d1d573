package namesearch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/graphd/graphd/internal/fact"
)

func indexOf(entries []Entry) *Index {
	x := New()
	for _, e := range entries {
		x.Add(e)
	}
	return x
}

func TestRanking(t *testing.T) {
	x := New()
	for _, name := range []string{"my orders", "reorders", "db.orders_tmp", "orders_tmp", "db.public.orders", "db.orders", "Orders", "customers"} {
		x.Add(entry(fact.DatasetEntity, "s3://lake", name))
	}
	x.Add(entry(fact.JobEntity, "orders-team", "load"))
	x.Add(entry(fact.JobEntity, "airflow", "orders"))
	for _, test := range []struct {
		q    Query
		want string
	}{
		{Query{Text: "orders"}, "name Orders|name orders|lastSegment db.orders|lastSegment db.public.orders|namePrefix orders_tmp|" +
			"segmentPrefix db.orders_tmp|substring reorders|substring my orders|namespace load"},
		{Query{Text: "PUBLIC.ORDERS"}, "lastSegment db.public.orders"},
		{Query{Text: " lake  tmp "}, "lastSegment orders_tmp|lastSegment db.orders_tmp"},
		{Query{Text: "my orders"}, "name my orders"},
		{Query{Text: "orders", Kind: fact.JobEntity}, "name orders|namespace load"},
		{Query{Text: "o", Namespace: "airflow"}, "namePrefix orders"},
		{Query{Text: "orders", Namespace: "Airflow"}, ""},
		{Query{Text: "orders", Limit: 1}, "name Orders|more"},
		{Query{Text: "lake", Limit: 1}, "namespace Orders|more"},
		{Query{Text: "db customers"}, ""},
		{Query{Text: " \t"}, ""},
		{Query{}, ""},
	} {
		hits, more := x.Search(test.q)
		var got []string
		for _, h := range hits {
			got = append(got, h.Match.String()+" "+h.Name.Name)
		}
		if more {
			got = append(got, "more")
		}
		if s := strings.Join(got, "|"); s != test.want {
			t.Errorf("%+v\n got %s\nwant %s", test.q, s, test.want)
		}
	}
}

func TestFoldRune(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if f := foldRune(r); f != foldRune(unicode.SimpleFold(r)) {
			t.Fatalf("%q and %q fold apart", r, unicode.SimpleFold(r))
		} else if utf8.ValidRune(r) && !strings.EqualFold(string(r), string(f)) {
			t.Fatalf("%q folds to %q", r, f)
		}
	}
}

func TestLongTextsAreCutBetweenRunes(t *testing.T) {
	for shift := range 4 {
		s := strings.Repeat("x", shift) + strings.Repeat("世", 1000) + strings.Repeat("y", shift)
		head, tail, ok := strings.Cut(searchText(s), "\xfe")
		if !ok || !utf8.ValidString(head) || !utf8.ValidString(tail) || strings.ContainsRune(head+tail, utf8.RuneError) ||
			!strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || len(head) < 510 || len(tail) < 510 {
			t.Errorf("shift %d: %q", shift, searchText(s))
		}
	}
	if n := len(searchText(strings.Repeat("\x80", 1<<20))); n > 3*1024+1 {
		t.Errorf("%d bytes", n)
	}
}

func TestMonstrousNames(t *testing.T) {
	huge := strings.Repeat("Middle/", 150_000)
	var entries []Entry
	for i := range 12 {
		entries = append(entries, entry(fact.DatasetEntity, huge, fmt.Sprintf("Head%d/%s/tail%d", i, huge, i)))
		entries = append(entries, entry(fact.DatasetEntity, "s", fmt.Sprintf("\xffhead%d\xff%s", i, strings.Repeat("\xff", 2000))))
	}
	x := indexOf(entries)
	for _, text := range []string{"head7/", "TAIL11", "iddle/mid", entries[10].Name.Name, huge, "\xff\xff", strings.Repeat("x ", 5000), strings.Repeat("q", 10_000)} {
		hits, _ := x.Search(Query{Text: text, Limit: 1000})
		for _, h := range hits {
			if !slices.Contains(entries, h.Entry) {
				t.Fatalf("%.20q found %.20q, which was not added", text, h.Name.Name)
			}
		}
		if want := strings.ContainsAny(text[:1], "xq"); (len(hits) == 0) != want {
			t.Errorf("%.20q: %d hits", text, len(hits))
		}
	}
	hits, _ := x.Search(Query{Text: entries[10].Name.Name})
	if len(hits) != 1 || hits[0].Match != MatchName || hits[0].Entry != entries[10] {
		t.Errorf("a long name pasted whole finds %d", len(hits))
	}
}

func TestSharedPrefixesAreTakenInOrder(t *testing.T) {
	var entries []Entry
	for i := range 8_000 {
		entries = append(entries, entry(fact.DatasetEntity, "s3://bucket", fmt.Sprintf("s3://bucket/warehouse/%d", i*7919%20_011)))
	}
	x := indexOf(entries)
	for _, text := range []string{"s3://bucket/warehouse/", "s", "s3", "ware", "reho", "1", "12345", "house 99", "bucket", "/", "zz"} {
		check(t, x, entries, Query{Text: text, Limit: 20})
	}
}

// Where letters repeat, a word stands at every byte of a name.
func TestWorkIsBounded(t *testing.T) {
	var entries []Entry
	for i := range 3000 {
		entries = append(entries, entry(fact.JobEntity, "n", fmt.Sprintf("b%s%04d", strings.Repeat("a", 990), i)))
	}
	x := indexOf(entries)
	q := Query{Text: strings.Repeat("a", 400), Limit: 10}
	if hits, more := x.Search(q); len(hits) != 10 || hits[0].Match != MatchSubstring || !more {
		t.Errorf("%d hits, %v", len(hits), more)
	}
	words, anchors := terms(q.Text)
	s := x.search(q, words, anchors)
	_, _, done := s.run()
	looked := 0
	for n := range s.sealed {
		if s.done.has(uint32(n)) {
			looked++
		}
	}
	if done || looked == 0 || looked > len(s.sealed)/4 {
		t.Errorf("done %v, looked through %d of %d blocks", done, looked, len(s.sealed))
	}
}

func TestWhatACutSearchPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	entries := randomEntries(r, 2500)
	x := indexOf(entries)
	cuts := 0
	for range 150 {
		q := randomQuery(r, entries)
		words, anchors := terms(q.Text)
		if len(words) == 0 {
			continue
		}
		s := x.search(q, words, anchors)
		s.left = r.IntN(20_000)
		m, class, done := s.run()
		got, _ := s.hits()
		want, _ := naive(entries, q)
		if done {
			same(t, q, got, want, false, false)
			continue
		}
		cuts++
		for _, h := range want {
			c := lengthClass(len(plain(h.Name.Name)))
			if (h.Match < m || h.Match == m && c < class) && !slices.Contains(got, h) {
				t.Fatalf("%#v: cut at %v, class %d, misses %v %q", q, m, class, h.Match, h.Name)
			}
		}
		all, _ := naive(entries, Query{q.Text, q.Kind, q.Namespace, len(entries)})
		for _, h := range got {
			if !slices.Contains(all, h) {
				t.Fatalf("%#v: %v %q is no hit", q, h.Match, h.Name)
			}
		}
	}
	if cuts < 20 {
		t.Errorf("only %d searches were cut", cuts)
	}
}

func TestAddAndSearchAtOnce(t *testing.T) {
	const writers, each = 4, 1000
	x := New()
	var entries [writers][]Entry
	for w := range writers {
		entries[w] = randomEntries(rand.New(rand.NewPCG(uint64(w), 4)), each)
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i, e := range entries[w] {
				x.Add(e)
				if i%50 != 0 {
					continue
				}
				mark := entry(fact.JobEntity, "marks", fmt.Sprintf("mark%d-%d", w, i))
				x.Add(mark)
				if hits, _ := x.Search(Query{Text: mark.Name.Name, Limit: 1}); len(hits) != 1 || hits[0].Entry != mark {
					t.Errorf("%q was added and is not found: %v", mark.Name.Name, hits)
				}
				x.Search(Query{Text: "order", Limit: 10})
			}
		})
	}
	wg.Wait()
	var all []Entry
	for w := range writers {
		all = append(all, entries[w]...)
		for i := 0; i < each; i += 50 {
			all = append(all, entry(fact.JobEntity, "marks", fmt.Sprintf("mark%d-%d", w, i)))
		}
	}
	r := rand.New(rand.NewPCG(5, 5))
	for range 50 {
		check(t, x, all, randomQuery(r, all))
	}
}

func TestKindsMayShareAnID(t *testing.T) {
	job := entry(fact.JobEntity, "n", "same")
	dataset := Entry{fact.DatasetEntity, job.ID, job.Name}
	x := indexOf([]Entry{job, dataset, job, dataset})
	if hits, more := x.Search(Query{Text: "same"}); x.Len() != 2 || len(hits) != 2 || more || hits[0].Entry != dataset || hits[1].Entry != job {
		t.Errorf("%d entries, found %v", x.Len(), hits)
	}
}

func TestLimits(t *testing.T) {
	var entries []Entry
	for i := range MaxLimit + 100 {
		entries = append(entries, entry(fact.JobEntity, "n", fmt.Sprint("name", i)))
	}
	x := indexOf(entries)
	for limit, want := range map[int]int{-1: DefaultLimit, 0: DefaultLimit, 7: 7, 1 << 40: MaxLimit} {
		if hits, more := x.Search(Query{Text: "name", Limit: limit}); len(hits) != want || !more {
			t.Errorf("limit %d: %d hits, %v", limit, len(hits), more)
		}
	}
	var text strings.Builder
	for i := range MaxWords {
		fmt.Fprintf(&text, "%.*s ", i%4+1, "name")
	}
	if hits, _ := x.Search(Query{Text: text.String() + "name777"}); len(hits) != 1 || hits[0].Match != MatchName {
		t.Errorf("repeated words count once: %v", hits)
	}
	if hits, _ := x.Search(Query{Text: "nam ame n a m e na am me name 1 10 100 00 0 e1 zebra"}); len(hits) == 0 {
		t.Error("a word beyond MaxWords counts")
	}
}
