package jsontree

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// DefaultDepth is how deep arrays and objects may nest if Limits names no
// depth.
const DefaultDepth = 512

// maxInput is the longest input that Value's 32-bit offsets can address.
const maxInput = math.MaxInt32

// Limits bounds what Parse accepts. The zero value gives the defaults.
type Limits struct {
	// Depth is the greatest number of arrays and objects around a value,
	// itself included; 0 or less means DefaultDepth.
	Depth int
	// Canonical says that the text is what AppendCanonical wrote. Numbers may
	// then be as long as it makes them: the limits on numbers are on the
	// sender's spelling, and what is 1 and 450 zeros there is 1e+450 here.
	Canonical bool
}

// Stats counts what Parse tolerated.
type Stats struct {
	// DuplicateKeys is the number of members that a later member of the same
	// object, with the same key after normalisation, replaced.
	DuplicateKeys int
	// NonFinite is the number of bare NaN, Infinity and -Infinity, which
	// are read as null.
	NonFinite int
	// LoneSurrogates is the number of \ud800 to \udfff escapes, in keys and
	// strings, that are not half of a pair. Those of replaced members count.
	LoneSurrogates int
}

// Parse reads one JSON document (RFC 8259) from data, which it copies once:
// the caller may reuse data, and the tree's strings alias the copy wherever
// the text needs neither unescaping nor normalising.
//
// Beyond the RFC it accepts a leading UTF-8 byte order mark and the bare words
// NaN, Infinity and -Infinity; it is stricter in that invalid UTF-8, nesting
// beyond the limit, an exponent beyond ±400 and a number of more than 1,000
// digits are errors. Every error is a *SyntaxError.
func Parse(data []byte, lim Limits) (*Value, Stats, error) {
	if err := checkSize(int64(len(data))); err != nil {
		return nil, Stats{}, err
	}
	p := parsers.Get().(*parser)
	defer p.release()
	p.reset(string(data), lim)
	root, ok := p.document()
	if !ok {
		return nil, Stats{}, p.syntaxError()
	}
	return root, p.stats, nil
}

func checkSize(n int64) error {
	if n > maxInput {
		return &SyntaxError{Offset: maxInput, Reason: "input is longer than " + strconv.Itoa(maxInput) + " bytes"}
	}
	return nil
}

// bom is the UTF-8 encoding of U+FEFF.
const bom = "\xef\xbb\xbf"

// parser holds the state of one Parse. Parsers are pooled for the sake of
// their scratch slices.
type parser struct {
	s       string
	i       int
	depth   int
	limit   int
	numbers numberLimits

	stats Stats

	// stack holds the items of all open containers, innermost last. A
	// container that ends moves its items to a slice of exact size and drops
	// them here, so the many small appends happen on memory that is reused.
	stack []Item
	high  int // greatest length of stack so far
	// order is scratch for sorting the members of one object.
	order []int32
	// wide is set once a code point above U+FFFF was read: only then can the
	// UTF-16 order of keys differ from byte order.
	wide bool

	// arena is the unused rest of the chunk that small containers share.
	arena []Item
	chunk int
	// text is the current chunk of strings that are not spelled so in s. A
	// Builder hands out strings over its buffer without copying, and bytes
	// once written never change; a full chunk is left to its strings.
	text strings.Builder

	buf    []byte // scratch for one unescaped string
	digits []byte // scratch for one number

	failOff    int
	failReason string
	// failPath holds the pointer's tokens, innermost first: containers add
	// theirs while the failure unwinds, so that success costs nothing.
	failPath []string
}

var parsers = sync.Pool{New: func() any {
	return &parser{stack: make([]Item, 0, 256)}
}}

const (
	// maxPooledItems bounds the scratch that one huge document leaves behind.
	maxPooledItems = 4096
	// minChunk and maxChunk bound the chunks of parser.arena, in items.
	minChunk = 8
	maxChunk = 512
	// bytesPerItem is the typical length of text per value of an OpenLineage
	// event, measured low so that most events need one chunk.
	bytesPerItem = 28
)

