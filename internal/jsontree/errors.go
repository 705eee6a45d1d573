package jsontree

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// SyntaxError says why a text was not read, and where.
type SyntaxError struct {
	// Offset is the byte offset of the offending byte in the input, or the
	// input's length where the text ended too early.
	Offset int
	// Pointer is the JSON pointer (RFC 6901) of the value that was being
	// read: of the member or element itself, or of its container where the
	// fault lies between two of them or in a key. "" is the whole document.
	Pointer string
	// Reason is the fault in words, without the place.
	Reason string
}

// errorPointerMax bounds the part of a pointer that Error repeats: keys come
// from the sender, and a message must not carry a megabyte of them into a log.
const errorPointerMax = 200

// Error gives the reason, the JSON pointer (shortened in its middle if it is
// very long) and the byte offset.
func (e *SyntaxError) Error() string {
	p := e.Pointer
	if len(p) > errorPointerMax {
		p = p[:errorPointerMax/2] + "..." + p[len(p)-errorPointerMax/2:]
	}
	return fmt.Sprintf("%s at %q (byte %d)", e.Reason, p, e.Offset)
}

// describe names the byte at s[i] for a message.
func describe(s string, i int) string {
	if i >= len(s) {
		return "end of input"
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError && n <= 1 || !strconv.IsPrint(r) {
		return fmt.Sprintf("byte 0x%02x", s[i])
	}
	return "character " + strconv.QuoteRune(r)
}
