package normalize_test

import (
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/normalize"
)

func rule(class normalize.Class, facet, path string) normalize.ClassRule {
	return normalize.ClassRule{Container: "run", Facet: facet, Path: path, Class: class}
}

// Where an operator's rules put a field: the outcome of a change of its value.
func TestOperatorsRules(t *testing.T) {
	const nested = "run.facets.acme_job.a.b"
	transport, drifting, identity := normalize.Transport, normalize.Drifting, normalize.Identity
	for _, c := range []struct {
		name  string
		rules []normalize.ClassRule
		path  string
		want  fact.Outcome
	}{
		{"no rule", nil, nested, fact.New},
		{"a whole facet", []normalize.ClassRule{rule(transport, "acme_job", "")}, nested, fact.Equivalent},
		{"a field", []normalize.ClassRule{rule(drifting, "acme_job", "a.b")}, nested, fact.Redescribed},
		{"a field beside it", []normalize.ClassRule{rule(drifting, "acme_job", "a.c")}, nested, fact.New},
		{"any field below", []normalize.ClassRule{rule(transport, "acme_job", "a.*")}, nested, fact.Equivalent},
		{"facets by the beginning of their key", []normalize.ClassRule{rule(transport, "acme_*", "")}, nested, fact.Equivalent},
		{"every facet", []normalize.ClassRule{rule(transport, "*", "")}, nested, fact.Equivalent},
		{"elements of an array", []normalize.ClassRule{rule(transport, "acme_job", "list[].x")}, "run.facets.acme_job.list.[].x", fact.Equivalent},
		{"elements as a whole", []normalize.ClassRule{rule(transport, "acme_job", "list[]")}, "run.facets.acme_job.list.[]", fact.Equivalent},
		{"a field outside facets", []normalize.ClassRule{{Container: normalize.EventRoot, Path: "acme.x", Class: transport}}, "acme.x", fact.Equivalent},
		{"a facet named from the root", []normalize.ClassRule{{Container: normalize.EventRoot, Path: "run.facets.acme_job", Class: transport}}, nested, fact.Equivalent},

		{"over the class table", []normalize.ClassRule{rule(identity, "errorMessage", "")}, "run.facets.errorMessage.message", fact.New},
		{"over a pattern of the class table", []normalize.ClassRule{rule(identity, "spark_*", "")}, "run.facets.spark_x.y", fact.New},
		{"a facet out of a pattern", []normalize.ClassRule{rule(identity, "spark_x", "")}, "run.facets.spark_x.y", fact.New},
		{"facets out of a shorter pattern", []normalize.ClassRule{rule(identity, "spark_x*", "")}, "run.facets.spark_xy.z", fact.New},
		{"a field of a facet leaves the pattern to the others", []normalize.ClassRule{rule(identity, "spark_x", "y")}, "run.facets.spark_x.other", fact.Equivalent},
		{"a field of every facet, also of those with rules", []normalize.ClassRule{rule(transport, "*", "secret")}, "run.facets.airflow.secret", fact.Equivalent},
		{"a field of every facet, also of those that a pattern names", []normalize.ClassRule{rule(transport, "*", "a.b"), rule(drifting, "acme_*", "x")}, nested, fact.Equivalent},
		{"a field that a shorter pattern names", []normalize.ClassRule{rule(transport, "acme_*", "a.b"), rule(drifting, "acme_j*", "x")}, nested, fact.Equivalent},
		{"fields by a pattern, of a facet with rules", []normalize.ClassRule{rule(transport, "*", "a*"), rule(drifting, "acme_job", "x")}, nested, fact.Equivalent},
		{"a name before a pattern", []normalize.ClassRule{rule(identity, "acme_job", "a"), rule(transport, "acme_*", "a")}, nested, fact.New},
		{"a longer pattern before a shorter one", []normalize.ClassRule{rule(identity, "acme_j*", ""), rule(transport, "acme_*", "")}, nested, fact.New},
		{"a later rule for the same place", []normalize.ClassRule{rule(transport, "acme_job", ""), rule(identity, "acme_job", "")}, nested, fact.New},
		{"an inner rule stays under a later outer one", []normalize.ClassRule{rule(identity, "acme_job", "a.b"), rule(transport, "acme_job", "")}, nested, fact.New},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := normalizer(t, c.rules...)
			first, second := with(t, runEvent, c.path, `"one"`), with(t, runEvent, c.path, `"other"`)
			if got := outcomeOf(factOf(t, n, first), factOf(t, n, second)); got != c.want {
				t.Errorf("is %s, want %s\n%s", got, c.want, document(t, n, first))
			}
		})
	}
}

