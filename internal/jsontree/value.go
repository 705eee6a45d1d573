// Package jsontree decodes JSON text into a tree that keeps what identity
// needs and encoding/json loses: exact numbers, lone surrogates, byte offsets,
// and counts of what had to be tolerated (duplicate keys, NaN, Infinity).
//
// Start at Parse. The tree is immutable after Parse; strings alias the input.
// AppendCanonical writes the canonical form (RFC 8785 with the rules of
// docs/identity.md).
package jsontree

// Kind says which JSON type a Value has.
type Kind uint8

// The kinds of a Value. The zero Value is a null.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Value is one node of a parsed document.
//
// Text holds, by kind: for a String the decoded, NFC-normalised text, in which
// a lone surrogate stands as its three-byte WTF-8 encoding (no valid UTF-8
// contains those bytes, so nothing else can be mistaken for it); for a Number
// its canonical spelling (docs/identity.md, Canonical form); else "".
//
// Items holds the elements of an Array, in their order and with an empty Key,
// or the members of an Object, sorted by key in UTF-16 code unit order
// (RFC 8785) with duplicates resolved (the last one in the text wins).
//
// Off and End are byte offsets of the value's first byte and of the byte after
// its last one, in the input of Parse. A Value built in memory has both 0.
type Value struct {
	Kind  Kind
	Bool  bool
	Off   int32
	End   int32
	Text  string
	Items []Item
}

// Item is an element of an array or a member of an object.
type Item struct {
	Key   string
	Value Value
}
