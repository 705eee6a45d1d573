package namesearch

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/graphd/graphd/internal/fact"
)

// Match says how a hit matched, best first. Segments are what stands between
// the characters / . : _ and -.
type Match uint8

// The ways to match.
const (
	MatchName          Match = iota // the name
	MatchLastSegment                // the end of the name, from the start of a segment
	MatchNamePrefix                 // the start of the name
	MatchSegmentPrefix              // the start of a segment
	MatchSubstring                  // elsewhere in the name
	MatchNamespace                  // in the namespace only
	matches
)

var matchNames = [matches]string{"name", "lastSegment", "namePrefix", "segmentPrefix", "substring", "namespace"}

// String returns the word for m.
func (m Match) String() string { return matchNames[m] }

// MarshalText makes a Match readable in JSON.
func (m Match) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

const (
	// DefaultLimit and MaxLimit are the hits of one Search.
	DefaultLimit = 20
	MaxLimit     = 1000
	// MaxWords is how many different words of a text are looked for.
	MaxWords = 16

	// maxBytes is what a search reads of sealed blocks.
	maxBytes = 32 << 20
)

// Query asks for entities.
type Query struct {
	// Text is words with white space between them, of which the first MaxWords
	// different ones count. Without a word nothing is found.
	Text string
	// Kind keeps to entities of a kind; "" is all.
	Kind fact.EntityKind
	// Namespace keeps to one namespace, case and all; "" is all.
	Namespace string
	// Limit is how many hits to return at most: DefaultLimit if it is not positive,
	// MaxLimit if it is more than that.
	Limit int
}

// Hit is an entity that a query found.
type Hit struct {
	Entry
	// Match is the best that a word of the query, or its whole text, reached.
	Match Match
}

// Search returns the best hits for q, best first. more says that these may not
// be all: more than Limit match, or the bound on work was reached (see the
// package comment). It takes time linear in the length of Text besides.
func (x *Index) Search(q Query) (hits []Hit, more bool) {
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	q.Limit = min(q.Limit, MaxLimit)
	words, anchors := terms(q.Text)
	if len(words) == 0 {
		return nil, false
	}
	s := x.search(q, words, anchors)
	_, _, done := s.run()
	hits, more = s.hits()
	return hits, more || !done
}

// hits returns what was found, and whether that is more than the limit.
func (s *search) hits() (hits []Hit, more bool) {
	for m := range s.found {
		for _, c := range s.found[m].best() {
			if len(hits) == s.q.Limit {
				return hits, true
			}
			hits = append(hits, Hit{Entry: s.entry(c), Match: Match(m)})
		}
	}
	return hits, false
}

// terms returns the words of a text, folded, and all whose place in a name
// decides the Match: the words, and the text as a whole.
func terms(text string) (words, anchors [][]byte) {
	add := func(list [][]byte, s string) [][]byte {
		word := []byte(searchText(s))
		if slices.ContainsFunc(list, func(w []byte) bool { return bytes.Equal(w, word) }) {
			return list
		}
		return append(list, word)
	}
	for w := range strings.FieldsSeq(text) {
		if words = add(words, w); len(words) == MaxWords {
			break
		}
	}
	return words, add(slices.Clip(words), strings.TrimSpace(text))
}

// search is one search: a snapshot of the index, and what was found in it.
type search struct {
	q              Query
	words, anchors [][]byte
	// order is the words by how few blocks they leave, fewest first.
	order []int

	spaces []space
	open   []block
	sealed []*block
	bySize [lengthClasses][]uint32
	// perhaps has, for each Match, the sealed blocks that may hold hits of it.
	perhaps [matches]bitset

	// inSpace has what is known of each space: known, wanted, and a bit for each
	// word that its namespace contains.
	inSpace []uint32
	done    bitset
	left    int
	found   [matches]top
}

const (
	known  = 1 << 31
	wanted = 1 << 30
)

// search takes the snapshot. Lists are read after the lock is given back.
func (x *Index) search(q Query, words, anchors [][]byte) *search {
	s := &search{q: q, words: words, anchors: anchors, left: maxBytes}
	var inNames, inSpaces [][][]byte
	var anchored [matches][][]byte
	var filters [][]byte

	x.mu.RLock()
	s.spaces, s.sealed, s.bySize = x.spaces, x.sealed, x.bySize
	for _, b := range x.open {
		if b != nil {
			s.open = append(s.open, *b)
		}
	}
	for i, a := range anchors {
		inNames = append(inNames, x.posts.lists(nameGram, a))
		if i < len(words) {
			s.order = append(s.order, i)
			inSpaces = append(inSpaces, x.posts.lists(spaceGram, a))
		}
		for m, g := range [...]gram{
			MatchName:          x.hashGram(wholeGram, a),
			MatchLastSegment:   x.hashGram(lastGram, a[lastSegment(a):]),
			MatchNamePrefix:    prefixGram(startGram, a),
			MatchSegmentPrefix: prefixGram(segmentGram, a),
		} {
			anchored[m] = append(anchored[m], x.posts.list(g))
		}
	}
	if q.Kind != "" {
		filters = append(filters, x.posts.list(x.hashGram(kindGram, []byte(q.Kind))))
	}
	if q.Namespace != "" {
		filters = append(filters, x.posts.list(x.hashGram(namespaceGram, []byte(q.Namespace))))
	}
	x.mu.RUnlock()

	rarest := func(w int) int {
		if len(inNames[w]) == 0 {
			return math.MaxInt
		}
		return len(inNames[w][0])
	}
	slices.SortStableFunc(s.order, func(v, w int) int { return cmp.Compare(rarest(v), rarest(w)) })

	n := len(s.sealed)
	s.inSpace, s.done = make([]uint32, len(s.spaces)), newBitset(n)
	for m := range s.perhaps {
		s.perhaps[m] = newBitset(n)
	}
	all := inAll(filters, n)
	for i := range anchors {
		named := inAll(inNames[i], n)
		for m := MatchName; m <= MatchSegmentPrefix; m++ {
			s.perhaps[m].or(setOf(anchored[m][i], n).and(named))
		}
		if i < len(words) {
			s.perhaps[MatchSubstring].or(named)
			all.and(named.or(inAll(inSpaces[i], n)))
		}
	}
	s.perhaps[MatchNamespace].or(all)
	for m := range s.perhaps {
		s.perhaps[m].and(all)
	}
	return s
}