func (p *parser) reset(s string, lim Limits) {
	p.s, p.i = s, 0
	p.depth, p.limit = 0, lim.Depth
	if p.limit <= 0 {
		p.limit = DefaultDepth
	}
	p.numbers = written
	if lim.Canonical {
		p.numbers = rewritten
	}
	p.stats = Stats{}
	p.wide = false
	p.chunk = min(max(len(s)/bytesPerItem, minChunk), maxChunk)
}

// release drops every reference to the document and gives the parser back.
func (p *parser) release() {
	if cap(p.stack) > maxPooledItems || cap(p.order) > maxPooledItems || cap(p.buf) > 1<<16 {
		return
	}
	clear(p.stack[:max(p.high, len(p.stack))])
	clear(p.failPath)
	p.stack, p.high = p.stack[:0], 0
	p.failPath = p.failPath[:0]
	p.failReason = ""
	p.s, p.arena = "", nil
	p.text = strings.Builder{}
	parsers.Put(p)
}

func (p *parser) fail(off int, reason string) bool {
	p.failOff, p.failReason = off, reason
	return false
}

func (p *parser) syntaxError() *SyntaxError {
	var ptr strings.Builder
	for _, token := range slices.Backward(p.failPath) {
		ptr.WriteByte('/')
		ptr.WriteString(EscapePointer(token))
	}
	// Neither the pointer nor the reason aliases the input, so an error that is
	// kept does not keep the document alive.
	return &SyntaxError{Offset: p.failOff, Pointer: ptr.String(), Reason: p.failReason}
}

func (p *parser) document() (*Value, bool) {
	if strings.HasPrefix(p.s, bom) {
		p.i = len(bom)
	}
	p.space()
	if p.i == len(p.s) {
		return nil, p.fail(p.i, "empty input")
	}
	p.push("")
	if !p.value() {
		return nil, false
	}
	p.space()
	if p.i < len(p.s) {
		return nil, p.fail(p.i, "unexpected "+describe(p.s, p.i)+" after the document")
	}
	root := new(Value)
	*root = p.stack[0].Value
	return root, true
}

// space skips white space.
func (p *parser) space() {
	s, i := p.s, p.i
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	p.i = i
}

// value reads the value at p.i into the topmost item of the stack. The slot is
// addressed by index, never by a pointer that is kept: the stack may move while
// a container's own items are pushed above it.
func (p *parser) value() bool {
	if p.i >= len(p.s) {
		return p.fail(p.i, "unexpected end of input, want a value")
	}
	off := p.i
	switch c := p.s[off]; c {
	case '"':
		text, ok := p.str()
		if !ok {
			return false
		}
		v := &p.stack[len(p.stack)-1].Value
		v.Kind, v.Text = String, text
		v.Off, v.End = int32(off), int32(p.i)
		return true
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if c == '-' && strings.HasPrefix(p.s[off:], "-Infinity") {
			return p.word("-Infinity", Null, false)
		}
		text, ok := p.number()
		if !ok {
			return false
		}
		v := &p.stack[len(p.stack)-1].Value
		v.Kind, v.Text = Number, text
		v.Off, v.End = int32(off), int32(p.i)
		return true
	case 't':
		return p.word("true", Bool, true)
	case 'f':
		return p.word("false", Bool, false)
	case 'n':
		return p.word("null", Null, false)
	case 'N':
		return p.word("NaN", Null, false)
	case 'I':
		return p.word("Infinity", Null, false)
	default:
		return p.fail(off, "unexpected "+describe(p.s, off)+", want a value")
	}
}

// word reads one of the bare words.
func (p *parser) word(w string, kind Kind, b bool) bool {
	off := p.i
	if !strings.HasPrefix(p.s[off:], w) {
		return p.fail(off, "invalid literal, want "+w)
	}
	p.i += len(w)
	if kind == Null && w != "null" {
		p.stats.NonFinite++
	}
	v := &p.stack[len(p.stack)-1].Value
	v.Kind, v.Bool = kind, b
	v.Off, v.End = int32(off), int32(p.i)
	return true
}

