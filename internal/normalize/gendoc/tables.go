package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/openlineage"
)

// The markers around a generated part of docs/identity.md.
const (
	beginMarker = "<!-- generated: %s -->\n"
	endMarker   = "<!-- end -->"
)

// parts are the generated parts, by the name in their marker.
var parts = map[string]func() string{
	"class table":   classTable,
	"set table":     func() string { return fieldTable(normalize.SetTable()) },
	"kept empty":    func() string { return fieldTable(normalize.KeptEmpty()) },
	"credentials":   credentials,
	"place rules":   placeRules,
	"path schemes":  func() string { return codeList(normalize.DefaultNameRules().PathSchemes) + "\n" },
	"warning codes": warningCodes,
}

// fill returns a document with every generated part written anew. A part that
// the document lacks, or a marker that names none, is an error: nothing goes
// missing unseen.
func fill(document []byte) ([]byte, error) {
	text := string(document)
	for name, generate := range parts {
		before, rest, found := strings.Cut(text, fmt.Sprintf(beginMarker, name))
		_, after, closed := strings.Cut(rest, endMarker)
		if !found || !closed {
			return nil, fmt.Errorf("want a part between %q and %q", strings.TrimSpace(fmt.Sprintf(beginMarker, name)), endMarker)
		}
		text = before + fmt.Sprintf(beginMarker, name) + "\n" + generate() + "\n" + endMarker + after
	}
	prefix, _, _ := strings.Cut(beginMarker, "%s")
	if n := strings.Count(text, prefix); n != len(parts) {
		return nil, fmt.Errorf("%d generated parts, want %d", n, len(parts))
	}
	return []byte(text), nil
}

// where names containers as a reader knows them from an event.
var where = map[openlineage.Container]string{
	normalize.EventRoot:       "the event itself",
	openlineage.RunFacets:     "`run.facets`",
	openlineage.JobFacets:     "`job.facets`",
	openlineage.DatasetFacets: "`facets` of a dataset",
	openlineage.InputFacets:   "`inputFacets`",
	openlineage.OutputFacets:  "`outputFacets`",
}

// classTable writes the class table, one row for neighbouring rules that differ
// in their path or facet only.
func classTable() string {
	rules := normalize.ClassTable()
	var b strings.Builder
	b.WriteString("| class | where | facet | field |\n| --- | --- | --- | --- |\n")
	for len(rules) > 0 {
		first := rules[0]
		whole := first.Path == ""
		same := func(r normalize.ClassRule) bool {
			return r.Class == first.Class && r.Container == first.Container &&
				(whole && r.Path == "" || !whole && r.Facet == first.Facet && r.Path != "")
		}
		n := 0
		for n < len(rules) && same(rules[n]) {
			n++
		}
		facets, paths := []string{first.Facet}, []string(nil)
		for _, r := range rules[:n] {
			if whole && r.Facet != first.Facet {
				facets = append(facets, r.Facet)
			} else if !whole {
				paths = append(paths, r.Path)
			}
		}
		facet, field := codeList(facets), "all of it"
		if first.Facet == "" {
			facet = ""
		}
		if !whole {
			field = codeList(paths)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", first.Class, where[first.Container], facet, field)
		rules = rules[n:]
	}
	return b.String()
}

func fieldTable(rules []normalize.FieldRule) string {
	var b strings.Builder
	b.WriteString("| where | facet | field |\n| --- | --- | --- |\n")
	for len(rules) > 0 {
		first, paths := rules[0], []string(nil)
		for len(rules) > 0 && rules[0].Container == first.Container && rules[0].Facet == first.Facet {
			paths = append(paths, rules[0].Path)
			rules = rules[1:]
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", where[first.Container], code(first.Facet), fields(paths))
	}
	return b.String()
}

// fields lists paths, of which "" is the facet itself.
func fields(paths []string) string {
	i := slices.Index(paths, "")
	if i < 0 {
		return codeList(paths)
	}
	rest := slices.Delete(slices.Clone(paths), i, i+1)
	if len(rest) == 0 {
		return "the facet itself"
	}
	return "the facet itself, " + codeList(rest)
}

func credentials() string {
	return fieldTable(normalize.CredentialTable()) + "\nParameters removed: " + codeList(normalize.CredentialParameters()) + ".\n"
}

func placeRules() string {
	var b strings.Builder
	b.WriteString("| rule | producer, or | `jobType.integration` | jobs that it places | told apart by |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range normalize.PlaceRules() {
		jobs, apart := "all", "their name"
		if r.Except != "" {
			jobs = "all but " + code(r.Except)
		}
		if r.Numbered != "" {
			jobs = "the parent's name, then " + code(r.Numbered) + ", then a number"
		}
		if r.BySQL {
			apart = "their name and the digest of their SQL"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Name, code(r.Producer), code(r.Integration), jobs, apart)
	}
	return b.String()
}

func warningCodes() string {
	var b strings.Builder
	b.WriteString("| code | meaning |\n| --- | --- |\n")
	for _, w := range normalize.WarningCodes() {
		fmt.Fprintf(&b, "| %s | %s |\n", code(w.Code), w.Meaning)
	}
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func codeList(list []string) string {
	coded := make([]string, len(list))
	for i, s := range list {
		coded[i] = code(s)
	}
	return strings.Join(coded, ", ")
}
