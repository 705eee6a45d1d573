package normalize

import (
	"bytes"
	"slices"

	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

// project appends the canonical JSON of the part of v that belongs to the
// classes of mask, and reports whether anything was left of it. What is null or
// empty counts as absent and is pruned from the bottom up; an element of an
// array that loses everything is left out, only a null keeps its place there;
// sets are sorted and rid of repetitions by their canonical bytes.
//
// n is the place of v (nil: no rule at or below it), class the class that v
// has unless n says otherwise.
func project(dst []byte, v *jsontree.Value, n *node, class, mask Class) ([]byte, bool) {
	class = n.classOr(class)
	if class&mask == 0 && (n == nil || n.below&mask == 0) {
		return dst, false
	}
	switch v.Kind {
	case jsontree.Null:
		return dst, false
	case jsontree.Object:
		return projectObject(dst, v, n, class, mask)
	case jsontree.Array:
		return projectArray(dst, v, n, class, mask)
	}
	if class&mask == 0 {
		return dst, false
	}
	return jsontree.AppendCanonical(dst, v), true
}

func projectObject(dst []byte, v *jsontree.Value, n *node, class, mask Class) ([]byte, bool) {
	start := len(dst)
	dst = append(dst, '{')
	for i := range v.Items {
		item := &v.Items[i]
		before := len(dst)
		if before > start+1 {
			dst = append(dst, ',')
		}
		dst = jsontree.AppendString(dst, item.Key)
		dst = append(dst, ':')
		value, kept := &item.Value, false
		place := n.member(item.Key)
		if slices.Contains(instantMembers, item.Key) {
			value = instantValue(value)
		} else if place != nil && place.strip {
			value = strippedValue(value)
		}
		if dst, kept = project(dst, value, place, class, mask); !kept {
			dst = dst[:before]
		}
	}
	if len(dst) == start+1 && !keepsEmpty(n, class, mask) {
		return dst[:start], false
	}
	return append(dst, '}'), true
}

func keepsEmpty(n *node, class, mask Class) bool { return n != nil && n.keepEmpty && class&mask != 0 }

func projectArray(dst []byte, v *jsontree.Value, n *node, class, mask Class) ([]byte, bool) {
	start := len(dst)
	dst = append(dst, '[')
	set := n != nil && n.set
	var bounds []int // of a set's elements: start and end of each
	for i := range v.Items {
		elem := &v.Items[i].Value
		before := len(dst)
		if before > start+1 {
			dst = append(dst, ',')
		}
		from, kept := len(dst), false
		place := elementPlace(n, elem)
		if elem.Kind == jsontree.Null {
			if kept = place.classOr(class)&mask != 0; kept {
				dst = append(dst, "null"...)
			}
		} else {
			dst, kept = project(dst, elem, place, class, mask)
		}
		switch {
		case !kept:
			dst = dst[:before]
		case set:
			bounds = append(bounds, from, len(dst))
		}
	}
	if len(bounds) > 2 {
		dst = sortSet(dst, start, bounds)
	}
	if len(dst) == start+1 && !keepsEmpty(n, class, mask) {
		return dst[:start], false
	}
	return append(dst, ']'), true
}

func elementPlace(n *node, elem *jsontree.Value) *node {
	if n == nil {
		return nil
	}
	for i := len(n.selected) - 1; i >= 0; i-- {
		s := &n.selected[i]
		if text, ok := elem.Get(s.member).Str(); ok && text == s.value {
			return s.node
		}
	}
	return n.elem
}

// sortSet rewrites the array that begins at start, whose elements lie between
// bounds, sorted by bytes and without repetitions.
func sortSet(dst []byte, start int, bounds []int) []byte {
	elems := make([][]byte, 0, len(bounds)/2)
	sorted := true
	for i := 0; i < len(bounds); i += 2 {
		e := dst[bounds[i]:bounds[i+1]]
		sorted = sorted && (i == 0 || bytes.Compare(elems[len(elems)-1], e) < 0)
		elems = append(elems, e)
	}
	if sorted {
		return dst
	}
	slices.SortFunc(elems, bytes.Compare)
	elems = slices.CompactFunc(elems, bytes.Equal)
	joined := bytes.Join(elems, []byte{','})
	return append(dst[:start+1], joined...)
}

// nominalStart is the member whose time fills a slot.
const nominalStart = "nominalStartTime"

// instantValue returns v with its time in canonical spelling, or v itself if it
// is no time.
func instantValue(v *jsontree.Value) *jsontree.Value {
	text, ok := v.Str()
	if !ok {
		return v
	}
	t, err := openlineage.ParseTime(text)
	if err != nil {
		return v
	}
	utc := jsontree.NewString(t.String())
	return &utc
}

// strippedValue returns v without credentials, if it is a connection URI.
func strippedValue(v *jsontree.Value) *jsontree.Value {
	if v.Kind != jsontree.String {
		return v
	}
	stripped := jsontree.NewString(stripCredentials(v.Text))
	return &stripped
}