// push begins an item, whose value is to be read next.
func (p *parser) push(key string) {
	if len(p.stack) == cap(p.stack) {
		// Doubling: append grows large slices by a quarter only, which for
		// an array of a million numbers means copying it many times.
		p.stack = slices.Grow(p.stack, len(p.stack))
	}
	p.stack = append(p.stack, Item{Key: key})
}

// enter counts one more level of nesting.
func (p *parser) enter() bool {
	if p.depth == p.limit {
		return p.fail(p.i, "nested deeper than "+strconv.Itoa(p.limit)+" levels")
	}
	p.depth++
	p.i++
	return true
}

// leave ends the container that began at off and whose slot is below base.
func (p *parser) leave(kind Kind, off, base int, items []Item) bool {
	p.i++
	p.depth--
	p.high = max(p.high, len(p.stack))
	p.stack = p.stack[:base]
	v := &p.stack[base-1].Value
	v.Kind, v.Items = kind, items
	v.Off, v.End = int32(off), int32(p.i)
	return true
}

// failIn adds a token of the failed value's pointer.
func (p *parser) failIn(token string) bool {
	p.failPath = append(p.failPath, token)
	return false
}

func (p *parser) array() bool {
	off, base := p.i, len(p.stack)
	if !p.enter() {
		return false
	}
	p.space()
	if p.i < len(p.s) && p.s[p.i] == ']' {
		return p.leave(Array, off, base, nil)
	}
	for n := 0; ; n++ {
		p.push("")
		if !p.value() {
			return p.failIn(strconv.Itoa(n))
		}
		p.space()
		if p.i >= len(p.s) {
			return p.fail(p.i, "unexpected end of input in an array")
		}
		switch p.s[p.i] {
		case ',':
			p.i++
			p.space()
		case ']':
			items := p.take(len(p.stack) - base)
			copy(items, p.stack[base:])
			return p.leave(Array, off, base, items)
		default:
			return p.fail(p.i, "unexpected "+describe(p.s, p.i)+", want ',' or ']'")
		}
	}
}

func (p *parser) object() bool {
	off, base := p.i, len(p.stack)
	if !p.enter() {
		return false
	}
	p.space()
	if p.i < len(p.s) && p.s[p.i] == '}' {
		return p.leave(Object, off, base, nil)
	}
	for {
		if p.i >= len(p.s) {
			return p.fail(p.i, "unexpected end of input in an object")
		}
		if p.s[p.i] != '"' {
			return p.fail(p.i, "unexpected "+describe(p.s, p.i)+", want a key")
		}
		key, ok := p.str()
		if !ok {
			return false
		}
		p.space()
		if p.i >= len(p.s) || p.s[p.i] != ':' {
			return p.fail(p.i, "unexpected "+describe(p.s, p.i)+", want ':' after a key")
		}
		p.i++
		p.space()
		p.push(key)
		if !p.value() {
			return p.failIn(key)
		}
		p.space()
		if p.i >= len(p.s) {
			return p.fail(p.i, "unexpected end of input in an object")
		}
		switch p.s[p.i] {
		case ',':
			p.i++
			p.space()
		case '}':
			return p.leave(Object, off, base, p.members(p.stack[base:]))
		default:
			return p.fail(p.i, "unexpected "+describe(p.s, p.i)+", want ',' or '}'")
		}
	}
}

// take gives a zeroed slice of n items that nothing else uses.
func (p *parser) take(n int) []Item {
	if n > len(p.arena) {
		if n > p.chunk/4 {
			// Large enough for an allocation of its own: starting a new
			// chunk would waste what is left of this one.
			return make([]Item, n)
		}
		p.arena = make([]Item, p.chunk)
	}
	items := p.arena[:n:n]
	p.arena = p.arena[n:]
	return items
}