// run looks through blocks, best first. If the bound cuts it, done is false, and
// no hit can be missing that is of a better Match than m, or of m and of a
// length class before class.
func (s *search) run() (m Match, class int, done bool) {
	enough := s.q.Limit + 1 // one more tells that there is more
	for m := range s.found {
		s.found[m].limit = enough
	}
	left := s.left
	for i := range s.open {
		s.look(&s.open[i])
	}
	s.left = left
	for m := range matches {
		for class, numbers := range s.bySize {
			for _, n := range numbers {
				if !s.perhaps[m].has(n) || s.done.has(n) {
					continue
				}
				if s.left < 0 {
					return m, class, false
				}
				s.done.set(n)
				s.look(s.sealed[n])
			}
			// Longer names of this match, and worse matches, cannot be better.
			if s.found[m].count(class) >= enough {
				return 0, 0, true
			}
		}
		enough -= len(s.found[m].best())
		if enough <= 0 {
			return 0, 0, true
		}
	}
	return 0, 0, true
}

// look finds the hits in a block.
func (s *search) look(b *block) {
	var flags [blockItems]uint32
	set := uint64(0)
	for i := range b.items {
		if flags[i] = s.space(b.items[i].space); flags[i]&wanted != 0 {
			set |= 1 << i
		}
	}
	for _, w := range s.order {
		inSpace := uint64(0)
		for i := range b.items {
			inSpace |= uint64(flags[i]>>w&1) << i
		}
		if set&^inSpace != 0 {
			s.left -= len(b.text)
			set &= inSpace | b.containing(s.words[w])
		}
	}
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		name := b.name(i)
		best := MatchNamespace
		for _, a := range s.anchors {
			best = min(best, s.match(name, a))
		}
		s.found[best].add(candidate{b, i, name}, s)
	}
}

// space returns what is known of a space.
func (s *search) space(n uint32) uint32 {
	if s.inSpace[n] == 0 {
		sp, flags := &s.spaces[n], uint32(known)
		if (s.q.Kind == "" || s.q.Kind == sp.kind) && (s.q.Namespace == "" || s.q.Namespace == sp.namespace) {
			flags |= wanted
			for w, word := range s.words {
				s.left -= len(sp.folded)
				if bytes.Contains(sp.folded, word) {
					flags |= 1 << w
				}
			}
		}
		s.inSpace[n] = flags
	}
	return s.inSpace[n]
}

// match returns how word stands in a name, both folded.
func (s *search) match(name, word []byte) Match {
	prefix := bytes.HasPrefix(name, word)
	if prefix && len(name) == len(word) {
		return MatchName
	}
	if at := len(name) - len(word); at > 0 && endsSegment[name[at-1]] && bytes.HasSuffix(name, word) {
		return MatchLastSegment
	}
	if prefix {
		return MatchNamePrefix
	}
	best := MatchNamespace
	for from := 1; from < len(name); {
		p := bytes.Index(name[from:], word)
		if p < 0 {
			break
		}
		if best = MatchSubstring; endsSegment[name[from+p-1]] {
			return MatchSegmentPrefix
		}
		s.left -= len(word) // a name of one letter holds a word of it at every byte
		from += p + 1
	}
	return best
}

// candidate is an item that matches.
type candidate struct {
	b    *block
	i    int
	name []byte // folded
}

func (s *search) entry(c candidate) Entry {
	it := &c.b.items[c.i]
	e := Entry{Kind: s.spaces[it.space].kind, ID: it.id}
	e.Name.Namespace, e.Name.Name = s.spaces[it.space].namespace, c.b.original(c.i)
	return e
}

// compare orders candidates of one Match.
func (s *search) compare(c, d candidate) int {
	if o := cmp.Or(cmp.Compare(len(c.name), len(d.name)), bytes.Compare(c.name, d.name)); o != 0 {
		return o
	}
	e, f := s.entry(c), s.entry(d)
	return cmp.Or(cmp.Compare(e.Name.Name, f.Name.Name), cmp.Compare(e.Name.Namespace, f.Name.Namespace),
		cmp.Compare(e.Kind, f.Kind), bytes.Compare(e.ID[:], f.ID[:]))
}
