package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/graphd/graphd/internal/httpapi"
)

// serveProfiles serves Go's profiles on an address of their own, for whoever wants
// to know where time and memory go. The function that it returns ends that.
func (a *app) serveProfiles(ctx context.Context, address string) (end func() error, err error) {
	ln, err := httpapi.Listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("--profile-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(ln) }() // until end closes it
	fmt.Fprintf(a.stdout, "profiles http://%s\n", ln.Addr())
	return server.Close, nil
}
