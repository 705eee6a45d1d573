package namesearch

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/graphd/graphd/internal/fact"
)

const (
	blockBits = 6
	// blockItems is how many names fill a block: the bits of a word.
	blockItems = 1 << blockBits
	// blockBytes fills a block of longer names.
	blockBytes = 32 << 10
)

// block is names of like length. Until it is sealed, Add appends to its slices
// and changes nothing in them, so a copy of a block is a snapshot of it.
type block struct {
	number uint32
	// text is the folded names, each with a separator behind it.
	text  []byte
	items []item
	// forms tell names from their folding, for those that differ.
	forms []byte
}

type item struct {
	id    fact.ID
	space uint32
	// end is the end of the folded name in text; form is one more than the offset
	// in forms, or 0 for a name that is its own folding.
	end, form uint32
}

func (b *block) add(id fact.ID, space uint32, folded string, form []byte) {
	it := item{id: id, space: space}
	if form != nil {
		it.form = uint32(len(b.forms)) + 1
		b.forms = append(b.forms, form...)
	}
	b.text = append(b.text, folded...)
	it.end = uint32(len(b.text))
	b.text = append(b.text, separator)
	b.items = append(b.items, it)
}

func (b *block) full() bool {
	return len(b.items) == blockItems || len(b.text)+len(b.forms) >= blockBytes
}

// clip gives back the room that growth left.
func (b *block) clip() {
	b.text, b.items, b.forms = bytes.Clone(b.text), slices.Clone(b.items), bytes.Clone(b.forms)
}

func (b *block) start(i int) int {
	if i == 0 {
		return 0
	}
	return int(b.items[i-1].end) + 1
}

// name returns the folded name of an item.
func (b *block) name(i int) []byte { return b.text[b.start(i):b.items[i].end] }

// seenSpace reports whether an item before i has the same space.
func (b *block) seenSpace(i int) bool {
	return slices.ContainsFunc(b.items[:i], func(it item) bool { return it.space == b.items[i].space })
}

// The first byte of a form.
const (
	// capitals: a bit for each byte of the folded name, set for a capital.
	capitals = iota
	// whole: the length as uvarint, and the name.
	whole
)

// formOf returns what makes name of its folding, nil if that is the same.
func formOf(name, folded string) []byte {
	if name == folded {
		return nil
	}
	if len(name) > 2*edge || strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return append(binary.AppendUvarint([]byte{whole}, uint64(len(name))), name...)
	}
	form := append([]byte{capitals}, make([]byte, (len(name)+7)/8)...)
	for i := range len(name) {
		if name[i] != folded[i] {
			form[1+i/8] |= 1 << (i % 8)
		}
	}
	return form
}

// original returns the name of an item as it was added.
func (b *block) original(i int) string {
	at := b.items[i].form
	if at == 0 {
		return string(b.name(i))
	}
	form := b.forms[at:]
	if b.forms[at-1] == whole {
		n, used := binary.Uvarint(form)
		return string(form[used : used+int(n)])
	}
	name := bytes.Clone(b.name(i))
	for j := range name {
		if form[j/8]>>(j%8)&1 != 0 {
			name[j] -= 'a' - 'A'
		}
	}
	return string(name)
}

// containing returns the set of items whose folded names contain word.
func (b *block) containing(word []byte) (set uint64) {
	for i, from := 0, 0; from < len(b.text); i++ {
		p := bytes.Index(b.text[from:], word)
		if p < 0 {
			break
		}
		for int(b.items[i].end) < from+p {
			i++
		}
		set |= 1 << i
		from = int(b.items[i].end) + 1
	}
	return set
}

// Length classes put names into blocks by length: steps of 4 bytes, with those
// that are longer than most in a few.
const (
	classWidth    = 4
	fineClasses   = 64
	lengthClasses = fineClasses + 2
)

func lengthClass(n int) int {
	switch {
	case n < classWidth*fineClasses:
		return n / classWidth
	case n < edge:
		return fineClasses
	}
	return fineClasses + 1
}
