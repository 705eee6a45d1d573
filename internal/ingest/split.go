package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/graphd/graphd/internal/jsontree"
)

// Body is one document of a stream of them, not parsed.
type Body struct {
	// Data is the document's text, the caller's to keep.
	Data []byte
	// Path is the file that it stands in, "-" for standard input, "" for a
	// stream that has no name.
	Path string
	// Number counts the documents of the stream, from 1.
	Number int
	// Line is where it begins, from 1; 0 for an element of an array.
	Line int
}

// Place names where the document stands, for messages.
func (b Body) Place() string {
	path := b.Path
	if path == "-" {
		path = "standard input"
	}
	if b.Line > 0 {
		return path + ":" + strconv.Itoa(b.Line)
	}
	return fmt.Sprintf("%s, element %d", path, b.Number)
}

// Format says how documents follow each other in a stream.
type Format int

// The formats. Every one but Array is an array too if its first byte says so.
const (
	// Detect finds out: an array; else lines, if the first line is a document of
	// its own; else documents of any number of lines, one behind the other.
	Detect Format = iota
	// Array is one JSON array.
	Array
	// Lines has one document a line, and blank lines.
	Lines
)

// Split reads the documents of a stream, holding one of them at a time.
//
// Documents are told apart by strings, brackets and commas alone, so that one
// that is no valid JSON fails on its own, when it is decoded. One longer than
// maxBody bytes is given without Data and with a *jsontree.SyntaxError, and
// reading goes on behind it. A fault of the stream itself comes with the last
// pair: a *jsontree.SyntaxError if an array is none, does not end or is
// followed by something; else the error of r.
func Split(r io.Reader, f Format, maxBody int) iter.Seq2[Body, error] {
	return func(yield func(Body, error) bool) {
		s := splitter{r: bufio.NewReaderSize(r, 64<<10), maxBody: maxBody, line: 1}
		first, err := s.begin()
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			yield(Body{}, err)
		case err == nil && first == '[':
			s.array(yield)
		case f == Array && err != nil:
			yield(Body{}, &jsontree.SyntaxError{Reason: "empty input"})
		case f == Array:
			yield(Body{}, &jsontree.SyntaxError{Offset: int(s.offset), Reason: "not an array"})
		case err != nil: // nothing at all
		case f == Lines:
			s.lines(s.r, yield)
		default:
			s.detect(yield)
		}
	}
}

// splitter reads a stream from its beginning.
type splitter struct {
	r       *bufio.Reader
	maxBody int
	offset  int64
	line    int
	number  int
}

const byteOrderMark = "\xef\xbb\xbf"

// begin skips a byte order mark and white space and returns the first byte
// behind them, which it leaves unread.
func (s *splitter) begin() (byte, error) {
	if mark, _ := s.r.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		s.discard(mark)
	}
	return s.skipSpace()
}

// discard consumes a window that was peeked at.
func (s *splitter) discard(window []byte) {
	s.offset += int64(len(window))
	s.line += bytes.Count(window, []byte{'\n'})
	// It lies in the buffer: discarding it cannot fail.
	_, _ = s.r.Discard(len(window))
}

// window returns what is buffered, at least one byte, without consuming it.
func (s *splitter) window() ([]byte, error) {
	if _, err := s.r.Peek(1); err != nil {
		return nil, err
	}
	return s.r.Peek(s.r.Buffered())
}

