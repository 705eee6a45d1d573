package normalize

import (
	"fmt"

	"github.com/graphd/graphd/internal/openlineage"
)

// places are the places of an event while rules are put on them.
type places struct {
	root   *node
	facets map[openlineage.Container]*node
}

// compile builds the tree of an event's places out of the tables and of class
// rules.
func compile(classes []ClassRule) (*node, error) {
	p := newPlaces()
	for _, r := range classes {
		n, err := p.at(r.Container, r.Facet, r.Path)
		if err != nil {
			return nil, fmt.Errorf("class rule %s %s %s: %w", r.Container, r.Facet, r.Path, err)
		}
		n.class = r.Class
	}
	for _, table := range []struct {
		rules []FieldRule
		mark  func(*node)
	}{
		{setTable, func(n *node) { n.set = true }},
		{keptEmpty, func(n *node) { n.keepEmpty = true }},
		{credentialTable, func(n *node) { n.strip = true }},
	} {
		for _, r := range table.rules {
			n, err := p.at(r.Container, r.Facet, r.Path)
			if err != nil {
				return nil, fmt.Errorf("rule %s %s %s: %w", r.Container, r.Facet, r.Path, err)
			}
			table.mark(n)
		}
	}
	p.root.settle()
	p.root.sum()
	return p.root, nil
}

// newPlaces returns an event's places without rules. A dataset's facets are one
// place, wherever the dataset stands.
func newPlaces() places {
	p := places{root: &node{}, facets: map[openlineage.Container]*node{run: {}, job: {}, dataset: {}, input: {}, output: {}}}
	for _, list := range []string{"inputs", "outputs"} {
		p.root.child(list).elements().put("facets", p.facets[dataset])
	}
	p.root.child("inputs").elements().put("inputFacets", p.facets[input])
	p.root.child("outputs").elements().put("outputFacets", p.facets[output])
	p.root.child("dataset").put("facets", p.facets[dataset])
	p.root.child("run").put("facets", p.facets[run])
	p.root.child("job").put("facets", p.facets[job])
	return p
}

// at returns the place that a rule speaks of, made if need be.
func (p places) at(c openlineage.Container, facet, path string) (*node, error) {
	if c == EventRoot {
		if facet != "" {
			return nil, fmt.Errorf("container event has no facets, got %q", facet)
		}
		return p.root.walk(path)
	}
	n := p.facets[c]
	if n == nil {
		return nil, fmt.Errorf("no container %q: want event, run, job, dataset, input or output", c)
	}
	if facet == "" {
		return nil, fmt.Errorf("a rule for container %q names no facet", c)
	}
	if err := checkName(facet); err != nil {
		return nil, err
	}
	return n.child(facet).walk(path)
}
