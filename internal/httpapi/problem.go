package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/node"
)

// Problem is the body of every answer that is no success (RFC 9457).
type Problem struct {
	// Type is a URN that names the kind of problem, for machines.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what to do about it, for people.
	Detail text `json:"detail"`
	// Errors say what is wrong and where; none where no place is at fault.
	Errors []Fault `json:"errors"`
	// TraceID finds the request in logs and traces.
	TraceID string `json:"traceId,omitempty"`
}

// Fault is one thing wrong with a request: in its body (Pointer and Offset), in
// a parameter or in a header.
type Fault struct {
	// Pointer is a JSON pointer into the body, Offset its byte offset there.
	Pointer   *text `json:"pointer,omitempty"`
	Offset    *int  `json:"offset,omitempty"`
	Parameter text  `json:"parameter,omitempty"`
	Header    text  `json:"header,omitempty"`
	Reason    text  `json:"reason"`
}

// The kinds of problem, each with its status and title.
var kinds = map[string]struct {
	status int
	title  string
}{
	"invalid-event":          {http.StatusBadRequest, "Not an OpenLineage event"},
	"invalid-body":           {http.StatusBadRequest, "The request body cannot be read"},
	"invalid-parameter":      {http.StatusBadRequest, "A parameter is wrong"},
	"invalid-header":         {http.StatusBadRequest, "A header is wrong"},
	"not-available":          {http.StatusBadRequest, "Not available yet"},
	"cross-origin":           {http.StatusForbidden, "Sent by another site's page"},
	"not-found":              {http.StatusNotFound, "Not found"},
	"no-route":               {http.StatusNotFound, "No such route"},
	"method-not-allowed":     {http.StatusMethodNotAllowed, "The route has no such method"},
	"too-large":              {http.StatusRequestEntityTooLarge, "Too large"},
	"unsupported-media-type": {http.StatusUnsupportedMediaType, "Not a type or coding that is read here"},
	"misdirected":            {http.StatusMisdirectedRequest, "Not a name of this server"},
	"idempotency-key-reused": {http.StatusUnprocessableEntity, "The key was used for another body"},
	"internal":               {http.StatusInternalServerError, "Something is broken in graphd"},
	"store-full":             {http.StatusServiceUnavailable, "The store is full"},
	"unavailable":            {http.StatusServiceUnavailable, "Not at the moment"},
}

// failure is an error that knows its answer.
type failure struct {
	Problem
	header http.Header
	cause  error // for the log
}

// Error implements error.
func (f *failure) Error() string {
	if f.cause != nil {
		return f.cause.Error()
	}
	return string(f.Detail)
}

// Unwrap gives the cause.
func (f *failure) Unwrap() error { return f.cause }

func fail(kind string, faults []Fault, format string, args ...any) *failure {
	k := kinds[kind]
	if faults == nil {
		faults = []Fault{}
	}
	return &failure{Problem: Problem{
		Type: "urn:graphd:problem:" + kind, Title: k.title, Status: k.status,
		Detail: text(fmt.Sprintf(format, args...)), Errors: faults,
	}, header: http.Header{}}
}

// kind is the end of the problem's type.
func (f *failure) kind() string { return f.Type[strings.LastIndexByte(f.Type, ':')+1:] }

// retry says when to try again.
func (f *failure) retry(after time.Duration) *failure {
	f.header.Set("Retry-After", strconv.Itoa(int(after.Seconds())))
	return f
}

func (f *failure) because(err error) *failure {
	f.cause = err
	return f
}

func at(pointer string, offset int, reason string) Fault {
	p := text(pointer)
	return Fault{Pointer: &p, Offset: &offset, Reason: text(reason)}
}

// Pauses before another try: until somebody has made room, until a moment's
// load is over.
const (
	fullPause = 30 * time.Second
	busyPause = 2 * time.Second
)

// failureOf finds the answer to an error.
func failureOf(err error) *failure {
	var f *failure
	var no *ingest.Rejected
	var routing *echo.HTTPError
	var missing graph.NotFound
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &no):
		return fail("invalid-event", faultsOf(no), "%s. Sending it again as it is will not help.", no)
	case errors.As(err, &missing):
		return fail("not-found", nil, "The %s is not known here.", missing.What)
	case errors.Is(err, graph.ErrCursor):
		return fail("invalid-parameter", []Fault{{Parameter: "cursor", Reason: "it was not given by this listing"}},
			"Use a cursor only as the listing with the same filters gave it, or leave it out to begin anew.")
	case errors.Is(err, graph.ErrFull):
		return fail("store-full", nil, "The disk budget is used up or the disk is nearly full, and nothing of this was kept. "+
			"Send it again once there is room: free disk space, of which graphd leaves 256 MiB, or give it a larger --disk-budget if it has one.").retry(fullPause).because(err)
	case errors.Is(err, node.ErrOpening):
		return fail("unavailable", nil, "The graph is being opened; events are taken in meanwhile. Ask again.").retry(busyPause).because(err)
	case errors.Is(err, node.ErrLogCorrupt):
		return fail("internal", nil, "The log on disk is corrupt: something of it cannot be read, and graphd cannot make that again. "+
			"Restore it from a backup; the server's log tells what is wrong, under the trace ID.").because(err)
	case errors.Is(err, graph.ErrCorrupt):
		return fail("unavailable", nil, "The graph on disk is corrupt and is being made anew from the log; events are taken in meanwhile.").
			retry(busyPause).because(err)
	case errors.Is(err, graph.ErrFailed):
		return fail("unavailable", nil, "The disk failed, and graphd ends. What was acknowledged is safe; a start recovers.").retry(busyPause).because(err)
	case errors.Is(err, graph.ErrClosed):
		return fail("unavailable", nil, "graphd is shutting down. Send it again.").retry(busyPause).because(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fail("unavailable", nil, "The request ended before it was done. Send it again.").retry(busyPause).because(err)
	case errors.As(err, &routing) && routing.Code == http.StatusNotFound:
		return fail("no-route", nil, "GET / lists the routes, GET /openapi.yaml describes them.")
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		return fail("method-not-allowed", nil, "The header Allow lists the methods of this route.")
	}
	return fail("internal", nil, "The log tells more, under the trace ID.").because(err)
}

// faultsOf are the faults of a body that is no event.
func faultsOf(no *ingest.Rejected) []Fault {
	faults := make([]Fault, len(no.Problems))
	for i, p := range no.Problems {
		faults[i] = at(p.Pointer, p.Offset, p.Reason)
	}
	return faults
}
