package lineage

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

// Sorter sorts the lines of one type.
type Sorter interface {
	// Add takes a line; it keeps no part of it.
	Add(line []byte) error
	// Sorted yields the lines added so far, ascending, and forgets them. A line is
	// valid until the next one. Lines added meanwhile are of the next Sorted.
	Sorted() iter.Seq2[[]byte, error]
}

// WriteSnapshot writes the canonical snapshot: one JSON object a line, sorted by
// its own bytes within each type, types in a fixed order. Two graphs are equal
// if and only if their snapshots are the same bytes. Receipt times, delivery
// counts and which of two bodies came first are not in it.
func (g *Graph) WriteSnapshot(w io.Writer) error { return writeSnapshot(w, viewOf(g), &memorySorter{}) }

// WriteSnapshot writes the canonical snapshot of what the State holds, of which
// nothing may be pending. It holds the lines that sorter does, and little else.
func (st *State) WriteSnapshot(w io.Writer, sorter Sorter) error {
	return writeSnapshot(w, stateView{st}, sorter)
}

func writeSnapshot(w io.Writer, v view, sorter Sorter) error {
	b := bufio.NewWriterSize(w, 64<<10)
	s := &snapshot{view: v, sorter: sorter}
	for _, t := range []struct {
		name  string
		lines func()
	}{
		{"event", s.events}, {"observation", s.observations}, {"attempt", s.attempts}, {"run", s.runs},
		{"generation", s.generations}, {"derivation", s.derivations}, {"mapping", s.mappings},
		{"dependency", s.dependencies}, {"current", s.current}, {"field", s.fields}, {"declared", s.declared},
		{"dataset", s.datasets}, {"job", s.jobs}, {"facet", s.facets}, {"version", s.versions}, {"group", s.groups},
	} {
		s.kind = t.name
		t.lines()
		for line, err := range sorter.Sorted() {
			if err != nil && s.err == nil {
				s.err = err
			}
			if s.err != nil {
				return fmt.Errorf("sorting the snapshot: %w", s.err)
			}
			b.Write(line)
			if err := b.WriteByte('\n'); err != nil {
				return fmt.Errorf("writing the snapshot: %w", err)
			}
		}
		if s.err != nil {
			return fmt.Errorf("sorting the snapshot: %w", s.err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	return nil
}

// snapshot writes the lines of a view.
type snapshot struct {
	view   view
	sorter Sorter
	kind   string
	err    error
}

func (s *snapshot) add(o object) {
	if s.err == nil {
		s.err = s.sorter.Add(append(o.str("type", s.kind).buf, '}'))
	}
}

// memorySorter is a Sorter in memory.
type memorySorter struct{ lines []string }

func (m *memorySorter) Add(line []byte) error {
	m.lines = append(m.lines, string(line))
	return nil
}

func (m *memorySorter) Sorted() iter.Seq2[[]byte, error] {
	lines := m.lines
	m.lines = nil
	slices.Sort(lines)
	return func(yield func([]byte, error) bool) {
		for _, line := range lines {
			if !yield([]byte(line), nil) {
				return
			}
		}
	}
}

// object builds a JSON object member by member.
type object struct{ buf []byte }

func (o object) key(k string) object {
	if len(o.buf) == 0 {
		o.buf = append(o.buf, '{')
	} else {
		o.buf = append(o.buf, ',')
	}
	o.buf = jsontree.AppendString(o.buf, k)
	o.buf = append(o.buf, ':')
	return o
}

// str adds a string, unless it is empty.
func (o object) str(k, v string) object {
	if v == "" {
		return o
	}
	o = o.key(k)
	o.buf = jsontree.AppendString(o.buf, v)
	return o
}

func (o object) raw(k, json string) object {
	if json == "" {
		return o
	}
	o = o.key(k)
	o.buf = append(o.buf, json...)
	return o
}

func (o object) id(k string, v fact.ID) object {
	if v.IsZero() {
		return o
	}
	return o.str(k, v.String())
}

func (o object) run(k string, v RunID) object {
	if v.IsZero() {
		return o
	}
	return o.str(k, v.String())
}

func (o object) time(k string, v openlineage.Instant) object { return o.str(k, v.String()) }

func (o object) flag(k string, v bool) object {
	if !v {
		return o
	}
	return o.raw(k, "true")
}

func (o object) name(k string, v openlineage.Name) object {
	if v == (openlineage.Name{}) {
		return o
	}
	return o.raw(k, object{}.key("namespace").text(v.Namespace).key("name").text(v.Name).end())
}

func (o object) text(v string) object {
	o.buf = jsontree.AppendString(o.buf, v)
	return o
}

func (o object) end() string {
	if len(o.buf) == 0 {
		return "{}"
	}
	return string(append(o.buf, '}'))
}

// list adds an array, unless it is empty.
func list[T any](o object, k string, elems []T, json func(T) string) object {
	if len(elems) == 0 {
		return o
	}
	o = o.key(k)
	for i, e := range elems {
		o.buf = append(o.buf, "[,"[min(i, 1)])
		o.buf = append(o.buf, json(e)...)
	}
	o.buf = append(o.buf, ']')
	return o
}

func quoted[T fmt.Stringer](v T) string  { return strconv.Quote(v.String()) }
func quotedText(s string) string         { return string(jsontree.AppendString(nil, s)) }
func refJSON(r DatasetRef) string        { return object{}.name("dataset", r.Name).end() }
func derivationRef(d *Derivation) string { return quoted(d.ID) }
