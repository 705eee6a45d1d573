package jsontree

// Any gives the tree as encoding/json would decode it into an any, which is
// what JSON Schema validators take: map[string]any, []any, string, bool, nil,
// and a float64 for every number, the nearest one. A number beyond the range of
// doubles becomes the greatest one of its sign. Lone surrogates stay WTF-8.
func (v *Value) Any() any {
	if v == nil {
		return nil
	}
	switch v.Kind {
	case Bool:
		return v.Bool
	case Number:
		return boxFloat(toFloat(v.Text))
	case String:
		return v.Text
	case Array:
		a := make([]any, len(v.Items))
		for i := range v.Items {
			a[i] = v.Items[i].Value.Any()
		}
		return a
	case Object:
		m := make(map[string]any, len(v.Items))
		for i := range v.Items {
			m[v.Items[i].Key] = v.Items[i].Value.Any()
		}
		return m
	default:
		return nil
	}
}

// smallFloats are boxed once: counts, ordinals and line numbers are most of
// the numbers in events, and each box would be an allocation.
var smallFloats = func() (boxes [256]any) {
	for i := range boxes {
		boxes[i] = float64(i)
	}
	return boxes
}()

func boxFloat(f float64) any {
	if f >= 0 && f < float64(len(smallFloats)) {
		if i := int(f); float64(i) == f {
			return smallFloats[i]
		}
	}
	return f
}
