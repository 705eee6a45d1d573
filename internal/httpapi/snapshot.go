package httpapi

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/node"
)

// Seconds that a snapshot may wait for the graph to settle.
const (
	defaultWait = 30
	maxWait     = 600
)

// snapshotBuffer is how much of a snapshot is gathered before it is sent.
// Nothing more of it is held here, however long it is.
const snapshotBuffer = 64 << 10

// Why a snapshot that waits for the graph to settle waits no longer.
var (
	// errSettling: it has waited for as long as it was told.
	errSettling = errors.New("the graph has not settled")
	// errEnding: the server ends, and would have to wait for it.
	errEnding = errors.New("the server ends")
)

// getSnapshot streams the canonical snapshot. Until its first byte is sent every
// fault is a problem document. After that the answer can only break off, which
// it does without the end of its last chunk; and a trailer, Content-Digest (RFC
// 9530), is there for whoever wants to be sure.
func (s *Server) getSnapshot(c echo.Context, q *query) error {
	wait := time.Duration(q.number("wait", defaultWait, 1, maxWait)) * time.Second
	if err := q.err(); err != nil {
		return err
	}
	select { // each one reads the whole graph, and holds files of the store
	case s.snapshot <- struct{}{}:
		defer func() { <-s.snapshot }()
	default:
		return fail("unavailable", nil, "Another snapshot is being written, and there is one at a time. Ask again.").retry(busyPause)
	}
	ctx, cancel := context.WithCancelCause(c.Request().Context())
	defer cancel(nil)
	out := &snapshotStream{
		response: c.Response(), control: http.NewResponseController(c.Response()), sum: sha256.New(),
		patience: time.AfterFunc(wait, func() { cancel(errSettling) }),
		serving:  context.AfterFunc(s.waits, func() { cancel(errEnding) }),
	}
	defer out.begun()
	out.deadlines(wait)
	err := s.settled(ctx)
	if err == nil {
		buffer := bufio.NewWriterSize(out, snapshotBuffer)
		if err = s.opt.Node.Store.Snapshot(ctx, untilFirst{buffer, out}); err == nil {
			err = buffer.Flush()
		}
	}
	switch {
	case err == nil:
		out.end()
		return nil
	case c.Response().Committed:
		if c.Request().Context().Err() == nil { // the client is still there
			s.log.WarnContext(ctx, "a snapshot broke off", "sent", c.Response().Size, "error", err)
		}
		panic(fmt.Errorf("%w: %w", http.ErrAbortHandler, err)) // half a snapshot must not look like a whole one
	case errors.Is(context.Cause(ctx), errSettling):
		return fail("unavailable", nil, "The graph is still settling, and has not ended within %s. Ask again, or with a longer wait (up to %d seconds).",
			wait, maxWait).retry(busyPause).because(err)
	case errors.Is(context.Cause(ctx), errEnding):
		return fail("unavailable", nil, "graphd is shutting down. Ask again.").retry(busyPause).because(err)
	}
	return err
}

// settled waits until all that was acknowledged by now is in the graph and nothing
// is pending.
func (s *Server) settled(ctx context.Context) error {
	err := s.opt.Node.Graph.Settled(ctx)
	if err == nil || ctx.Err() != nil || errors.Is(err, graph.ErrClosed) || errors.Is(err, node.ErrOpening) || errors.Is(err, graph.ErrCorrupt) {
		return err
	}
	return fail("unavailable", nil, "The graph does not follow the log at the moment, so that a snapshot would not have all of it. Ask again.").
		retry(busyPause).because(err)
}

// untilFirst passes on what a store writes. From the first byte on the graph has
// settled, and what is left may take its time.
type untilFirst struct {
	io.Writer
	out *snapshotStream
}

// Write implements io.Writer.
func (u untilFirst) Write(p []byte) (int, error) {
	if !u.out.settled {
		if !u.out.begun() {
			return 0, errSettling // too late by a moment: ctx has ended
		}
		u.out.settled = true
	}
	return u.Writer.Write(p)
}

// snapshotStream sends a snapshot.
type snapshotStream struct {
	response *echo.Response
	control  *http.ResponseController
	sum      hash.Hash
	patience *time.Timer
	serving  func() bool // stops what waits for the end of the server
	settled  bool
}

// begun stops the clocks of the wait. It reports whether it was in time for both.
func (o *snapshotStream) begun() bool {
	patient, serving := o.patience.Stop(), o.serving()
	return patient && serving
}

// deadlines makes room for a wait and then for a part of the answer. The
// server's own deadlines are for answers of a bounded length. Where they cannot
// be moved those hold.
func (o *snapshotStream) deadlines(wait time.Duration) {
	_ = o.control.SetReadDeadline(time.Time{}) // net/http reads on, to see whether the client goes away
	_ = o.control.SetWriteDeadline(time.Now().Add(wait + spareTime))
}

// begin sends the head of the answer.
func (o *snapshotStream) begin() {
	if o.response.Committed {
		return
	}
	h := o.response.Header()
	h.Set("Content-Type", lineTypes[0])
	h.Set("Trailer", "Content-Digest")
	o.response.WriteHeader(http.StatusOK)
}

// Write implements io.Writer. A client has spareTime to take each part.
func (o *snapshotStream) Write(p []byte) (int, error) {
	o.begin()
	o.deadlines(0)
	n, err := o.response.Write(p)
	o.sum.Write(p[:n])
	return n, err
}

// end sends the trailer.
func (o *snapshotStream) end() {
	o.begin()
	o.response.Header().Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(o.sum.Sum(nil))+":")
}
