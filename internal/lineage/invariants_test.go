package lineage

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/graphd/graphd/internal/fact"
)

// Broken returns what is wrong with a graph that Fold made, whatever the events:
// each check is computed from another level than the one that it checks. No
// derivation is without support, nothing is current that only an episode that
// may not speak claims, and what is current is asserted by a selected generation.
func Broken(g *Graph) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	asserted := map[item]bool{}             // by any run or declaration
	byOutput := map[fact.ID]map[item]bool{} // generation and output -> items
	for _, r := range g.Runs {
		for _, a := range r.Word {
			if !speaks(g, &a) {
				complain("run %s asserts an episode of %s that does not assert", r.ID, a.Attempt)
			}
			for output, items := range itemsOf(a.Said) {
				key := fact.HashBytes("", []byte(keyOf(generationKey(r.Job, r.Root), output)))
				if byOutput[key] == nil {
					byOutput[key] = map[item]bool{}
				}
				for _, it := range items {
					asserted[it], byOutput[key][it] = true, true
				}
			}
		}
	}
	for _, d := range g.Declared {
		for _, items := range itemsOf(d.Said) {
			for _, it := range items {
				asserted[it] = true
			}
		}
	}
	known := map[item]bool{}
	note := func(kind itemKind, ids ...fact.ID) {
		for _, id := range ids {
			known[item{kind, id}] = true
		}
	}
	note(derivationItem, slices.Collect(maps.Keys(g.Derivations))...)
	note(mappingItem, slices.Collect(maps.Keys(g.Mappings))...)
	note(dependencyItem, slices.Collect(maps.Keys(g.Dependencies))...)
	note(renameItem, slices.Collect(maps.Keys(g.Renames))...)
	if !maps.Equal(known, asserted) {
		complain("%d derivations, mappings and relations, %d of them asserted or declared", len(known), len(asserted))
	}
	for jo, items := range g.Current {
		sel := g.Selected[jo]
		for _, it := range items {
			supported := slices.Contains(sel.Declared, it)
			for _, gen := range sel.Generations {
				supported = supported || byOutput[fact.HashBytes("", []byte(keyOf(gen, jo.output)))][it]
			}
			if !supported {
				complain("%c %s is current for %s, and no selected generation asserts it", it.kind, it.id, jo.output)
			}
		}
	}
	for jo, sel := range g.Selected {
		for i, gen := range sel.Generations {
			if row := g.Generations[gen]; fact.JobKey(row.Job) != jo.job || i < len(sel.Generations)-1 && !row.Open {
				complain("generation %s hides a closed one, or is of another job", gen)
			}
		}
	}
	return wrong
}

// speaks reports whether the episode of an assertion may speak: it completed,
// or its job is continuous, or its end was lost.
func speaks(g *Graph, a *Assertion) bool {
	row := g.Attempts[a.Attempt]
	return slices.ContainsFunc(row.Episodes, func(e Episode) bool {
		if e.Said != a.Said {
			return false
		}
		parent := g.Attempts[row.Placement.Parent]
		lost := e.State == Running && parent != nil && !parent.Completed.IsZero() && !parent.Completed.Before(e.First)
		return e.State == Complete || e.Continuous || lost
	})
}

// BrokenRows returns what is wrong with the rows that walks read. They are right
// after every settlement, whatever is pending still.
func BrokenRows(st *State, g *Graph) (wrong []string) {
	upstream, downstream, byJob := map[string]int{}, map[string]int{}, map[string]int{}
	for jo, items := range g.Current {
		for _, it := range items {
			if it.kind != derivationItem {
				continue
			}
			d := g.Derivations[it.id]
			if d == nil {
				return append(wrong, fmt.Sprintf("%s is current and not known", it.id))
			}
			byJob[keyOf(fact.JobKey(d.Job), it.id).String()]++
			if jo.output != readsOutput {
				upstream[keyOf(jo.output, it.id).String()]++
			}
			for _, in := range d.Inputs {
				downstream[keyOf(in.ID, it.id).String()] = 1
			}
		}
	}
	same := func(name string, want map[string]int, t Table[int]) {
		got := maps.Collect(t.Scan("", ""))
		if !maps.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s has %d rows, current lineage makes %d", name, len(got), len(want)))
		}
	}
	same("Upstream", upstream, st.Upstream)
	same("Downstream", downstream, st.Downstream)
	same("JobDerivations", byJob, st.JobDerivations)
	degrees := map[string]Degree{}
	for key := range upstream {
		d := degrees[key[:idLen]]
		d.Up++
		degrees[key[:idLen]] = d
	}
	for key := range downstream {
		d := degrees[key[:idLen]]
		d.Down++
		degrees[key[:idLen]] = d
	}
	if got := maps.Collect(st.Degrees.Scan("", "")); !maps.Equal(got, degrees) {
		wrong = append(wrong, fmt.Sprintf("degrees are %v, want %v", got, degrees))
	}
	return wrong
}

// TableRows returns the rows of every table of a State, sorted: all that its facts
// may determine and nothing else does.
func TableRows(st *State) map[string][]string {
	tables := map[string][]string{}
	v := reflect.ValueOf(st).Elem()
	for i := range v.NumField() {
		scan := v.Field(i).MethodByName("Scan")
		if !scan.IsValid() {
			continue // not a table
		}
		var rows []string
		for key, row := range scan.Call([]reflect.Value{reflect.ValueOf(""), reflect.ValueOf("")})[0].Seq2() {
			if holdsPointer(row.Type()) {
				row = reflect.ValueOf("") // it is content-addressed, or in the snapshot
			}
			rows = append(rows, fmt.Sprintf("%x %v", key.String(), row))
		}
		tables[v.Type().Field(i).Name] = rows
	}
	return tables
}

func holdsPointer(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return true
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsPointer(t.Field(i).Type) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		return holdsPointer(t.Elem())
	}
	return false
}
