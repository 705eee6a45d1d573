package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
)

// query reads the parameters of a request and gathers what is wrong with them.
type query struct {
	values url.Values
	faults []Fault
}

// newQuery reads the query string. A parameter that the route does not have, or
// that stands twice, is a fault: none is ever ignored.
func newQuery(raw string, known []string) (*query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fail("invalid-parameter", nil, "The query string cannot be read: %s.", err)
	}
	q := &query{values: values}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case !slices.Contains(known, name):
			can := "this route has no parameters"
			if len(known) > 0 {
				can = "this route has " + strings.Join(known, ", ")
			}
			q.wrong(name, "no such parameter: "+can)
		case len(values[name]) > 1:
			q.wrong(name, "it stands there more than once")
		}
	}
	return q, q.err()
}

func (q *query) wrong(parameter, reason string) {
	q.faults = append(q.faults, Fault{Parameter: text(parameter), Reason: text(reason)})
}

// err returns a failure with all faults, nil if there are none.
func (q *query) err() error {
	if len(q.faults) == 0 {
		return nil
	}
	f := q.faults[0]
	return fail("invalid-parameter", q.faults, "%s: %s.", f.Parameter, f.Reason)
}

func (q *query) has(name string) bool { return q.values.Has(name) }

// text returns a parameter in the normal form that names in events are brought
// to. An empty one is a fault.
func (q *query) text(name string) string {
	s := q.values.Get(name)
	if s == "" && q.has(name) {
		q.wrong(name, "it is empty")
	}
	return norm.NFC.String(s)
}

func (q *query) number(name string, def, low, high int) int {
	if !q.has(name) {
		return def
	}
	n, err := strconv.Atoi(q.values.Get(name))
	if err != nil || n < low || n > high {
		q.wrong(name, fmt.Sprintf("want a whole number from %d to %d", low, high))
		return def
	}
	return n
}

// choice returns one of the values that a parameter may have, def if it is
// absent.
func choice[T ~string](q *query, name string, def T, values ...T) T {
	if !q.has(name) {
		return def
	}
	v := T(q.values.Get(name))
	if !slices.Contains(values, v) {
		q.wrong(name, "want "+oneOf(values))
	}
	return v
}

func oneOf[T ~string](values []T) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	if len(list) == 1 {
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

func (q *query) flag(name string) bool {
	return choice(q, name, "false", "true", "false") == "true"
}

// Words for what is no key.
const (
	wantID  = "want 48 hexadecimal digits"
	wantRun = "want the UUID of a logical run"
)

func (q *query) id(name string) (id fact.ID) {
	if q.has(name) {
		id = q.parseID(name, q.values.Get(name))
	}
	return id
}

func (q *query) parseID(name, value string) fact.ID {
	id, err := fact.ParseID(value)
	if err != nil || id.IsZero() {
		q.wrong(name, wantID)
		return fact.ID{}
	}
	return id
}

func (q *query) run(name string) (id lineage.RunID) {
	if q.has(name) {
		id = q.parseRun(name, q.values.Get(name))
	}
	return id
}

func (q *query) parseRun(name, value string) lineage.RunID {
	id, err := lineage.ParseRunID(value)
	if err != nil || id.IsZero() {
		q.wrong(name, wantRun)
		return lineage.RunID{}
	}
	return id
}

// paging are the parameters that every list has.
var paging = []string{"limit", "cursor"}

// Elements of one page.
const (
	defaultPage = 100
	maxPage     = 1000
)

func (q *query) paging() graph.Paging {
	return graph.Paging{Limit: q.number("limit", defaultPage, 1, maxPage), Cursor: q.text("cursor")}
}
