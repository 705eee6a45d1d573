package jsontree

import (
	"bufio"
	"bytes"
	"io"
	"iter"
	"strconv"
)

// DefaultMaxLine is the longest line that Lines reads if it is given none.
const DefaultMaxLine = 16 << 20

// Raw is one document of a stream, not parsed.
type Raw struct {
	// Data is the text of the document without white space around it. The
	// offsets that Parse reports for it are relative to Offset.
	Data []byte
	// Offset is where Data begins in the input.
	Offset int
	// Line is the number of the line, from 1, for Lines; 0 for Elements.
	Line int
}

// Elements splits a JSON array into its elements by strings, brackets and
// commas alone, so that an element that is no valid JSON fails on its own, in
// the Parse of its Data, and the others are read. The Data alias the input. An
// element that is missing between two commas or before the closing bracket is
// given with empty Data, which Parse refuses.
//
// A fault in the array itself (it is none, it does not end, something follows
// it) is given as a *SyntaxError in the last pair, after the elements before
// it; its Raw is empty.
//
// Splitting takes constant memory however deeply an element nests: the depth
// limit is for Parse to apply, to each element alone.
func Elements(data []byte) iter.Seq2[Raw, error] {
	return func(yield func(Raw, error) bool) {
		i := 0
		if bytes.HasPrefix(data, []byte(bom)) {
			i = len(bom)
		}
		i = skipSpace(data, i)
		fail := func(off int, pointer, reason string) {
			yield(Raw{}, &SyntaxError{Offset: off, Pointer: pointer, Reason: reason})
		}
		if i == len(data) {
			fail(i, "", "empty input")
			return
		}
		if data[i] != '[' {
			fail(i, "", "not an array")
			return
		}
		i = skipSpace(data, i+1)
		for n := 0; ; n++ {
			end, ok := elementEnd(data, i)
			if !ok {
				fail(len(data), "/"+strconv.Itoa(n), "unexpected end of input in an array")
				return
			}
			element := trimRight(data[i:end])
			last := data[end] == ']'
			if n == 0 && last && len(element) == 0 {
				// The empty array.
			} else if !yield(Raw{Data: element, Offset: i}, nil) {
				return
			}
			i = skipSpace(data, end+1)
			if last {
				break
			}
		}
		if i < len(data) {
			fail(i, "", "unexpected data after the array")
		}
	}
}

// elementEnd gives the index of the comma or bracket that ends the element at
// i. Brackets are only counted: an element whose kinds do not match is for
// Parse to refuse.
func elementEnd(data []byte, i int) (int, bool) {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			if i = stringEnd(data, i+1); i == len(data) {
				return i, false
			}
		case '[', '{':
			depth++
		case ']':
			if depth == 0 {
				return i, true
			}
			depth--
		case '}':
			// One that closes nothing belongs to a broken element.
			if depth > 0 {
				depth--
			}
		case ',':
			if depth == 0 {
				return i, true
			}
		}
		i++
	}
	return i, false
}

// stringEnd gives the index of the quote that ends a string, or len(data).
func stringEnd(data []byte, i int) int {
	for i < len(data) {
		switch data[i] {
		case '"':
			return i
		case '\\':
			i++
		}
		i++
	}
	return len(data)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func skipSpace(data []byte, i int) int {
	for i < len(data) && isSpace(data[i]) {
		i++
	}
	return i
}

// trimRight cuts white space, and the capacity: what a caller appends must not
// overwrite the next element.
func trimRight(data []byte) []byte {
	n := len(data)
	for n > 0 && isSpace(data[n-1]) {
		n--
	}
	return data[:n:n]
}

// Lines reads newline-delimited JSON: one document per line, blank lines left
// out, the last newline optional. Each Data is the caller's to keep.
//
// A line of more than maxLine bytes (0 or less means DefaultMaxLine), its line
// break not counted, is given without Data and with a *SyntaxError; it is
// skipped and reading goes on. An error of r is given as it is, in the last
// pair, with the place where reading stopped; what was read of an unfinished
// line is dropped, since it may be a part of a document only.
func Lines(r io.Reader, maxLine int) iter.Seq2[Raw, error] {
	if maxLine <= 0 {
		maxLine = DefaultMaxLine
	}
	return func(yield func(Raw, error) bool) {
		lines := lineReader{r: bufio.NewReaderSize(r, 64<<10), keep: maxLine + len("\r\n")}
		for number := 1; ; number++ {
			raw := Raw{Offset: lines.offset, Line: number}
			line, size, err := lines.next()
			if err != nil && err != io.EOF {
				raw.Offset = lines.offset
				yield(raw, err)
				return
			}
			if size > maxLine {
				if !yield(raw, &SyntaxError{
					Offset: raw.Offset,
					Reason: "line " + strconv.Itoa(number) + " is longer than " + strconv.Itoa(maxLine) + " bytes",
				}) {
					return
				}
			} else {
				from := 0
				if number == 1 && bytes.HasPrefix(line, []byte(bom)) {
					from = len(bom)
				}
				from = skipSpace(line, from)
				if text := trimRight(line[from:]); len(text) > 0 {
					raw.Data, raw.Offset = bytes.Clone(text), raw.Offset+from
					if !yield(raw, nil) {
						return
					}
				}
			}
			if err == io.EOF {
				return
			}
		}
	}
}

// lineReader reads lines whole up to a bound, and counts the bytes of longer
// ones.
type lineReader struct {
	r      *bufio.Reader
	keep   int // how many bytes of a line to hold
	offset int // bytes read so far
	buf    []byte
}

// next reads a line. It gives its text, which is valid until the next call and
// incomplete if the line is too long, and its true length, both without the
// line break. The error is io.EOF for the last line, which may be empty.
func (l *lineReader) next() (line []byte, size int, err error) {
	l.buf = l.buf[:0]
	for {
		var part []byte
		part, err = l.r.ReadSlice('\n')
		l.offset += len(part)
		size += len(part)
		room := l.keep - len(l.buf)
		l.buf = append(l.buf, part[:min(len(part), room)]...)
		if err != bufio.ErrBufferFull {
			break
		}
	}
	if size > len(l.buf) {
		return l.buf, size, err
	}
	line = bytes.TrimSuffix(l.buf, []byte("\n"))
	if len(line) < len(l.buf) {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	return line, len(line), err
}
