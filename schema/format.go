package schema

import (
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// isURI is the library's check of format "uri", with a path for the plain
// http(s) URLs that every facet carries twice; url.Parse of them took a tenth
// of the time of a validation. What is not plain goes to the library, so the
// answer is the same for every string.
func isURI(v any) bool {
	if s, ok := v.(string); ok && plainURL(s) {
		return true
	}
	return jsonschema.Formats["uri"](v)
}

// plainURL reports whether s is http:// or https://, a host of letters,
// digits, dots and hyphens, and then only characters that mean themselves in
// a path, a query or a fragment. url.Parse accepts all of these.
func plainURL(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		if rest, ok = strings.CutPrefix(s, "http://"); !ok {
			return false
		}
	}
	host := true
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.':
		case c == '/' && i > 0:
			host = false
		case !host && (c == '_' || c == '$' || c == '#' || c == '~' || c == '+' || c == '=' || c == '?' || c == '&'):
		default:
			return false
		}
	}
	return rest != ""
}
