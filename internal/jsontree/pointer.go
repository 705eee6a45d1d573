package jsontree

import "strings"

// EscapePointer writes a key as a token of a JSON pointer (RFC 6901): "~" as
// "~0" and "/" as "~1".
func EscapePointer(token string) string {
	if !strings.ContainsAny(token, "~/") {
		return token
	}
	return pointerEscaper.Replace(token)
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// Lookup gives the value at a JSON pointer (RFC 6901), v itself for "". It
// gives nil if there is none or the pointer is malformed; "-", the place after
// an array's last element, is none.
func (v *Value) Lookup(pointer string) *Value {
	for pointer != "" && v != nil {
		if pointer[0] != '/' {
			return nil
		}
		token := pointer[1:]
		if i := strings.IndexByte(token, '/'); i >= 0 {
			token, pointer = token[:i], token[i:]
		} else {
			pointer = ""
		}
		switch v.Kind {
		case Object:
			key, ok := unescapePointer(token)
			if !ok {
				return nil
			}
			v = v.Get(key)
		case Array:
			i, ok := arrayIndex(token)
			if !ok || i >= len(v.Items) {
				return nil
			}
			v = &v.Items[i].Value
		default:
			return nil
		}
	}
	return v
}

// unescapePointer undoes EscapePointer; false for a "~" that is neither.
func unescapePointer(token string) (string, bool) {
	if strings.IndexByte(token, '~') < 0 {
		return token, true
	}
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		c := token[i]
		if c == '~' {
			i++
			switch {
			case i < len(token) && token[i] == '0':
			case i < len(token) && token[i] == '1':
				c = '/'
			default:
				return "", false
			}
		}
		b.WriteByte(c)
	}
	return b.String(), true
}

// arrayIndex reads an index as RFC 6901 spells it: digits, without a leading
// zero. No array has an index of more than 10 digits (see maxInput).
func arrayIndex(token string) (int, bool) {
	if token == "" || len(token) > 10 || token[0] == '0' && len(token) > 1 {
		return 0, false
	}
	var n int64
	for _, c := range []byte(token) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if n > maxInput {
		return 0, false
	}
	return int(n), true
}
