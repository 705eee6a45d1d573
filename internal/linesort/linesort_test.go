package linesort_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/graphd/graphd/internal/linesort"
)

func sorted(t *testing.T, s *linesort.Sorter) (lines []string) {
	t.Helper()
	for line, err := range s.Sorted() {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	return lines
}

func TestLinesAreSortedWhateverTheMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, memory := range []int{1, 100, 5_000, 1 << 20} {
		dir := t.TempDir()
		s := &linesort.Sorter{Memory: memory, Dir: dir}
		for range 3 { // a Sorter is used again
			var want []string
			for range 300 {
				line := make([]byte, rng.IntN(40))
				for i := range line {
					line[i] = byte(rng.IntN(256))
				}
				want = append(want, string(line))
				if err := s.Add(line); err != nil {
					t.Fatal(err)
				}
				clear(line) // it is the caller's
			}
			slices.Sort(want)
			if got := sorted(t, s); !slices.Equal(got, want) {
				t.Fatalf("with %d bytes: %d lines, want %d in another order", memory, len(got), len(want))
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("with %d bytes: files %v are left (%v)", memory, left, err)
		}
	}
}

func TestLinesAddedMeanwhileAreOfTheNextTime(t *testing.T) {
	s := &linesort.Sorter{Memory: 10, Dir: t.TempDir()}
	for _, l := range []string{"c", "a", "b"} {
		if err := s.Add([]byte(l)); err != nil {
			t.Fatal(err)
		}
	}
	var first []string
	for line, err := range s.Sorted() {
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, string(line))
		if err := s.Add(bytes.ToUpper(line)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(first, []string{"a", "b", "c"}) {
		t.Errorf("first %q", first)
	}
	if second := sorted(t, s); !slices.Equal(second, []string{"A", "B", "C"}) {
		t.Errorf("then %q", second)
	}
}

func TestADirectoryThatIsNotThereIsAnError(t *testing.T) {
	s := &linesort.Sorter{Memory: 1, Dir: filepath.Join(t.TempDir(), "none")}
	err := errors.Join(s.Add([]byte("a")), s.Add([]byte("b")))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that it does not exist", err)
	}
}
