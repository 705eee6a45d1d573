package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/graphd/graphd/internal/jsontree"
)

// easy is the part of a schema's assertions that can be seen to hold without
// asking the library: most schemas ask for a type and for members, and most
// values obey. It only ever accepts; the library judges and words the rest.
// Asking it about each string of an event cost more than all else that is done
// to an event.
type easy struct {
	// known says that the schema asserts nothing but what is below.
	known    bool
	anyType  bool
	kinds    [jsontree.Object + 1]bool
	uri      bool // a string must be a URI
	required []string
}

// easyOf reads the assertions of a schema in its strict form.
func easyOf(s *jsonschema.Schema) easy {
	e := easy{known: true, anyType: len(s.Types) == 0, uri: s.Format == "uri", required: s.Required}
	for _, t := range s.Types {
		switch t {
		case "null":
			e.kinds[jsontree.Null] = true
		case "boolean":
			e.kinds[jsontree.Bool] = true
		case "number":
			e.kinds[jsontree.Number] = true
		case "string":
			e.kinds[jsontree.String] = true
		case "array":
			e.kinds[jsontree.Array] = true
		case "object":
			e.kinds[jsontree.Object] = true
		}
	}
	rest := *s
	rest.Types, rest.Required = nil, nil
	if e.uri {
		rest.Format = ""
	}
	e.known = assertsNothing(&rest)
	return e
}

// assertsNothing reports whether s, whose children were taken off, has no
// assertion that supported lets pass.
func assertsNothing(s *jsonschema.Schema) bool {
	return s.Types == nil && s.Required == nil && s.Format == "" && s.Not == nil && len(s.DependentRequired) == 0 &&
		s.Constant == nil && s.Enum == nil && s.Pattern == nil && s.MinLength < 0 && s.MaxLength < 0 &&
		s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil &&
		s.ContentEncoding == "" && s.ContentMediaType == "" && len(s.Extensions) == 0 && len(s.Dependencies) == 0
}

// accepts reports whether v is certain to obey. False says nothing.
func (e *easy) accepts(v *jsontree.Value) bool {
	if !e.known || !e.anyType && !e.kinds[v.Kind] {
		return false
	}
	switch v.Kind {
	case jsontree.String:
		return !e.uri || plainURL(v.Text)
	case jsontree.Object:
		return !slices.ContainsFunc(e.required, func(key string) bool { return v.Get(key) == nil })
	}
	return true
}
