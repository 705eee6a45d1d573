package namesearch

import "slices"

// top keeps the best candidates of one Match.
type top struct {
	limit int
	list  []candidate
	// compare is the search's; sorted says how many in front are in order.
	compare func(c, d candidate) int
	sorted  int
}

func (t *top) add(c candidate, s *search) {
	if t.compare == nil {
		t.compare = s.compare
	}
	if t.sorted == t.limit && t.compare(c, t.list[t.limit-1]) > 0 {
		return
	}
	if t.list = append(t.list, c); len(t.list) >= 2*t.limit {
		t.best()
	}
}

// best returns at most limit of the candidates, best first.
func (t *top) best() []candidate {
	if t.sorted != len(t.list) {
		slices.SortFunc(t.list, t.compare)
		clear(t.list[min(len(t.list), t.limit):])
		t.list = t.list[:min(len(t.list), t.limit)]
		t.sorted = len(t.list)
	}
	return t.list
}

// count returns how many of the best are of a length class or a shorter one.
func (t *top) count(class int) (n int) {
	for _, c := range t.best() {
		if lengthClass(len(c.name)) <= class {
			n++
		}
	}
	return n
}
