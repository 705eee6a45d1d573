package httpapi

import (
	"net"
	"strings"

	"github.com/labstack/echo/v4"
)

// guard refuses what comes from a web page of elsewhere, and sets the headers
// that keep a browser from taking an answer for anything else. Without
// authentication a page that the user visits would otherwise be able to read
// and write here, under a name that its owner points at this machine.
func (s *Server) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r := c.Request()
		if !isLocalName(r.Host) {
			return fail("misdirected", []Fault{{Header: "Host", Reason: "it does not name this machine's loopback address"}},
				"graphd answers to localhost, 127.0.0.1 and [::1] only.")
		}
		if err := s.origin.Check(r); err != nil {
			return fail("cross-origin", nil, "Pages of other sites may not send anything here.").because(err)
		}
		return next(c)
	}
}

// isLocalName reports whether a Host header names the loopback address. HTTP/1.0
// may leave it out; a browser does not.
func isLocalName(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return hostport == "" || isLoopback(strings.Trim(host, "[]"))
}

// isLoopback reports whether a host is this machine's own, by its spelling.
func isLoopback(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
