package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/graphd/graphd/internal/jsontree"
)

// node is one schema, taken apart: what it says of a value itself, which the
// library judges, and the schemas it applies to the value's children and to
// the value again, which check walks.
//
// The library could walk too, but not on input from strangers. It reports
// every failure it meets, however many, and words two paths for each in time
// that is quadratic in the depth of the place: 7 KB of deeply nested schema
// facet took it 2.5 seconds and 4.6 GB of allocations. The walk stops when
// enough is known, reports in the order of the document, and is no slower.
type node struct {
	// The schema's own assertions. The strict form asserts formats, too.
	strict, loose *jsonschema.Schema
	// presence lists the members that those look for in an object.
	presence []string
	// easy is what a value needs for the library to accept it for certain.
	easy easy

	members map[string]*node // properties
	others  *node            // additionalProperties, a schema
	closed  bool             // additionalProperties: false
	items   *node

	inPlace             []*node // $ref, allOf
	condition           *node   // if
	whenTrue, whenFalse *node   // then, else; nil for none
}

// child is the node for the member key, or nil.
func (n *node) child(key string) *node {
	if c := n.members[key]; c != nil {
		return c
	}
	return n.others
}

// builder makes nodes of pairs of compiled schemas, each once: schemas can be
// recursive.
type builder map[*jsonschema.Schema]*node

// node builds the node of one schema in its two compiled forms. It refuses the
// keywords that check does not walk.
func (b builder) node(strict, loose *jsonschema.Schema) (*node, error) {
	if loose == nil {
		return nil, nil
	}
	if n := b[loose]; n != nil {
		return n, nil
	}
	if err := supported(loose); err != nil {
		return nil, err
	}
	n := &node{strict: assertions(strict), loose: assertions(loose), presence: presence(loose)}
	n.easy = easyOf(n.strict)
	b[loose] = n

	var failed error
	sub := func(strict, loose *jsonschema.Schema) *node {
		c, err := b.node(strict, loose)
		if failed == nil {
			failed = err
		}
		return c
	}
	for key := range loose.Properties {
		if n.members == nil {
			n.members = map[string]*node{}
		}
		n.members[key] = sub(strict.Properties[key], loose.Properties[key])
	}
	switch others := loose.AdditionalProperties.(type) {
	case *jsonschema.Schema:
		n.others = sub(strict.AdditionalProperties.(*jsonschema.Schema), others)
	case bool:
		n.closed = !others
	}
	n.items = sub(strict.Items2020, loose.Items2020)
	if loose.Ref != nil {
		n.inPlace = append(n.inPlace, sub(strict.Ref, loose.Ref))
	}
	for i := range loose.AllOf {
		n.inPlace = append(n.inPlace, sub(strict.AllOf[i], loose.AllOf[i]))
	}
	// A format must not decide which branch is taken, so the condition is
	// loose in both forms.
	n.condition = sub(loose.If, loose.If)
	n.whenTrue = sub(strict.Then, loose.Then)
	n.whenFalse = sub(strict.Else, loose.Else)
	return n, failed
}

// assertions is s without the schemas it applies to anything.
func assertions(s *jsonschema.Schema) *jsonschema.Schema {
	c := *s
	c.Properties, c.AdditionalProperties, c.Items2020 = nil, nil, nil
	c.Ref, c.AllOf, c.If, c.Then, c.Else = nil, nil, nil, nil, nil
	return &c
}

