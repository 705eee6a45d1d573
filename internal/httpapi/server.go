// Package httpapi serves graphd over HTTP: intake as OpenLineage clients send
// it, reads for people and programs, and what a machine asks of a service
// (health, metrics, its own description in OpenAPI).
//
// Start at Server and its table of routes (routes.go). Errors are RFC 9457
// problem documents (problem.go). openapi.yaml is the contract; a test holds it
// against the routes and every answer in the tests against it.
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/node"
	"github.com/graphd/graphd/internal/telemetry"
)

// Options are what a Server serves from.
type Options struct {
	Node      *node.Node
	Telemetry *telemetry.Telemetry
	Logger    *slog.Logger
	// Version is the program's.
	Version string
	Limits  Limits
}

// Limits bound what requests may take.
type Limits struct {
	// EventBytes bounds one event, BatchBytes a whole batch, both decompressed;
	// BatchEvents bounds the events of a batch.
	EventBytes, BatchBytes int64
	BatchEvents            int
	// Memory bounds what all request bodies together take, decoded and parsed;
	// a request waits at most MemoryWait for its part.
	Memory     int64
	MemoryWait time.Duration
	// BodyTime and BatchTime are how long a body may take to arrive.
	BodyTime, BatchTime time.Duration
	// IdempotencyKeys is how many keys are remembered.
	IdempotencyKeys int
}

// DefaultLimits are those of a server that nobody configured.
func DefaultLimits() Limits {
	return Limits{
		EventBytes: 25 << 20, BatchBytes: 256 << 20, BatchEvents: 50_000,
		Memory: 512 << 20, MemoryWait: 15 * time.Second,
		BodyTime: time.Minute, BatchTime: 5 * time.Minute,
		IdempotencyKeys: 10_000,
	}
}

// Server answers requests.
type Server struct {
	opt    Options
	limits Limits
	log    *slog.Logger
	echo   *echo.Echo
	budget *budget
	keys   *idempotency
	meter  *meter
	origin *http.CrossOriginProtection
	// draining is set when the server is about to end; then waits ends too, which
	// ends whatever only waits.
	draining atomic.Bool
	waits    context.Context
	endWaits context.CancelFunc
	// snapshot has room for one: whoever writes a snapshot.
	snapshot chan struct{}
}

// New returns a server.
func New(opt Options) (*Server, error) {
	s := &Server{
		opt: opt, limits: opt.Limits, log: opt.Logger, echo: echo.New(),
		budget: newBudget(opt.Limits.Memory, opt.Limits.MemoryWait), origin: http.NewCrossOriginProtection(),
		snapshot: make(chan struct{}, 1),
	}
	s.waits, s.endWaits = context.WithCancel(context.Background())
	var err error
	if s.keys, err = newIdempotency(opt.Limits.IdempotencyKeys); err != nil {
		return nil, err
	}
	if s.meter, err = newMeter(opt.Telemetry); err != nil {
		return nil, err
	}
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.HTTPErrorHandler = s.writeFailure
	s.echo.Pre(s.observe, s.guard)
	s.register()
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// Listen opens the address that graphd serves on. It has no authentication, so
// that anything but this machine's own loopback address is refused.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: want HOST:PORT, such as 127.0.0.1:5000: %w", address, err)
	}
	if !isLoopback(host) {
		return nil, fmt.Errorf("will not listen on %q: graphd has no authentication yet, so it serves this machine only. "+
			"Give a loopback address (127.0.0.1:PORT, [::1]:PORT or localhost:PORT)", address)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	// What localhost stands for is up to the machine.
	if tcp, ok := ln.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("will not listen on %q: it is %s here, which is no loopback address", address, ln.Addr()), ln.Close())
	}
	return ln, nil
}

// How long the parts of a request may take, and what its head may hold.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	// spareTime is what an answer may take beyond the body.
	spareTime   = time.Minute
	headerBytes = 64 << 10
)

// Serve answers requests on ln until ctx ends. Then it takes no more, lets those
// that run come to their end for as long as drain says, and closes ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener, drain time.Duration) error {
	longest := max(s.limits.BodyTime, s.limits.BatchTime)
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: longest, WriteTimeout: longest + spareTime, IdleTimeout: idleTime,
		MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.endWaits()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := srv.Shutdown(stop); err != nil {
		return errors.Join(fmt.Errorf("some requests did not end within %s: %w", drain, err), srv.Close())
	}
	return nil
}
