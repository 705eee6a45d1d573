package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/openlineage"
)

// tree writes the lineage of a dataset, indented: under each dataset the jobs
// that made it, under each of them what they read. A dataset is spread out
// once.
type tree struct {
	out    *bufio.Writer
	groups map[openlineage.Name][]openlineage.Name // datasets that are one
	next   map[openlineage.Name][]step             // by the first name of the group
	shown  map[openlineage.Name]bool
}

// step leads from a dataset through a job to the next one.
type step struct {
	job, dataset openlineage.Name
	basis        lineage.Basis
}

func (s step) compare(t step) int {
	if c := s.job.Compare(t.job); c != 0 {
		return c
	}
	if c := s.dataset.Compare(t.dataset); c != 0 {
		return c
	}
	return strings.Compare(string(s.basis), string(t.basis))
}

// writeTree writes the lineage of the dataset that f names.
func writeTree(w io.Writer, g *lineage.Graph, names normalize.NameRules, f foldFlags) error {
	root, err := findDataset(g, names, f)
	if err != nil {
		return err
	}
	t := &tree{out: bufio.NewWriter(w), groups: groupsOf(g), next: map[openlineage.Name][]step{}, shown: map[openlineage.Name]bool{}}
	for e := range g.CurrentEdges() {
		from, to := t.first(e.Output), t.first(e.Input)
		if f.direction == string(lineage.Down) {
			from, to = to, from
		}
		t.next[from] = append(t.next[from], step{e.Job, to, e.Basis})
	}
	root = t.first(root)
	fmt.Fprintln(t.out, t.title(root))
	if len(t.next[root]) == 0 {
		fmt.Fprintf(t.out, "(nothing is %s of it)\n", f.direction)
	}
	t.spread(root, "")
	return t.out.Flush()
}

// findDataset finds the dataset of a name, by the name of the entity or as a
// producer sends it.
func findDataset(g *lineage.Graph, names normalize.NameRules, f foldFlags) (openlineage.Name, error) {
	want := norm.NFC.String(f.name)
	namespace := norm.NFC.String(f.namespace)
	var found, like []openlineage.Name
	for _, n := range g.Datasets {
		entity, _, _ := names.Entity(openlineage.Name{Namespace: n.Namespace, Name: want})
		switch {
		case namespace != "" && n.Namespace != namespace:
		case n.Name == want, n.Name == entity.Name:
			found = append(found, n)
		case strings.Contains(strings.ToLower(n.Name), strings.ToLower(want)):
			like = append(like, n)
		}
	}
	slices.SortFunc(found, openlineage.Name.Compare)
	slices.SortFunc(like, openlineage.Name.Compare)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return found[0], fmt.Errorf("%d datasets are named %s: say which with --namespace%s", len(found), printable(f.name), listed(found))
	case len(like) > 0:
		return openlineage.Name{}, fmt.Errorf("no dataset is named %s; these hold it in their names:%s", printable(f.name), listed(like))
	}
	return openlineage.Name{}, fmt.Errorf("no dataset is named %s, of the %d that these events name", printable(f.name), len(g.Datasets))
}

// listed writes names below each other, the first ones.
func listed(names []openlineage.Name) string {
	const most = 10
	var b strings.Builder
	for i, n := range names {
		if i == most {
			fmt.Fprintf(&b, "\n  and %d more", len(names)-most)
			break
		}
		b.WriteString("\n  " + nameText(n))
	}
	return b.String()
}

func nameText(n openlineage.Name) string {
	return printable(n.Name) + "  (" + printable(n.Namespace) + ")"
}

// groupsOf gathers the datasets that links make one, sorted, under each of them.
func groupsOf(g *lineage.Graph) map[openlineage.Name][]openlineage.Name {
	linked := map[fact.ID][]fact.ID{}
	for l := range g.Links {
		linked[l[0]] = append(linked[l[0]], l[1])
		linked[l[1]] = append(linked[l[1]], l[0])
	}
	groups := map[openlineage.Name][]openlineage.Name{}
	seen := map[fact.ID]bool{}
	for id := range linked {
		if seen[id] {
			continue
		}
		seen[id] = true
		members := []fact.ID{id}
		for i := 0; i < len(members); i++ {
			for _, other := range linked[members[i]] {
				if !seen[other] {
					seen[other] = true
					members = append(members, other)
				}
			}
		}
		names := make([]openlineage.Name, len(members))
		for i, m := range members {
			names[i] = g.Datasets[m]
		}
		slices.SortFunc(names, openlineage.Name.Compare)
		for _, n := range names {
			groups[n] = names
		}
	}
	return groups
}

// first is the name that a dataset goes by among those that are one with it.
func (t *tree) first(n openlineage.Name) openlineage.Name {
	if group := t.groups[n]; len(group) > 0 {
		return group[0]
	}
	return n
}

func (t *tree) title(n openlineage.Name) string {
	text := nameText(n)
	for _, other := range t.groups[n] {
		if other != n {
			text += "  = " + nameText(other)
		}
	}
	return text
}

// spread writes what is behind a dataset, whose own line is written.
func (t *tree) spread(n openlineage.Name, indent string) {
	t.shown[n] = true
	steps := t.next[n]
	slices.SortFunc(steps, step.compare)
	steps = slices.Compact(steps)
	for i := 0; i < len(steps); {
		end := i
		for end < len(steps) && steps[end].job == steps[i].job {
			end++
		}
		branch, below := "├─ ", "│  "
		if end == len(steps) {
			branch, below = "└─ ", "   "
		}
		by := "declared by a dataset event"
		if job := steps[i].job; job != (openlineage.Name{}) {
			by = "job " + nameText(job)
		}
		fmt.Fprintln(t.out, indent+branch+by)
		for ; i < end; i++ {
			t.dataset(steps[i], indent+below, i == end-1)
		}
	}
}

func (t *tree) dataset(s step, indent string, last bool) {
	branch, below := "├─ ", "│  "
	if last {
		branch, below = "└─ ", "   "
	}
	note := ""
	if s.basis != lineage.ByJob {
		note = "  [" + string(s.basis) + "]"
	}
	again := t.shown[s.dataset] && len(t.next[s.dataset]) > 0
	if again {
		note += "  (see above)"
	}
	fmt.Fprintln(t.out, indent+branch+t.title(s.dataset)+note)
	if !again {
		t.spread(s.dataset, indent+below)
	}
}