// presence lists the members whose presence s asserts something about.
func presence(s *jsonschema.Schema) []string {
	list := slices.Clone(s.Required)
	if s.Not != nil {
		list = append(list, s.Not.Required...)
	}
	for key, others := range s.DependentRequired {
		list = append(append(list, key), others...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// supported refuses what node would lose or assertions would judge without
// the children it needs. A new keyword in a schema file fails New here.
func supported(s *jsonschema.Schema) error {
	if s.Not != nil && (s.Not.Properties != nil || s.Not.Ref != nil || s.Not.AllOf != nil || s.Not.Format != "") ||
		s.AnyOf != nil || s.OneOf != nil || s.DynamicRef != nil || s.Always != nil ||
		s.PropertyNames != nil || s.PatternProperties != nil || s.DependentSchemas != nil ||
		s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil ||
		s.PrefixItems != nil || s.Contains != nil || s.UniqueItems ||
		s.MinItems >= 0 || s.MaxItems >= 0 || s.MinProperties >= 0 || s.MaxProperties >= 0 {
		return fmt.Errorf("%s uses a keyword that the validator does not support", s.Location)
	}
	for _, v := range append(slices.Clone(s.Constant), s.Enum...) {
		switch v.(type) {
		case map[string]any, []any:
			return fmt.Errorf("%s compares with an object or an array, which the validator does not support", s.Location)
		}
	}
	return nil
}

// place is where a value stands. Its pointer is written only when something is
// to be said about it.
type place struct {
	parent *place
	key    string
	index  int // of an element; -1: key is the name of a member
}

// below is the place of the member key of the object at p.
func below(p *place, key string) *place { return &place{parent: p, key: key, index: -1} }

func (p *place) pointer() string { return short(string(p.appendPointer(nil))) }

func (p *place) appendPointer(dst []byte) []byte {
	if p == nil {
		return dst
	}
	dst = append(p.parent.appendPointer(dst), '/')
	if p.index >= 0 {
		return strconv.AppendInt(dst, int64(p.index), 10)
	}
	return append(dst, token(p.key)...)
}

// findings collects what check found: up to about max violations, and as many
// warnings.
type findings struct {
	max        int
	violations []Violation
	warnings   []Violation
}

func (f *findings) full() bool { return len(f.violations) >= f.max }

// check holds v, at p, to n.
func (f *findings) check(n *node, v *jsontree.Value, p *place) {
	if n == nil || f.full() {
		return
	}
	f.judge(n, v, p)
	for _, same := range n.inPlace {
		f.check(same, v, p)
	}
	if n.condition != nil {
		if holds(n.condition, v) {
			f.check(n.whenTrue, v, p)
		} else {
			f.check(n.whenFalse, v, p)
		}
	}
	switch v.Kind {
	case jsontree.Array:
		if n.items == nil {
			return
		}
		for i := range v.Items {
			f.check(n.items, &v.Items[i].Value, &place{parent: p, index: i})
		}
	case jsontree.Object:
		if n.members == nil && n.others == nil && !n.closed {
			return
		}
		for i := range v.Items {
			it := &v.Items[i]
			if c := n.child(it.Key); c != nil {
				f.check(c, &it.Value, below(p, it.Key))
			} else if n.closed && !f.full() {
				f.violations = append(f.violations, Violation{
					Pointer: p.pointer(), Offset: offset(v), Reason: "property " + echo(it.Key) + " not allowed here",
				})
			}
		}
	}
}

// holds reports whether v obeys n.
func holds(n *node, v *jsontree.Value) bool {
	f := findings{max: 1}
	f.check(n, v, nil)
	return !f.full()
}

// judge asks the library about v itself. The strict form comes first: it
// accepts nearly everything that arrives, and then one question is enough.
func (f *findings) judge(n *node, v *jsontree.Value, p *place) {
	if n.easy.accepts(v) {
		return
	}
	doc := n.surface(v)
	strictErr := n.strict.Validate(doc)
	if strictErr == nil {
		return
	}
	if err := n.loose.Validate(doc); err != nil {
		f.violations = append(f.violations, explain(err, v, p.pointer())...)
	} else if len(f.warnings) < f.max {
		f.warnings = append(f.warnings, explain(strictErr, v, p.pointer())...)
	}
}

// surface turns v into a value of the library's without its children: of an
// object the members whose presence is asserted, of an array nothing. A number
// becomes a float64 (Value.Any), since a json.Number such as 1e1000000 the
// library would expand to a million digits.
func (n *node) surface(v *jsontree.Value) any {
	switch v.Kind {
	case jsontree.Array:
		return emptyArray
	case jsontree.Object:
		if len(n.presence) == 0 {
			return emptyObject
		}
		object := make(map[string]any, len(n.presence))
		for _, key := range n.presence {
			if v.Get(key) != nil {
				object[key] = nil
			}
		}
		return object
	}
	return v.Any()
}

// The library only reads what it is given.
var (
	emptyArray  any = []any{}
	emptyObject any = map[string]any{}
)

// body is the definition of a facet without the members that every facet has:
// the core has held them to the same rules before a facet is looked at, and
// would only repeat its warnings.
func body(s *jsonschema.Schema) *jsonschema.Schema {
	c := *s
	c.Properties = maps.Clone(s.Properties)
	c.Required = slices.Clone(s.Required)
	for _, name := range []string{"_producer", "_schemaURL", "_deleted"} {
		delete(c.Properties, name)
		c.Required = slices.DeleteFunc(c.Required, func(r string) bool { return r == name })
	}
	return &c
}
