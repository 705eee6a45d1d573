package normalize

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// node is a place in an event, with the rules that hold there and below. A
// place without a node has no rule of its own: it has its parent's class. Where
// several rules reach one place, that with the more exact last step wins (a name
// before a pattern, a longer pattern before a shorter one), then that with the
// more exact step before it, and so on; of two rules for the very same place the
// later one.
type node struct {
	class     Class // 0: the parent's
	below     Class // the classes given anywhere below
	set       bool  // an array whose order and repetitions say nothing
	keepEmpty bool  // stays although it is empty
	strip     bool  // a connection URI, whose credentials are removed
	members   map[string]*node
	prefixes  []prefixNode // members by the beginning of their key, longest first
	wild      *node        // any other member
	elem      *node        // elements of an array
	selected  []selector   // elements that a member's value selects; the last match counts
}

type prefixNode struct {
	prefix string
	node   *node
}

type selector struct {
	member, value string
	node          *node
}

// member returns the place of a member, nil if no rule reaches it.
func (n *node) member(key string) *node {
	if n == nil {
		return nil
	}
	if m := n.members[key]; m != nil {
		return m
	}
	return n.pattern(key)
}

// classOr returns the class given at n, else that of the place around it.
func (n *node) classOr(around Class) Class {
	if n == nil || n.class == 0 {
		return around
	}
	return n.class
}

// put makes child the place of member key.
func (n *node) put(key string, child *node) {
	if n.members == nil {
		n.members = map[string]*node{}
	}
	n.members[key] = child
}

// child returns the place of a member named by a rule, made if need be.
func (n *node) child(key string) *node {
	if prefix, ok := strings.CutSuffix(key, "*"); ok {
		if prefix == "" {
			if n.wild == nil {
				n.wild = &node{}
			}
			return n.wild
		}
		for i := range n.prefixes {
			if n.prefixes[i].prefix == prefix {
				return n.prefixes[i].node
			}
		}
		n.prefixes = append(n.prefixes, prefixNode{prefix, &node{}})
		return n.prefixes[len(n.prefixes)-1].node
	}
	if n.members[key] == nil {
		n.put(key, &node{})
	}
	return n.members[key]
}

func (n *node) elements() *node {
	if n.elem == nil {
		n.elem = &node{}
	}
	return n.elem
}

// selecting returns the place of the elements whose member has a value.
func (n *node) selecting(member, value string) *node {
	for i := range n.selected {
		if s := &n.selected[i]; s.member == member && s.value == value {
			return s.node
		}
	}
	n.selected = append(n.selected, selector{member, value, &node{}})
	return n.selected[len(n.selected)-1].node
}

// walk follows a rule's path from n.
func (n *node) walk(path string) (_ *node, err error) {
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			inside, after, ok := strings.Cut(rest, "]")
			if !ok {
				return nil, fmt.Errorf("%q has no closing bracket", path)
			}
			if path, err = nextStep(after); err != nil {
				return nil, err
			}
			if inside == "" {
				n = n.elements()
				continue
			}
			member, value, ok := strings.Cut(inside, "=")
			if !ok {
				return nil, fmt.Errorf("%q selects no element: want [member=value]", inside)
			}
			n = n.selecting(member, value)
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end == 0 {
			return nil, fmt.Errorf("%q begins with an empty name", path)
		}
		name := path[:end]
		if err := checkName(name); err != nil {
			return nil, err
		}
		n = n.child(name)
		if path, err = nextStep(path[end:]); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// nextStep returns what follows a step of a path, without the dot between them.
func nextStep(rest string) (string, error) {
	switch {
	case rest == "" || rest[0] == '[':
		return rest, nil
	case rest[0] == '.' && len(rest) > 1:
		return rest[1:], nil
	}
	return "", fmt.Errorf("%q is no continuation of a path: want .name, [] or [member=value]", rest)
}

// checkName refuses a * that is not the last character: no key would ever match
// it, and the rule would do nothing without a word.
func checkName(name string) error {
	if i := strings.IndexByte(name, '*'); i >= 0 && i < len(name)-1 {
		return fmt.Errorf("%q has a * inside: it can only stand for the end of a name", name)
	}
	return nil
}

// settle makes what patterns say hold also for the places that other rules
// name: a rule for one field of a facet must not take the facet out of a
// pattern's reach.
func (n *node) settle() {
	slices.SortFunc(n.prefixes, func(a, b prefixNode) int {
		return cmp.Or(cmp.Compare(len(b.prefix), len(a.prefix)), cmp.Compare(a.prefix, b.prefix))
	})
	for i, p := range n.prefixes {
		for _, shorter := range n.prefixes[i+1:] {
			if strings.HasPrefix(p.prefix, shorter.prefix) {
				p.node.fill(shorter.node)
			}
		}
		p.node.fill(n.wild)
	}
	for key, m := range n.members {
		m.fill(n.pattern(key))
	}
	for i := range n.selected {
		n.selected[i].node.fill(n.elem)
	}
	n.children((*node).settle)
}

// pattern returns the place of the longest pattern that key matches.
func (n *node) pattern(key string) *node {
	for i := range n.prefixes {
		if strings.HasPrefix(key, n.prefixes[i].prefix) {
			return n.prefixes[i].node
		}
	}
	return n.wild
}

// fill takes over what from says where n says nothing.
func (n *node) fill(from *node) {
	if from == nil {
		return
	}
	if n.class == 0 {
		n.class = from.class
	}
	n.set = n.set || from.set
	n.keepEmpty = n.keepEmpty || from.keepEmpty
	n.strip = n.strip || from.strip
	for key, f := range from.members {
		n.child(key).fill(f)
	}
	for _, p := range from.prefixes {
		n.child(p.prefix + "*").fill(p.node)
	}
	if from.wild != nil {
		n.child("*").fill(from.wild)
	}
	if from.elem != nil {
		n.elements().fill(from.elem)
	}
	for _, s := range from.selected {
		n.selecting(s.member, s.value).fill(s.node)
	}
}

// children calls do for every place one step below n.
func (n *node) children(do func(*node)) {
	for _, m := range n.members {
		do(m)
	}
	for _, p := range n.prefixes {
		do(p.node)
	}
	for _, s := range n.selected {
		do(s.node)
	}
	if n.wild != nil {
		do(n.wild)
	}
	if n.elem != nil {
		do(n.elem)
	}
}

// sum notes at each node which classes rules below it give.
func (n *node) sum() Class {
	n.below = 0
	n.children(func(m *node) { n.below |= m.class | m.sum() })
	return n.below
}
