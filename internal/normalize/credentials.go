package normalize

import (
	"regexp"
	"slices"
	"strings"
)

// stripCredentials removes user information and parameters that are credentials
// from a connection URI or connection string, so that a password is neither
// stored in an entity nor hashed into a digest, and a rotated one is no
// collision. In doubt it removes too much. scripts/identity.py does the same.
func stripCredentials(uri string) string {
	return stripParameters(stripUserInfo(uri))
}

// parameterName is what the name of a parameter is made of. All is ASCII, so
// that programs which see text as bytes and as characters agree.
const parameterName = `[A-Za-z0-9_.%+\-\[\]$"'*!~ ]{1,100}`

var (
	oracleStart    = regexp.MustCompile(`^(?i:(?:jdbc:)?oracle:(?:(?:thin|oci8?|kprb):)?)`)
	jdbcStart      = regexp.MustCompile(`^(?i:jdbc):[^:/@?;#=]+:`)
	containerStart = regexp.MustCompile(`(?:^|[^A-Za-z0-9+.\-])(?i:abfss?|wasbs?)$`)
	hostList       = regexp.MustCompile(`^(?:\[[^\]]*\]|[^:,\[]*)(?::[0-9]*)?(?:,(?:\[[^\]]*\]|[^:,\[]*)(?::[0-9]*)?)*$`)
	queryStart     = regexp.MustCompile(`[?;&#]` + parameterName + `=`)

	// A parameter begins behind a separator, or where the text begins. Behind a
	// slash it is a directory of a partitioned table, but that JDBC (Teradata)
	// has no such directories.
	parameterStart     = regexp.MustCompile(`(^|[?&;#:,( \t\r\n])(` + parameterName + `)=`)
	jdbcParameterStart = regexp.MustCompile(`(^|[?&;#:,( \t\r\n/])(` + parameterName + `)=`)
)

// stripUserInfo removes user information: what stands before the @ of an
// authority, with or without a scheme, and before that of Oracle's own URLs.
func stripUserInfo(uri string) string {
	scheme, _, found := strings.Cut(uri, "://")
	oracle := len(oracleStart.FindString(uri))
	switch {
	case oracle > 0 && !strings.HasPrefix(uri[oracle:], "//"):
		rest := uri[oracle:]
		limit := len(rest)
		if m := queryStart.FindStringIndex(rest); m != nil {
			limit = m[0]
		}
		at := strings.LastIndexByte(rest[:limit], '@')
		if at < 0 {
			at = strings.LastIndexByte(rest, '@')
		}
		uri = uri[:oracle] + rest[max(at, 0):]
	case found && !strings.ContainsAny(scheme, "@/?;#= "):
	case strings.HasPrefix(uri, "//"):
		uri = "//" + uri[2+userInfo(uri[2:], false):]
	default:
		uri = stripBareUserInfo(uri)
	}
	for from := 0; ; {
		i := strings.Index(uri[from:], "://")
		if i < 0 {
			return uri
		}
		scheme, rest := uri[:from+i], uri[from+i+3:]
		from += i + 3
		end := userInfo(rest, false)
		// The container of an Azure file system is no user.
		if containerStart.MatchString(scheme) && !strings.Contains(rest[:end], ":") {
			end = 0
		}
		uri = uri[:from] + rest[end:]
	}
}

// stripBareUserInfo removes user information from text without a scheme, in
// which only user:password@ and user/password@// are known to be such.
func stripBareUserInfo(uri string) string {
	if i := strings.Index(uri, "@//"); i > 0 && strings.Contains(uri[:i], "/") && !strings.ContainsAny(uri[:i], ":=") {
		return uri[i:]
	}
	prefix := jdbcStart.FindString(uri)
	rest := uri[len(prefix):]
	end := userInfo(rest, true)
	user, _, found := strings.Cut(rest[:end], ":")
	if !found || strings.Contains(user, "=") {
		return uri
	}
	return prefix + rest[end:]
}

// userInfo returns the length of the user information that an authority begins
// with. A password may hold any character: the authority reaches behind a
// delimiter if what stands before that can be no host. In bare text a slash ends
// it for certain.
func userInfo(rest string, bare bool) (length int) {
	for {
		seg := rest[length:]
		cut := strings.IndexAny(seg, "/?;#&")
		if cut < 0 {
			cut = len(seg)
		}
		if at := strings.LastIndexByte(seg[:cut], '@'); at >= 0 {
			length += at + 1
			continue
		}
		at := strings.IndexByte(seg, '@')
		if at < 0 || bare && strings.Contains(seg[:at], "/") || isAuthority(seg, cut, length > 0) {
			return length
		}
		length += at + 1
	}
}