func (s *splitter) skipSpace() (byte, error) {
	for {
		w, err := s.window()
		if err != nil {
			return 0, err
		}
		i := 0
		for i < len(w) && isSpace(w[i]) {
			i++
		}
		more := i == len(w)
		var next byte
		if !more {
			next = w[i]
		}
		s.discard(w[:i])
		if !more {
			return next, nil
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// part is a piece of the stream between two ends.
type part struct {
	data []byte // without white space at its end; nil if it is too long
	size int64
	end  byte // the byte that ended it, which is consumed; 0 at the end of the stream
}

// scan reads up to the first byte for which ends says so, given how many
// brackets are open behind that byte. Brackets are only counted, as their kinds
// are for the decoder to match. The byte itself is kept in the data if keep is
// set.
func (s *splitter) scan(keep bool, ends func(c byte, depth int) bool) (part, error) {
	var p part
	var data []byte
	depth := 0
	quoted, escaped := false, false
	for {
		w, err := s.window()
		if err != nil {
			p.data = s.fit(data, p.size)
			return p, err
		}
		i, done := 0, false
		for ; i < len(w) && !done; i++ {
			c := w[i]
			switch {
			case escaped:
				escaped = false
			case quoted:
				escaped, quoted = c == '\\', c != '"'
			case c == '"':
				quoted = true
			case c == '[' || c == '{':
				depth++
			case c == ']' || c == '}':
				depth--
				done = ends(c, depth)
				depth = max(depth, 0) // one that closes nothing belongs to a broken document
			default:
				done = ends(c, depth)
			}
		}
		taken := w[:i]
		if done {
			p.end = w[i-1]
			if !keep {
				taken = taken[:i-1]
			}
		}
		p.size += int64(len(taken))
		if room := s.maxBody + 1 - len(data); room > 0 {
			data = append(data, taken[:min(len(taken), room)]...)
		}
		s.discard(w[:i])
		if done {
			p.data = s.fit(data, p.size)
			return p, nil
		}
	}
}

// fit returns the text of a part in memory of its own size, nil if it is too
// long.
func (s *splitter) fit(data []byte, size int64) []byte {
	if size > int64(s.maxBody) {
		return nil
	}
	return bytes.Clone(bytes.TrimRight(data, " \t\r\n"))
}

// give yields a part as a document.
func (s *splitter) give(p part, line int, yield func(Body, error) bool) bool {
	s.number++
	b := Body{Data: p.data, Number: s.number, Line: line}
	if p.size > int64(s.maxBody) {
		return yield(b, &jsontree.SyntaxError{Reason: fmt.Sprintf("an event of more than %d bytes", s.maxBody)})
	}
	return yield(b, nil)
}

// array reads an array, whose bracket is next.
func (s *splitter) array(yield func(Body, error) bool) {
	fail := func(err error, pointer, reason string) {
		if errors.Is(err, io.EOF) {
			err = &jsontree.SyntaxError{Offset: int(s.offset), Pointer: pointer, Reason: reason}
		}
		s.number++
		yield(Body{Number: s.number}, err)
	}
	w, _ := s.r.Peek(1)
	s.discard(w)
	for {
		unfinished := "unexpected end of input in an array"
		if _, err := s.skipSpace(); err != nil {
			fail(err, "/"+strconv.Itoa(s.number), unfinished)
			return
		}
		p, err := s.scan(false, func(c byte, depth int) bool { return c == ',' && depth == 0 || c == ']' && depth < 0 })
		if err != nil {
			fail(err, "/"+strconv.Itoa(s.number), unfinished)
			return
		}
		empty := s.number == 0 && p.end == ']' && p.size == 0
		if !empty && !s.give(p, 0, yield) {
			return
		}
		if p.end == ']' {
			break
		}
	}
	switch _, err := s.skipSpace(); {
	case err == nil:
		fail(io.EOF, "", "unexpected data after the array")
	case !errors.Is(err, io.EOF):
		fail(err, "", "")
	}
}

// lines reads one document a line of r.
func (s *splitter) lines(r io.Reader, yield func(Body, error) bool) {
	before := s.line - 1
	for raw, err := range jsontree.Lines(r, s.maxBody) {
		s.number++
		if !yield(Body{Data: raw.Data, Number: s.number, Line: before + raw.Line}, err) {
			return
		}
	}
}

// detect tells lines from documents of several lines by the first document.
func (s *splitter) detect(yield func(Body, error) bool) {
	line := s.line
	if first, _ := s.r.Peek(1); first[0] != '{' {
		s.lines(s.r, yield)
		return
	}
	p, err := s.document()
	if err == nil && s.line == line && p.data != nil {
		s.lines(io.MultiReader(bytes.NewReader(p.data), s.r), yield)
		return
	}
	s.documents(p, line, err, yield)
}

func (s *splitter) document() (part, error) {
	return s.scan(true, func(c byte, depth int) bool { return depth <= 0 && (c == '}' || c == ']') })
}

// documents reads documents of any number of lines. The first one has been
// read; it begins at line, and err is what ended it.
func (s *splitter) documents(p part, line int, err error, yield func(Body, error) bool) {
	for {
		if err != nil && !errors.Is(err, io.EOF) {
			yield(Body{}, err)
			return
		}
		if !s.give(p, line, yield) || err != nil {
			return
		}
		if _, err = s.skipSpace(); err == nil {
			line = s.line
			p, err = s.document()
		} else if errors.Is(err, io.EOF) {
			return
		}
	}
}
