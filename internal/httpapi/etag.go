package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

const jsonType = "application/json"

// write answers with JSON.
func write(c echo.Context, status int, v any) error {
	text, err := Encode(v)
	if err != nil {
		return err
	}
	return c.Blob(status, jsonType, text)
}

// writeRead answers a read with JSON that a client may keep and ask whether it
// still holds.
func writeRead(c echo.Context, v any) error {
	text, err := Encode(v)
	if err != nil {
		return err
	}
	return writeTagged(c, jsonType, text)
}

func writeTagged(c echo.Context, contentType string, text []byte) error {
	sum := sha256.Sum256(text)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	h := c.Response().Header()
	h.Set("Etag", tag)
	h.Set("Cache-Control", "private, no-cache")
	if matches(c.Request().Header.Values("If-None-Match"), tag) {
		return c.NoContent(http.StatusNotModified)
	}
	return c.Blob(http.StatusOK, contentType, text)
}

// matches reports whether an If-None-Match names a tag, weakly (RFC 9110,
// 13.1.2).
func matches(fields []string, tag string) bool {
	for _, field := range fields {
		for _, t := range strings.Split(field, ",") {
			t = strings.TrimSpace(t)
			if t == "*" || strings.TrimPrefix(t, "W/") == tag {
				return true
			}
		}
	}
	return false
}
