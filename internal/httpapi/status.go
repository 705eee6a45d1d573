package httpapi

import (
	"context"
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
	entries, total := s.opt.Inbox.Newest(math.MaxInt)
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
	Version         string                  `json:"version"`
	IdentityVersion string                  `json:"identityVersion"`
	Datasets        int                     `json:"datasets"`
	Jobs            int                     `json:"jobs"`
	Runs            int                     `json:"runs"`
	Attempts        int                     `json:"attempts"`
	Events          int                     `json:"events"`
	Derivations     int                     `json:"derivations"`
	Deliveries      map[graph.Outcome]int64 `json:"deliveries"`
	Rejected        int64                   `json:"rejected"`
	Settling        int                     `json:"settling"`
	Bytes           int64                   `json:"bytes"`
	// Budget is what Bytes may become, 0 without a bound.
	Budget int64 `json:"budget"`
}

func (s *Server) getStats(c echo.Context, _ *query) error {
	st, err := s.opt.Store.Stats(c.Request().Context())
	if err != nil {
		return err
	}
	_, rejected := s.opt.Inbox.Newest(0)
	out := stats{
		Version: s.opt.Version, IdentityVersion: s.opt.Pipeline.Decoder().Version(), Datasets: st.Datasets, Jobs: st.Jobs,
		Runs: st.Runs, Attempts: st.Attempts, Events: st.Events, Derivations: st.Derivations, Deliveries: map[graph.Outcome]int64{},
		Rejected: rejected, Settling: st.Settling, Bytes: st.Bytes, Budget: st.Budget,
	}
	for _, o := range outcomes {
		out.Deliveries[o] = st.Deliveries[o]
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

// readyTime is how long the store may take to show that it is there.
const readyTime = 2 * time.Second

// getReady answers whether requests can be served: the store answers, and the
// process is not about to end.
func (s *Server) getReady(c echo.Context, _ *query) error {
	if s.draining.Load() {
		return fail("unavailable", nil, "graphd is shutting down.").retry(busyPause)
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTime)
	defer cancel()
	if _, err := s.opt.Store.Stats(ctx); err != nil {
		return fail("unavailable", nil, "The store does not answer.").retry(busyPause).because(err)
	}
	return write(c, http.StatusOK, health{"ok"})
}