func TestRulesForElementsThatAMemberSelects(t *testing.T) {
	tag := func(key, value string) string { return `{"key": "` + key + `", "of": "all", "value": "` + value + `"}` }
	const tags = "run.facets.tags.tags"
	for _, c := range []struct {
		name  string
		rules []normalize.ClassRule
		key   string
		want  fact.Outcome
	}{
		{"the selected one", []normalize.ClassRule{rule(normalize.Transport, "tags", "tags[key=build]")}, "build", fact.Equivalent},
		{"another one", []normalize.ClassRule{rule(normalize.Transport, "tags", "tags[key=build]")}, "env", fact.New},
		{"the class table's own, overruled", []normalize.ClassRule{rule(normalize.Identity, "tags", "tags[key=openlineage_client_version]")}, "openlineage_client_version", fact.New},
		{"one with two rules", []normalize.ClassRule{
			rule(normalize.Transport, "tags", "tags[key=env].value"), rule(normalize.Drifting, "tags", "tags[key=env].other")}, "env", fact.Equivalent},
		{"one that two rules select: the later counts", []normalize.ClassRule{
			rule(normalize.Identity, "tags", "tags[key=env]"), rule(normalize.Transport, "tags", "tags[of=all]")}, "env", fact.Equivalent},
		{"one that a rule for all elements reaches too", []normalize.ClassRule{
			rule(normalize.Transport, "tags", "tags[].value"), rule(normalize.Drifting, "tags", "tags[key=env].other")}, "env", fact.Equivalent},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := normalizer(t, c.rules...)
			first, second := with(t, runEvent, tags, `[`+tag(c.key, "1")+`]`), with(t, runEvent, tags, `[`+tag(c.key, "2")+`]`)
			if got := outcomeOf(factOf(t, n, first), factOf(t, n, second)); got != c.want {
				t.Errorf("is %s, want %s", got, c.want)
			}
		})
	}
}

// A null has the class of its place, as everything has.
func TestNullsInAnArrayOfTransportElementsAreNoIdentity(t *testing.T) {
	n := normalizer(t, rule(normalize.Transport, "acme", "list[]"))
	first, second := with(t, runEvent, facet+".list", `[1, null]`), with(t, runEvent, facet+".list", `[1]`)
	if got := outcomeOf(factOf(t, n, first), factOf(t, n, second)); got != fact.Equivalent {
		t.Errorf("is %s", got)
	}
}

// A rule for a named field leaves what a pattern says of arrays there in force.
func TestSetsAndEmptiesStayWhereRulesNameAField(t *testing.T) {
	named := func(facet string) *normalize.Normalizer {
		r := rule(normalize.Transport, facet, "fields.total.acme")
		r.Container = "dataset"
		return normalizer(t, r)
	}
	const columns, lineage = "outputs.[].facets.columnLineage.fields.total.inputFields", "outputs.[].facets.lineage.fields.total"
	n := named("columnLineage")
	first, second := with(t, runEvent, columns, `[{"name": "a"}, {"name": "b"}]`), with(t, runEvent, columns, `[{"name": "b"}, {"name": "a"}]`)
	if got := outcomeOf(factOf(t, n, first), factOf(t, n, second)); got != fact.Equivalent {
		t.Errorf("in another order: %s", got)
	}
	n = named("lineage")
	first, second = with(t, runEvent, lineage, `{"inputs": []}`), with(t, runEvent, lineage, `{}`)
	if got := outcomeOf(factOf(t, n, first), factOf(t, n, second)); got != fact.New {
		t.Errorf("without an empty inputs: %s", got)
	}
}

