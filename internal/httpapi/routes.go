package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// handler answers a request whose parameters are known to be the route's own.
type handler func(c echo.Context, q *query) error

// route is one route of the API.
type route struct {
	method, path string
	// about is what GET / says of it.
	about string
	// query lists the parameters that it takes.
	query  []string
	handle handler
}

// routes lists every route. openapi.yaml describes the same ones.
func (s *Server) routes() []route {
	get, post := http.MethodGet, http.MethodPost
	entities := append([]string{"namespace", "name", "contains"}, paging...)
	return []route{
		{post, "/api/v1/lineage", "takes in one OpenLineage event", nil, s.postEvent},
		{post, "/api/v1/lineage/batch", "takes in many: a JSON array, or one event a line", nil, s.postBatch},
		{post, "/api/v1/identity", "says which event and run an event is, and stores nothing", nil, s.postIdentity},
		{get, "/api/v1/lineage", "upstream and downstream of a dataset, a job or a run", lineageParameters, s.getLineage},
		{get, "/api/v1/search", "datasets and jobs by a part of their names, the best hits first", searchParameters, s.getSearch},
		{get, "/api/v1/datasets", "datasets by name", entities, s.getDatasets},
		{get, "/api/v1/datasets/:id", "one dataset", nil, s.getDataset},
		{get, "/api/v1/jobs", "jobs by name", entities, s.getJobs},
		{get, "/api/v1/jobs/:id", "one job", nil, s.getJob},
		{get, "/api/v1/runs", "logical runs, those that began last first", append([]string{"job", "state"}, paging...), s.getRuns},
		{get, "/api/v1/runs/:id", "one logical run: its attempts and what it asserts", nil, s.getRun},
		{get, "/api/v1/events", "events as they arrived, the last first", append([]string{"job", "dataset", "run", "type", "outcome"}, paging...), s.getEvents},
		{get, "/api/v1/events/:id", "every distinct body of one event", append([]string{"payload"}, paging...), s.getEvent},
		{get, "/api/v1/rejected", "what was no OpenLineage event, the last first", paging, s.getRejected},
		{get, "/api/v1/snapshot", "the whole graph in canonical form, one JSON object a line", []string{"wait"}, s.getSnapshot},
		{get, "/api/v1/stats", "how much there is", nil, s.getStats},
		{get, "/livez", "whether the process lives", nil, s.getLive},
		{get, "/readyz", "whether all it has can be read, and the log be written", nil, s.getReady},
		{get, "/metrics", "metrics for Prometheus", nil, s.getMetrics},
		{get, "/openapi.yaml", "this API, described", nil, s.getOpenAPI},
		{get, "/", "this page", nil, s.getIndex},
	}
}

// register adds the routes to echo. What can be read can be asked for its head.
func (s *Server) register() {
	for _, r := range s.routes() {
		handle := func(c echo.Context) error {
			// echo lets a parameter at the end of a path hold all that follows.
			if strings.Contains(strings.Join(c.ParamValues(), ""), "/") {
				return echo.ErrNotFound
			}
			c.Set(routeKey, r.path)
			q, err := newQuery(c.Request().URL.RawQuery, r.query)
			if err != nil {
				return err
			}
			return r.handle(c, q)
		}
		s.echo.Add(r.method, r.path, handle)
		if r.method == http.MethodGet {
			s.echo.Add(http.MethodHead, r.path, handle)
		}
	}
}

// getMetrics answers with the metrics. The names that Prometheus may ask for are
// none of graphd's business; it leaves them out.
func (s *Server) getMetrics(c echo.Context, _ *query) error {
	s.opt.Telemetry.Metrics.ServeHTTP(c.Response(), c.Request())
	return nil
}

// getIndex says what this is, for somebody who opens it in a browser.
func (s *Server) getIndex(c echo.Context, _ *query) error {
	page := fmt.Appendf(nil, `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>graphd</title></head><body>
<h1>graphd</h1>
<p>A lineage graph server that speaks OpenLineage, version %s. Point a client's <code>url</code> at this address.</p>
<table>
`, htmlText(s.opt.Version))
	for _, r := range s.routes() {
		path := openAPIPath(r.path)
		if r.method == http.MethodGet && path == r.path {
			path = `<a href="` + path + `">` + path + `</a>`
		}
		page = fmt.Appendf(page, "<tr><td>%s</td><td><code>%s</code></td><td>%s</td></tr>\n", r.method, path, r.about)
	}
	page = append(page, "</table></body></html>\n"...)
	return c.HTMLBlob(http.StatusOK, page)
}
