package main

import (
	"slices"
	"strconv"

	"github.com/graphd/graphd/internal/jsontree"
)

// difference is a place at which two documents differ. A side that has nothing
// there is "".
type difference struct {
	pointer string
	a, b    string // canonical JSON
}

// differ compares two documents. Their sets are sorted, so that indexes count in
// the canonical order.
func differ(a, b *jsontree.Value) (out []difference) {
	compare("", a, b, &out)
	return out
}

func canonical(v *jsontree.Value) string { return string(jsontree.AppendCanonical(nil, v)) }

func compare(pointer string, a, b *jsontree.Value, out *[]difference) {
	switch {
	case a == nil && b == nil:
	case a == nil:
		*out = append(*out, difference{pointer, "", canonical(b)})
	case b == nil:
		*out = append(*out, difference{pointer, canonical(a), ""})
	case a.Kind == jsontree.Object && b.Kind == jsontree.Object:
		for _, key := range keysOf(a, b) {
			compare(pointer+"/"+jsontree.EscapePointer(key), a.Get(key), b.Get(key), out)
		}
	case a.Kind == jsontree.Array && b.Kind == jsontree.Array:
		compareArrays(pointer, a, b, out)
	default:
		if x, y := canonical(a), canonical(b); x != y {
			*out = append(*out, difference{pointer, x, y})
		}
	}
}

// keysOf are the keys of two objects, each once, in the order of keys.
func keysOf(a, b *jsontree.Value) (keys []string) {
	for _, o := range []*jsontree.Value{a, b} {
		for i := range o.Items {
			keys = append(keys, o.Items[i].Key)
		}
	}
	slices.SortFunc(keys, jsontree.CompareKeys)
	return slices.Compact(keys)
}

// element is one of an array's, with its index.
type element struct {
	index int
	value *jsontree.Value
}

// compareArrays sets aside what both arrays have, and compares what is left in
// its order: one element more in a list must not make all behind it differ.
func compareArrays(pointer string, a, b *jsontree.Value, out *[]difference) {
	left, right := without(a, b), without(b, a)
	if len(left) == 0 && len(right) == 0 {
		if x, y := canonical(a), canonical(b); x != y { // the same elements in another order
			*out = append(*out, difference{pointer, x, y})
		}
		return
	}
	for i := range max(len(left), len(right)) {
		switch {
		case i >= len(left):
			*out = append(*out, difference{pointer + "/" + strconv.Itoa(right[i].index), "", canonical(right[i].value)})
		case i >= len(right):
			*out = append(*out, difference{pointer + "/" + strconv.Itoa(left[i].index), canonical(left[i].value), ""})
		default:
			compare(pointer+"/"+strconv.Itoa(left[i].index), left[i].value, right[i].value, out)
		}
	}
}

// without returns the elements of a that b does not have, each as often as a has
// more of it.
func without(a, b *jsontree.Value) (rest []element) {
	count := map[string]int{}
	for i := range b.Items {
		count[canonical(&b.Items[i].Value)]++
	}
	for i := range a.Items {
		v := &a.Items[i].Value
		if text := canonical(v); count[text] > 0 {
			count[text]--
		} else {
			rest = append(rest, element{i, v})
		}
	}
	return rest
}