// isAuthority reports whether seg[:cut] is all that is left of an authority, of
// which some was user information.
func isAuthority(seg string, cut int, some bool) bool {
	if seg[cut] == '/' && some {
		return true
	}
	if !hostList.MatchString(seg[:cut]) {
		return false
	}
	if seg[cut] == '/' {
		return true
	}
	if m := queryStart.FindStringIndex(seg[cut:]); m != nil && m[0] == 0 {
		return true
	}
	return !some && !strings.Contains(seg[:cut], ":")
}

// stripParameters removes parameters that are credentials. Where the first of a
// list is removed, the next one takes its place.
func stripParameters(uri string) string {
	jdbc := len(uri) >= 5 && strings.EqualFold(uri[:5], "jdbc:")
	pattern := parameterStart
	if jdbc {
		pattern = jdbcParameterStart
	}
	matches := pattern.FindAllStringSubmatchIndex(uri, -1)
	starts := map[int]bool{}
	for _, m := range matches {
		starts[m[0]] = true
	}
	var b strings.Builder
	copied, lead, first := 0, "", false // lead is still to be written, if first
	keep := func(text string) {
		if first && text != "" {
			switch {
			case text == "&" || text == ";" || text == ",":
				return
			case lead == "(" && text[0] == ')':
				text = text[1:]
			case strings.IndexByte("&;, \t\r\n", text[0]) >= 0:
				text = lead + text[1:]
			}
		}
		first = first && text == ""
		b.WriteString(text)
	}
	for _, m := range matches {
		if m[0] < copied || !isCredential(uri[m[4]:m[5]]) {
			continue
		}
		keep(uri[copied:m[0]])
		separator := uri[m[2]:m[3]]
		end := valueEnd(uri, m[1], separator, starts, jdbc, strings.Contains(uri[:m[0]], "("))
		if separator == "(" && end < len(uri) && uri[end] == ')' {
			end++
		} else if !first && (separator == "" || strings.Contains("?:/(", separator)) {
			lead, first = separator, true
		}
		copied = end
	}
	keep(uri[copied:])
	return b.String()
}

// valueEnd returns where a value that begins at from ends. The separator of its
// own list ends it; others do if a parameter follows them. In quotation marks or
// braces it may hold any.
func valueEnd(uri string, from int, separator string, starts map[int]bool, jdbc, bracket bool) int {
	if from < len(uri) {
		if i := strings.IndexByte(`{'"`, uri[from]); i >= 0 {
			from = quotedEnd(uri, from, `}'"`[i])
		}
	}
	always, before := "", "?;#&"
	switch separator {
	case "?", "&", "#":
		always = "&#"
		if jdbc {
			always = "&"
		}
	case ";", ":":
		always, before = ";", "?#"
	case ",", "/":
		always = ","
		if bracket {
			always = ",)"
		}
	case "(":
		always, before = ")", ",?;#&"
	case "":
		always, before = ";", "?&#, \t\r\n"
	default:
		always = " \t\r\n"
	}
	for i := from; i < len(uri); i++ {
		if strings.IndexByte(always, uri[i]) >= 0 || strings.IndexByte(before, uri[i]) >= 0 && starts[i] {
			return i
		}
	}
	return len(uri)
}

// quotedEnd returns where text ends that is quoted from an index on, which is
// there if it never does. A doubled mark stands for itself.
func quotedEnd(uri string, from int, mark byte) int {
	for i := from + 1; i < len(uri); i++ {
		if uri[i] != mark {
			continue
		}
		if i+1 == len(uri) || uri[i+1] != mark {
			return i + 1
		}
		i++
	}
	return from
}

// isCredential reports whether a parameter of that name is one. Of the name only
// letters and digits count.
func isCredential(name string) bool {
	plain := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '%' && i+2 < len(name) {
			high, low := strings.IndexByte(hexDigits, lower(name[i+1])), strings.IndexByte(hexDigits, lower(name[i+2]))
			if high >= 0 && low >= 0 {
				c = byte(high<<4 | low)
				i += 2
			}
		}
		if c = lower(c); c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			plain = append(plain, c)
		}
	}
	return slices.ContainsFunc(credentialParameters, func(pattern string) bool { return matchGlob(pattern, string(plain)) })
}

const hexDigits = "0123456789abcdef"

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
