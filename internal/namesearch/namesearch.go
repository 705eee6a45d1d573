// Package namesearch finds datasets and jobs by what their names contain. It
// keeps every name in memory; a store fills it while it already serves.
//
// # What matches
//
// A query is some words with space between them. An entity matches when each
// word stands somewhere in its name or in its namespace, whatever the case
// (Unicode simple folding; a byte that is no UTF-8 equals every other such
// byte). Hits come in the order of Match, the best that any word or the whole
// text reaches; then the shorter name in bytes, as folded; then the folded
// name, the name, the namespace, the kind and the ID bytewise. So the order of
// Adds shows in nothing, except when the bound below cuts a search short.
//
// Of a name, namespace or word longer than 1024 bytes, the first and the last
// 512 bytes are compared and the middle is not. Entries are returned whole.
//
// # How it is kept
//
// Names of like length are put into blocks of 64, folded, end to end. A full
// block is sealed: it never changes again, and its number is appended to a list
// for each gram that it contains: the trigrams of its names and namespaces, the
// first letters of its names and segments, and hashes of whole names and last
// segments. Lists are hashed into a table of fixed size, so what they say is
// "perhaps", and a block is looked through to know. Lists of blocks are half as
// large as the names, where lists of names would be as large as these.
//
// # The bound
//
// A search reads at most 32 MiB of folded names: half a million names of 60 bytes
// in blocks that may match. A block counts once for each word and is read at most
// once; blocks that are not sealed, of which there are few, do not count. Blocks
// are read best first: those that may hold hits of the best Match before others,
// and among them shorter names before longer ones, until there are Limit hits
// that nothing unread can beat. Where the bound cuts that short, the best of what
// was found is returned, and all that can be missing are hits of the Match and
// length (in steps of 4 bytes) that were being looked for, and what ranks after.
package namesearch

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

// Entry is one entity.
type Entry struct {
	Kind fact.EntityKind
	ID   fact.ID
	Name openlineage.Name
}

// Index holds entries and finds them. Its methods may be called at once from
// any number of goroutines; a Search holds up Adds only while it reads which
// blocks may match, not while it looks through them.
type Index struct {
	seed maphash.Seed

	mu sync.RWMutex
	// spaces are the pairs of kind and namespace that entries have.
	spaces  []space
	spaceOf map[spaceKey]uint32
	// blocks are in the order of creation. open holds the one block of each length
	// class that takes names, or nil; sealed is in the order of sealing, which is
	// the number that postings have, and bySize the same by length class.
	blocks []*block
	open   [lengthClasses]*block
	sealed []*block
	bySize [lengthClasses][]uint32
	posts  postings
	known  entrySet
}

type spaceKey struct {
	kind      fact.EntityKind
	namespace string
}

// space is a kind and a namespace; folded is what words are looked for in.
type space struct {
	spaceKey
	folded []byte
}

// New returns an empty index.
func New() *Index {
	return &Index{seed: maphash.MakeSeed(), spaceOf: map[spaceKey]uint32{}}
}

// Len returns how many entries there are.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.known.n
}

// Add adds e, which every Search that begins later finds. An entry of the same
// Kind and ID as one before is ignored, for an ID is the key of its name. Nothing
// of e is retained.
func (x *Index) Add(e Entry) {
	folded := searchText(e.Name.Name)
	form := formOf(e.Name.Name, folded)
	hash := maphash.Bytes(x.seed, e.ID[:])

	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known.has(hash, func(ref uint32) bool { return x.is(ref, &e) }) {
		return
	}
	class := lengthClass(len(folded))
	b := x.open[class]
	if b == nil {
		b = &block{number: uint32(len(x.blocks)), items: make([]item, 0, blockItems)}
		x.open[class] = b
		x.blocks = append(x.blocks, b)
	}
	x.known.add(hash, b.number<<blockBits|uint32(len(b.items)), func(ref uint32) uint64 {
		return maphash.Bytes(x.seed, x.item(ref).id[:])
	})
	b.add(e.ID, x.space(e.Kind, e.Name.Namespace), folded, form)
	if b.full() {
		x.seal(class)
	}
}

func (x *Index) item(ref uint32) *item {
	return &x.blocks[ref>>blockBits].items[ref%blockItems]
}

func (x *Index) is(ref uint32, e *Entry) bool {
	it := x.item(ref)
	return it.id == e.ID && x.spaces[it.space].kind == e.Kind
}

func (x *Index) space(kind fact.EntityKind, namespace string) uint32 {
	key := spaceKey{kind, namespace}
	n, ok := x.spaceOf[key]
	if !ok {
		n = uint32(len(x.spaces))
		key = spaceKey{fact.EntityKind(strings.Clone(string(kind))), strings.Clone(namespace)}
		x.spaces = append(x.spaces, space{key, []byte(searchText(key.namespace))})
		x.spaceOf[key] = n
	}
	return n
}

// seal closes the open block of a length class and adds it to the postings.
func (x *Index) seal(class int) {
	b := x.open[class]
	b.clip()
	n := uint32(len(x.sealed))
	add := func(g gram) { x.posts.add(g, n) }
	for i := range b.items {
		name := b.name(i)
		trigrams(nameGram, name, add)
		add(x.hashGram(wholeGram, name))
		add(x.hashGram(lastGram, name[lastSegment(name):]))
		prefixes(startGram, name, add)
		for p := range segments(name) {
			prefixes(segmentGram, name[p:], add)
		}
		if !b.seenSpace(i) {
			s := &x.spaces[b.items[i].space]
			trigrams(spaceGram, s.folded, add)
			add(x.hashGram(namespaceGram, []byte(s.namespace)))
			add(x.hashGram(kindGram, []byte(s.kind)))
		}
	}
	x.sealed = append(x.sealed, b)
	x.bySize[class] = append(x.bySize[class], n)
	x.open[class] = nil
}

func (x *Index) hashGram(kind gramKind, text []byte) gram {
	return gram{kind, uint32(maphash.Bytes(x.seed, text))}
}
