package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/graph"
)

// rejection is a body that was no OpenLineage event.
type rejection struct {
	// Number counts them since the start.
	Number   int64     `json:"number"`
	Received time.Time `json:"receivedAt"`
	Errors   []Fault   `json:"errors"`
	// Body is the beginning of the body, Bytes its whole length.
	Body  text `json:"body"`
	Bytes int  `json:"bytes"`
}

type rejections struct {
	page[rejection]
	// Total counts those since the start, Kept those that are kept still.
	Total int64 `json:"total"`
	Kept  int   `json:"kept"`
}

func (s *Server) getRejected(c echo.Context, q *query) error {
	p := q.paging()
	before := q.sequence(p.Cursor)
	if err := q.err(); err != nil {
		return err
	}
	if before == 0 {
		before = math.MaxInt64
	}
	entries, total := s.opt.Node.Inbox.Newest(math.MaxInt)
	out := rejections{page: page[rejection]{Items: []rejection{}}, Total: total, Kept: len(entries)}
	for i, e := range entries {
		number := total - int64(i)
		if number >= before {
			continue
		}
		if n := len(out.Items); n == p.Limit {
			next := strconv.FormatInt(out.Items[n-1].Number, 10)
			out.Next = &next
			break
		}
		r := rejection{Number: number, Received: e.Received, Body: text(e.Body), Bytes: e.Size}
		for _, p := range e.Problems {
			r.Errors = append(r.Errors, at(p.Pointer, p.Offset, p.Reason))
		}
		out.Items = append(out.Items, r)
	}
	return writeRead(c, out)
}

type stats struct {
	Version         string                   `json:"version"`
	IdentityVersion string                   `json:"identityVersion"`
	Datasets        int                      `json:"datasets"`
	Jobs            int                      `json:"jobs"`
	Runs            int                      `json:"runs"`
	Attempts        int                      `json:"attempts"`
	Events          int                      `json:"events"`
	Derivations     int                      `json:"derivations"`
	Deliveries      map[graph.Outcome]uint64 `json:"deliveries"`
	Rejected        int64                    `json:"rejected"`
	Settling        int                      `json:"settling"`
	Log             logStats                 `json:"log"`
	// Bytes is what the graph and the log take, Budget what the log may take, 0
	// without a bound.
	Bytes  int64 `json:"bytes"`
	Budget int64 `json:"budget"`
}

// logStats is the log, and how the graph follows it.
type logStats struct {
	// Last is the number of the last body in the log, Merged of the last one that is
	// in the graph.
	Last   uint64  `json:"last"`
	Merged uint64  `json:"merged"`
	Lag    float64 `json:"lagSeconds"`
	// WindowSince is since when duplicates are known without asking the graph.
	WindowSince *time.Time `json:"windowSince,omitempty"`
}

func (s *Server) getStats(c echo.Context, _ *query) error {
	n := s.opt.Node
	st, err := n.Store.Stats(c.Request().Context())
	if err != nil {
		return err
	}
	log, err := n.Ledger.Stats()
	if err != nil {
		return err
	}
	_, rejected := n.Inbox.Newest(0)
	follows := n.Graph.Stats()
	out := stats{
		Version: s.opt.Version, IdentityVersion: n.Decoder.Version(), Datasets: st.Datasets, Jobs: st.Jobs,
		Runs: st.Runs, Attempts: st.Attempts, Events: st.Events, Derivations: st.Derivations, Deliveries: map[graph.Outcome]uint64{},
		Rejected: rejected, Settling: st.Settling, Bytes: st.Bytes + int64(log.DiskBytes), Budget: log.DiskBudget,
		Log: logStats{Last: follows.Last, Merged: follows.Position, Lag: follows.Lag.Seconds()},
	}
	if since := log.Window.Oldest; !since.IsZero() {
		since = since.UTC()
		out.Log.WindowSince = &since
	}
	totals := n.Ledger.Totals()
	for _, o := range outcomes {
		out.Deliveries[o] = totals[o]
	}
	return writeRead(c, out)
}

type health struct {
	Status string `json:"status"`
}

// getLive answers as long as the process does.
func (s *Server) getLive(c echo.Context, _ *query) error {
	return write(c, http.StatusOK, health{"ok"})
}

// readyTime is how long the graph may take to show that it is there.
const readyTime = 2 * time.Second

// getReady answers whether all requests can be served: the log can be written,
// the graph answers and follows the log, is not being made anew, and the process is
// not about to end. How far behind the log the graph is otherwise makes no
// difference, nor does a used up budget: what there is can be read.
func (s *Server) getReady(c echo.Context, _ *query) error {
	no := func(detail string, err error) error {
		return fail("unavailable", nil, "%s", detail).retry(busyPause).because(err)
	}
	if s.draining.Load() {
		return no("graphd is shutting down.", nil)
	}
	n := s.opt.Node
	select {
	case <-n.Ledger.Failed():
		return no("The log cannot be written: nothing is taken in.", nil)
	default:
	}
	const opening = "The graph is being opened; events are taken in meanwhile."
	position, target, rebuilding := n.Rebuilding()
	follows := n.Graph.Stats()
	if follows.Failure != nil && !(rebuilding && errors.Is(follows.Failure, graph.ErrCorrupt)) {
		return no("The graph does not follow the log; events are taken in meanwhile.", follows.Failure)
	}
	if rebuilding {
		return no(fmt.Sprintf("The graph is being made anew from the log and has come to record %d of %d; events are taken in meanwhile.", position, target),
			follows.Failure)
	}
	if !follows.Found { // what it has might belong to another log
		return no(opening, nil)
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTime)
	defer cancel()
	if _, err := n.Store.Stats(ctx); err != nil {
		return no("The graph does not answer.", err)
	}
	return write(c, http.StatusOK, health{"ok"})
}
