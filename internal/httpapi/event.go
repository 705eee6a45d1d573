package httpapi

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/ingest"
)

// postEvent takes in one event and answers 201 with a receipt: never 202 or 204
// (the Go client fails on those, the Java client on an empty body), and never
// 429 (openlineage-python raises on it in the user's process). A 4xx is final:
// clients do not send again what got one.
func (s *Server) postEvent(c echo.Context, _ *query) error {
	r := c.Request()
	if _, err := mediaType(r.Header, jsonTypes...); err != nil {
		return err
	}
	wait, applied, err := preferred(r.Header)
	if err != nil {
		return err
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	memory := s.budget.lease()
	defer memory.release()
	body, err := s.readEvent(c.Response(), r, memory)
	if err != nil {
		return err
	}
	if err := s.keys.check(routeOf(c), key, body); err != nil {
		return err
	}
	receipt, err := s.opt.Node.Pipeline.Accept(r.Context(), body, wait)
	if err != nil {
		s.keys.forget(routeOf(c), key)
		return intakeFailure(err)
	}
	h := c.Response().Header()
	if applied != "" {
		h.Set("Preference-Applied", applied)
	}
	h.Set("Location", "/api/v1/events/"+receipt.EventID)
	return write(c, http.StatusCreated, receipt)
}

// intakeFailure answers for a delivery that was not kept. What is neither the
// body's fault nor known is worth another try, as the store's contract says.
func intakeFailure(err error) error {
	var no *ingest.Rejected
	if errors.As(err, &no) || errors.Is(err, graph.ErrFull) || errors.Is(err, graph.ErrClosed) {
		return err
	}
	return fail("unavailable", nil, "The store did not take it. Send it again.").retry(busyPause).because(err)
}
