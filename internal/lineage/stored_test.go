package lineage_test

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/btree"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
)

// textRows are Rows in memory.
type textRows struct {
	rows btree.Map[string, []byte]
	bad  error
}

func textKey(t lineage.TableID, key string) string { return string([]byte{byte(t)}) + key }

func (r *textRows) Get(t lineage.TableID, key string) []byte {
	text, _ := r.rows.Get(textKey(t, key))
	return text
}

func (r *textRows) Scan(t lineage.TableID, from, to string, backward bool) iter.Seq2[string, []byte] {
	low, high := textKey(t, from), textKey(t+1, "")
	if to != "" {
		high = textKey(t, to)
	}
	return func(yield func(string, []byte) bool) {
		step := func(key string, text []byte) bool {
			if key < low || key >= high {
				return key >= high == backward // behind the end, or not there yet
			}
			return yield(key[1:], text)
		}
		if backward {
			r.rows.Descend(high, step)
		} else {
			r.rows.Ascend(low, step)
		}
	}
}

func (r *textRows) Len(t lineage.TableID) (n int) {
	for range r.Scan(t, "", "", false) {
		n++
	}
	return n
}

func (r *textRows) Fail(err error) { r.bad = err }

func (r *textRows) commit(st *lineage.State, all bool) {
	st.Flush(all, func(t lineage.TableID, key string, text []byte) {
		if text == nil {
			r.rows.Delete(textKey(t, key))
		} else {
			r.rows.Set(textKey(t, key), append([]byte{}, text...))
		}
	})
}

// lines is a lineage.Sorter.
type lines [][]byte

func (l *lines) Add(line []byte) error {
	*l = append(*l, bytes.Clone(line))
	return nil
}

func (l *lines) Sorted() iter.Seq2[[]byte, error] {
	sorted := *l
	*l = nil
	slices.SortFunc(sorted, bytes.Compare)
	return func(yield func([]byte, error) bool) {
		for _, line := range sorted {
			if !yield(line, nil) {
				return
			}
		}
	}
}

// TestAStoredStateIsOneInMemory merges and settles over rows of bytes, with
// flushes at any moment, and with new States over what was flushed: after those
// what was delivered since the last whole flush comes again, as from a log.
func TestAStoredStateIsOneInMemory(t *testing.T) {
	for seed := range streams(2_000) {
		events := decode(t, lineagetest.Stream(rand.New(rand.NewPCG(seed, 3)), streamLength)...)
		version := decoder(t).Version()
		want := snapshot(t, lineage.Fold(version, events))
		rng := rand.New(rand.NewPCG(seed, 4))
		rows := &textRows{}
		st := lineage.NewStored(version, rows)
		var since []*fact.Event // the last whole flush
		for _, e := range withRepeats(rng, events) {
			st.Merge(e)
			since = append(since, e)
			if rng.IntN(4) == 0 {
				st.Settle(1 + rng.IntN(8))
			}
			if rng.IntN(3) > 0 {
				continue
			}
			all := rng.IntN(2) == 0
			rows.commit(st, all)
			if all {
				since = nil
			}
			if rng.IntN(4) == 0 {
				st = lineage.NewStored(version, rows)
				for _, again := range since {
					st.Merge(again)
				}
			}
		}
		for st.Settle(1+rng.IntN(8)) > 0 {
			if rng.IntN(4) == 0 {
				rows.commit(st, rng.IntN(2) == 0)
			}
		}
		rows.commit(st, true)
		for name, st := range map[string]*lineage.State{"the State itself": st, "one that reads it": lineage.NewStored(version, rows)} {
			g := st.Graph()
			if got := snapshot(t, g); got != want {
				t.Fatalf("seed %d: %s:\n%s", seed, name, diff(want, got))
			}
			var direct strings.Builder
			if err := st.WriteSnapshot(&direct, &lines{}); err != nil || direct.String() != want {
				t.Fatalf("seed %d: %s, without a Graph (%v):\n%s", seed, name, err, diff(want, direct.String()))
			}
			if wrong := lineage.BrokenRows(st, g); len(wrong) > 0 {
				t.Fatalf("seed %d: %s: %v", seed, name, wrong)
			}
		}
		if rows.bad != nil {
			t.Fatal(fmt.Errorf("seed %d: %w", seed, rows.bad))
		}
	}
}
