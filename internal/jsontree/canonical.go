package jsontree

import (
	"strconv"
	"unicode/utf8"
)

// AppendCanonical appends the canonical JSON of v (RFC 8785, with the numbers
// and the lone surrogates of docs/identity.md) and gives the extended slice. A
// nil v is null.
func AppendCanonical(dst []byte, v *Value) []byte {
	if v == nil {
		return append(dst, "null"...)
	}
	switch v.Kind {
	case Bool:
		return strconv.AppendBool(dst, v.Bool)
	case Number:
		return append(dst, v.Text...)
	case String:
		return AppendString(dst, v.Text)
	case Array:
		dst = append(dst, '[')
		for i := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendCanonical(dst, &v.Items[i].Value)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i := range v.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendString(dst, v.Items[i].Key)
			dst = append(dst, ':')
			dst = AppendCanonical(dst, &v.Items[i].Value)
		}
		return append(dst, '}')
	default:
		return append(dst, "null"...)
	}
}

// AppendString appends s as a canonical JSON string (RFC 8785): only quotes,
// backslashes and control characters are escaped. A lone surrogate in WTF-8 is
// written as its \udxxx escape, in lower case; any other invalid byte as
// U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := plainEnd(s, 0); i < len(s); i = plainEnd(s, i) {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n != 1 {
				i += n
				continue
			}
		}
		dst = append(dst, s[from:i]...)
		n := 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\r':
			dst = append(dst, `\r`...)
		default:
			if c < 0x20 {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
			} else if r, ok := surrogateAt(s, i); ok {
				dst = append(dst, '\\', 'u', 'd', hex[r>>8&0xf], hex[r>>4&0xf], hex[r&0xf])
				n = 3
			} else {
				dst = utf8.AppendRune(dst, utf8.RuneError)
			}
		}
		i += n
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// MarshalJSON gives the canonical JSON of v, so that a tree can stand in what
// encoding/json writes (which may escape some characters of it again). It is
// on the value, not on the pointer, so that encoding/json finds it in fields
// and maps that hold a Value too.
func (v Value) MarshalJSON() ([]byte, error) {
	return AppendCanonical(nil, &v), nil
}