func TestRulesOfSomeProducersOnly(t *testing.T) {
	of := func(producer, path string) normalize.ClassRule {
		r := rule(normalize.Transport, "acme", path)
		r.Producer = producer
		return r
	}
	n := normalizer(t, of("https://acme.example/*/loader", "x"), of("https://other.example/*", "y"), of("https://third.example/*a*a", "x"))
	for _, c := range []struct {
		producer string
		x, y     fact.Outcome // of a change
	}{
		{"https://acme.example/1.2/loader", fact.Equivalent, fact.New},
		{"https://acme.example//loader", fact.Equivalent, fact.New},
		{"https://acme.example/1.2/loader/x", fact.New, fact.New},
		{"https://acme.example/loader", fact.New, fact.New},
		{"https://other.example/1", fact.New, fact.Equivalent},
		{"https://third.example/a", fact.New, fact.New},
		{"https://third.example/a-a", fact.Equivalent, fact.New},
		{"https://fourth.example/1", fact.New, fact.New},
	} {
		first := with(t, runEvent, "producer", `"`+c.producer+`"`, facet, `{"x": 1, "y": 1}`)
		for range 2 { // compiled, then remembered
			if got := outcomeOf(factOf(t, n, first), factOf(t, n, with(t, first, facet+".x", `2`))); got != c.x {
				t.Errorf("%s: another x is %s, want %s", c.producer, got, c.x)
			}
			if got := outcomeOf(factOf(t, n, first), factOf(t, n, with(t, first, facet+".y", `2`))); got != c.y {
				t.Errorf("%s: another y is %s, want %s", c.producer, got, c.y)
			}
		}
	}
}

// Rules are part of the identity version: two eras can be told apart.
func TestRulesAndSchemasMakeTheVersion(t *testing.T) {
	versions := map[string]bool{}
	add := func(n *normalize.Normalizer) {
		v := n.Version()
		if versions[v] || !strings.HasPrefix(v, normalize.ContractVersion+".") {
			t.Errorf("version %s", v)
		}
		versions[v] = true
	}
	add(normalizer(t))
	add(normalizer(t, rule(normalize.Transport, "acme", "x")))
	add(normalizer(t, rule(normalize.Drifting, "acme", "x")))
	n, err := normalize.New(normalize.Options{SchemaDigest: "others"})
	if err != nil {
		t.Fatal(err)
	}
	add(n)
	if e := factOf(t, n, runEvent); e.Version != n.Version() {
		t.Errorf("event of version %s", e.Version)
	}
	// Name rules are none of it.
	names, err := normalize.New(normalize.Options{SchemaDigest: "others", Names: normalize.DefaultNameRules()})
	if err != nil || names.Version() != n.Version() || names.NameRules().Digest() == n.NameRules().Digest() {
		t.Errorf("version %s with name rules, %s without, %v", names.Version(), n.Version(), err)
	}
}

func TestRulesThatCannotBeRead(t *testing.T) {
	for want, r := range map[string]normalize.ClassRule{
		"no such class":          {Container: "run", Facet: "f"},
		`no container "runs"`:    {Container: "runs", Facet: "f", Class: normalize.Transport},
		"names no facet":         {Container: "run", Path: "a", Class: normalize.Transport},
		"event has no facets":    {Container: normalize.EventRoot, Facet: "f", Path: "a", Class: normalize.Transport},
		"no closing bracket":     rule(normalize.Transport, "f", "a[key=x"),
		"selects no element":     rule(normalize.Transport, "f", "a[key]"),
		"begins with an empty":   rule(normalize.Transport, "f", "a..b"),
		"no continuation":        rule(normalize.Transport, "f", "a[]b"),
		`"." is no continuation`: rule(normalize.Transport, "f", "a."),
		"has a * inside":         rule(normalize.Transport, "f", "a.b*c"),
		`"*f" has a * inside`:    rule(normalize.Transport, "*f", ""),
		"class rule run f a.b*c": rule(normalize.Transport, "f", "a.b*c"),
		`"[" has no closing`:     {Producer: "p*", Container: "run", Facet: "f", Path: "[", Class: normalize.Transport},
	} {
		_, err := normalize.New(normalize.Options{Rules: []normalize.ClassRule{r}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
	many := make([]normalize.ClassRule, 65)
	for i := range many {
		many[i] = normalize.ClassRule{Producer: "p", Container: "run", Facet: "f", Class: normalize.Transport}
	}
	if _, err := normalize.New(normalize.Options{Rules: many}); err == nil || !strings.Contains(err.Error(), "at most 64") {
		t.Errorf("65 rules of producers: %v", err)
	}
}

func TestClassesHaveNames(t *testing.T) {
	for _, c := range []normalize.Class{normalize.Identity, normalize.Drifting, normalize.Fixed, normalize.Transport} {
		text, _ := c.MarshalText()
		var back normalize.Class
		if err := back.UnmarshalText(text); err != nil || back != c {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
	if err := new(normalize.Class).UnmarshalText([]byte("identical")); err == nil {
		t.Error("a class that is none was read")
	}
}
