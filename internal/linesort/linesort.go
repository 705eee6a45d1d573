// Package linesort sorts more lines than memory holds: by parts in temporary
// files, which are merged.
package linesort

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
)

// Sorter sorts lines bytewise. It holds about Memory bytes of them; the others are
// in unnamed files in Dir. It is for one goroutine.
type Sorter struct {
	// Memory is in bytes, by default 64 MiB.
	Memory int
	// Dir is where the files are, by default the system's for temporary files.
	Dir string

	text  []byte   // of the lines in memory
	lines [][2]int // where they are in it
	parts []*os.File
}

// lineOverhead is what a line takes in memory beside its text.
const lineOverhead = 16

// Add takes a line; it keeps no part of it. Errors are those of files.
func (s *Sorter) Add(line []byte) error {
	if s.Memory == 0 {
		s.Memory = 64 << 20
	}
	if len(s.lines) > 0 && len(s.text)+len(line)+lineOverhead*(len(s.lines)+1) > s.Memory {
		if err := s.spill(); err != nil {
			return fmt.Errorf("sorting lines in files: %w", err)
		}
	}
	s.lines = append(s.lines, [2]int{len(s.text), len(s.text) + len(line)})
	s.text = append(s.text, line...)
	return nil
}

func (s *Sorter) sort() {
	slices.SortFunc(s.lines, func(a, b [2]int) int { return bytes.Compare(s.text[a[0]:a[1]], s.text[b[0]:b[1]]) })
}

// spill writes the lines in memory to a file, which has no name any more.
func (s *Sorter) spill() (err error) {
	s.sort()
	f, err := os.CreateTemp(s.Dir, "graphd-sort-")
	if err != nil {
		return err
	}
	s.parts = append(s.parts, f)
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	for _, l := range s.lines {
		w.Write(binary.AppendUvarint(nil, uint64(l[1]-l[0])))
		w.Write(s.text[l[0]:l[1]])
	}
	s.text, s.lines = s.text[:0], s.lines[:0]
	return w.Flush()
}

// Sorted yields the lines added so far, ascending, equal ones as often as they
// were added, and forgets them. A line is valid until the next one. Lines added
// meanwhile are of the next Sorted.
func (s *Sorter) Sorted() iter.Seq2[[]byte, error] {
	s.sort()
	sorted := *s
	s.text, s.lines, s.parts = nil, nil, nil
	return func(yield func([]byte, error) bool) {
		if err := sorted.merge(func(line []byte) bool { return yield(line, nil) }); err != nil {
			yield(nil, fmt.Errorf("sorting lines in files: %w", err))
		}
	}
}

func (s *Sorter) merge(yield func([]byte) bool) error {
	defer s.Close()
	var m merged
	for _, f := range s.parts {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		p := &part{r: bufio.NewReaderSize(f, 64<<10)}
		if err := p.next(); err != nil {
			return err
		}
		m = append(m, p)
	}
	if len(s.lines) > 0 {
		p := &part{of: s}
		if err := p.next(); err != nil {
			return err
		}
		m = append(m, p)
	}
	heap.Init(&m)
	for len(m) > 0 {
		if !yield(m[0].line) {
			return nil
		}
		err := m[0].next()
		switch {
		case err == nil:
			heap.Fix(&m, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&m)
		default:
			return err
		}
	}
	return nil
}

// Close gives the files up. It is needed only for lines that were not read to the
// end; closing twice is harmless.
func (s *Sorter) Close() error {
	var errs []error
	for _, f := range s.parts {
		errs = append(errs, f.Close())
	}
	s.text, s.lines, s.parts = nil, nil, nil
	return errors.Join(errs...)
}

// part is a sorted part: a file, or what is in memory.
type part struct {
	r    *bufio.Reader
	of   *Sorter
	at   int
	line []byte
}

// next reads the next line; io.EOF at the end.
func (p *part) next() error {
	if p.of != nil {
		if p.at == len(p.of.lines) {
			return io.EOF
		}
		l := p.of.lines[p.at]
		p.line = p.of.text[l[0]:l[1]]
		p.at++
		return nil
	}
	n, err := binary.ReadUvarint(p.r)
	if err != nil {
		return err
	}
	p.line = slices.Grow(p.line[:0], int(n))[:n]
	if _, err := io.ReadFull(p.r, p.line); err != nil {
		return errors.Join(errors.New("a part ends within a line"), err)
	}
	return nil
}

// merged is a heap of parts by their lines.
type merged []*part

func (m merged) Len() int           { return len(m) }
func (m merged) Less(i, j int) bool { return bytes.Compare(m[i].line, m[j].line) < 0 }
func (m merged) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *merged) Push(x any)        { *m = append(*m, x.(*part)) }

// Pop implements heap.Interface.
func (m *merged) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}
