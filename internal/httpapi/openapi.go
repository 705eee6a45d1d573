package httpapi

import (
	_ "embed" // for openapi.yaml
	"html"
	"strings"

	"github.com/labstack/echo/v4"
)

//go:embed openapi.yaml
var openAPI []byte

func (s *Server) getOpenAPI(c echo.Context, _ *query) error {
	return writeTagged(c, "application/yaml", openAPI)
}

// openAPIPath writes a path as OpenAPI does: {id} for :id.
func openAPIPath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, ":"); ok {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

func htmlText(s string) string { return html.EscapeString(s) }
