package schema

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/graphd/graphd/internal/jsontree"
)

// Bounds on what of the event is repeated, in bytes.
const (
	maxEcho    = 100
	maxPointer = 1000
)

// explain turns an error of the library about v itself, which stands at
// pointer, into violations.
func explain(err error, v *jsontree.Value, pointer string) []Violation {
	var list []string
	if ve, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		list = appendReasons(nil, ve, v)
	} else {
		list = []string{clip(err.Error())}
	}
	out := make([]Violation, len(list))
	for i, reason := range list {
		out[i] = Violation{Pointer: pointer, Offset: offset(v), Reason: reason}
	}
	return out
}

// appendReasons words the leaves of e; what is above them says only that
// something below failed.
func appendReasons(dst []string, e *jsonschema.ValidationError, v *jsontree.Value) []string {
	if len(e.Causes) == 0 {
		return append(dst, reasons(e, v)...)
	}
	for _, cause := range e.Causes {
		dst = appendReasons(dst, cause, v)
	}
	return dst
}

// token writes a key for a pointer, shortened.
func token(key string) string { return jsontree.EscapePointer(clip(key)) }

// short bounds a pointer; one that is cut no longer resolves.
func short(pointer string) string {
	if len(pointer) <= maxPointer {
		return pointer
	}
	return cut(pointer, maxPointer) + "…"
}

// reasons words one failure of v. Of the library's texts it keeps what is made
// of the schema alone.
func reasons(leaf *jsonschema.ValidationError, v *jsontree.Value) []string {
	path := strings.Split(leaf.KeywordLocation, "/")
	keyword := path[len(path)-1]
	if len(path) > 2 && path[len(path)-3] == "dependentRequired" {
		keyword = "dependentRequired"
	}
	switch keyword {
	case "type":
		expected, _, _ := strings.Cut(leaf.Message, ", but got ")
		return []string{expected + ", got " + describe(v)}
	case "required":
		names := quoted(leaf.Message)
		for i, name := range names {
			names[i] = "missing property " + strconv.Quote(name)
		}
		return names
	case "dependentRequired":
		if names := quoted(leaf.Message); len(names) == 2 {
			return []string{"missing property " + strconv.Quote(names[0]) + ", required beside " + strconv.Quote(names[1])}
		}
	case "enum", "const":
		return []string{leaf.Message + ", got " + describe(v)}
	case "minimum":
		expected, _, _ := strings.Cut(leaf.Message, " but found ")
		return []string{expected + ", got " + describe(v)}
	case "format":
		name := leaf.Message[strings.LastIndex(leaf.Message, " ")+1:]
		return []string{"not a valid " + strings.Trim(name, "'") + ": " + describe(v)}
	}
	return []string{clip(leaf.Message)}
}

// quoted returns the 'single-quoted' names in a message of the library; they
// are names of the schema, none of which has a quote in it.
func quoted(message string) []string {
	var names []string
	for i, part := range strings.Split(message, "'") {
		if i%2 == 1 {
			names = append(names, part)
		}
	}
	return names
}

// describe names a value: scalars themselves, the rest by type.
func describe(v *jsontree.Value) string {
	if v == nil {
		return "nothing"
	}
	switch v.Kind {
	case jsontree.Bool:
		return strconv.FormatBool(v.Bool)
	case jsontree.Number:
		return "number " + clip(v.Text)
	case jsontree.String:
		return "string " + echo(v.Text)
	case jsontree.Array:
		return "array"
	case jsontree.Object:
		return "object"
	}
	return "null"
}

// echo quotes text of the event, shortened and without control characters.
func echo(s string) string { return strconv.Quote(clip(s)) }

// clip shortens text of the event and makes it valid UTF-8: a lone surrogate
// is kept in the tree as bytes that are not.
func clip(s string) string {
	if len(s) > maxEcho {
		s = cut(s, maxEcho) + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// cut returns at most n bytes of s, not ending inside a character.
func cut(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func offset(v *jsontree.Value) int {
	if v == nil {
		return 0
	}
	return int(v.Off)
}

// tidy sorts by place in the document, drops repetitions and keeps the first
// limit.
func tidy(list []Violation, limit int) []Violation {
	slices.SortFunc(list, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Reason, b.Reason))
	})
	list = slices.Compact(list)
	return list[:min(len(list), limit)]
}
