package jsontree

import (
	"slices"
	"sort"
	"strconv"
)

// Get gives the member with the given key, which must be in NFC as the tree's
// own keys are, or nil if v is nil, is no object or has no such member.
func (v *Value) Get(key string) *Value {
	if v == nil || v.Kind != Object {
		return nil
	}
	items := v.Items
	if len(items) <= 16 {
		for i := range items {
			if items[i].Key == key {
				return &items[i].Value
			}
		}
		return nil
	}
	i := sort.Search(len(items), func(i int) bool { return CompareKeys(items[i].Key, key) >= 0 })
	if i < len(items) && items[i].Key == key {
		return &items[i].Value
	}
	return nil
}

// At follows keys from v, as repeated calls of Get do: nil if one is absent, v
// itself if there are none.
func (v *Value) At(keys ...string) *Value {
	for _, k := range keys {
		v = v.Get(k)
	}
	return v
}

// Str gives the text of a string; false if v is nil or no string.
func (v *Value) Str() (string, bool) {
	if v == nil || v.Kind != String {
		return "", false
	}
	return v.Text, true
}

// StrOr gives the text of a string, or def if v is nil or no string.
func (v *Value) StrOr(def string) string {
	if s, ok := v.Str(); ok {
		return s
	}
	return def
}

// IsNull says whether v is absent (nil) or null.
func (v *Value) IsNull() bool { return v == nil || v.Kind == Null }

// Len is the number of elements of an array or of members of an object, and 0
// for anything else.
func (v *Value) Len() int {
	if v == nil {
		return 0
	}
	return len(v.Items)
}

// NewString makes a string. Its text must be valid UTF-8 in NFC (or WTF-8 for
// lone surrogates): it is taken as it is.
func NewString(s string) Value { return Value{Kind: String, Text: s} }

// NewNumber makes a number of its canonical spelling, as CanonicalNumber gives
// it: it is taken as it is.
func NewNumber(canonical string) Value { return Value{Kind: Number, Text: canonical} }

// NewInt makes a number.
func NewInt(n int64) Value { return Value{Kind: Number, Text: strconv.FormatInt(n, 10)} }

// NewBool makes a boolean.
func NewBool(b bool) Value { return Value{Kind: Bool, Bool: b} }

// NewArray makes an array of vals, in their order.
func NewArray(vals ...Value) Value {
	v := Value{Kind: Array}
	if len(vals) > 0 {
		v.Items = make([]Item, len(vals))
		for i := range vals {
			v.Items[i].Value = vals[i]
		}
	}
	return v
}

// NewObject makes an object of items, which it copies and sorts by key. Two
// equal keys are a mistake of the program: it panics.
func NewObject(items ...Item) Value {
	v := Value{Kind: Object}
	if len(items) > 0 {
		v.Items = slices.Clone(items)
		slices.SortFunc(v.Items, func(a, b Item) int { return CompareKeys(a.Key, b.Key) })
		for i := 1; i < len(v.Items); i++ {
			if v.Items[i].Key == v.Items[i-1].Key {
				panic("jsontree: NewObject with duplicate key " + strconv.Quote(v.Items[i].Key))
			}
		}
	}
	return v
}
