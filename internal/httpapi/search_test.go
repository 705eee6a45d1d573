package httpapi

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/graph"
)

func TestSearch(t *testing.T) {
	a := serve(t)
	a.post("/api/v1/lineage", flow(1, "load orders", []string{"raw.orders", "raw.customers"}, []string{"mart.orders_daily"})).is(201)
	a.post("/api/v1/lineage", flow(2, "ORDERS", []string{"mart.orders_daily"}, []string{"caf\u00e9"})).is(201)
	for _, tc := range []struct {
		query url.Values
		want  string
	}{
		{url.Values{"q": {"orders"}}, "job ORDERS name, dataset raw.orders lastSegment, dataset mart.orders_daily segmentPrefix, job load orders substring"},
		{url.Values{"q": {"ORDERS"}, "type": {"dataset"}}, "dataset raw.orders lastSegment, dataset mart.orders_daily segmentPrefix"},
		{url.Values{"q": {"orders"}, "type": {"job"}}, "job ORDERS name, job load orders substring"},
		{url.Values{"q": {"orders"}, "namespace": {"warehouse"}}, "job ORDERS name, job load orders substring"},
		{url.Values{"q": {"ustom"}}, "dataset raw.customers substring"},
		{url.Values{"q": {" daily\tmart "}}, "dataset mart.orders_daily lastSegment"},
		{url.Values{"q": {"cafe\u0301"}}, "dataset caf\u00e9 name"},
		{url.Values{"q": {"load ORD"}}, "job load orders namePrefix"},
		{url.Values{"q": {"nothing"}}, ""},
		{url.Values{"q": {"orders"}, "namespace": {"elsewhere"}}, ""},
	} {
		got := a.get("/api/v1/search?"+tc.query.Encode()).is(200).has(false, "meta", "more").has(false, "meta", "indexing")
		var list []string
		for _, item := range got.at("items").([]any) {
			list = append(list, fmt.Sprint(dig(t, item, "type"), " ", dig(t, item, "name"), " ", dig(t, item, "match")))
		}
		if strings.Join(list, ", ") != tc.want {
			t.Errorf("%v finds %s\nwant %s", tc.query, strings.Join(list, ", "), tc.want)
		}
	}
	// An item leads to the entity.
	hit := a.get("/api/v1/search?q=orders&limit=1&type=dataset").has(true, "meta", "more").has("postgres://db:5432", "items", 0, "namespace")
	a.get("/api/v1/datasets/"+hit.at("items", 0, "id").(string)).is(200).has("raw.orders", "name")
	a.get("/api/v1/search?q=orders", "If-None-Match", a.get("/api/v1/search?q=orders").header.Get("Etag")).is(304)

	for query, place := range map[string]string{
		"": "q", "q=": "q", "q=%20%09": "q", "q=" + strings.Repeat("x", 1025): "q", "q=" + strings.Repeat("x+", 16) + "x": "q",
		"q=a&type=run": "type", "q=a&namespace=": "namespace", "q=a&limit=0": "limit", "q=a&limit=101": "limit", "q=a&cursor=x": "cursor",
	} {
		a.get("/api/v1/search?"+query).problem(400, "invalid-parameter", place)
	}
}

func TestSearchSaysWhatItsIndexLacks(t *testing.T) {
	a := serve(t, withStore(func(s graph.Store) graph.Store { return indexing{s} }))
	a.get("/api/v1/search?q=orders").is(200).has(true, "meta", "indexing").has(true, "meta", "more")
}

// indexing is a store whose index of names is still being made.
type indexing struct{ graph.Store }

func (indexing) Search(context.Context, graph.SearchQuery) (graph.Found, error) {
	return graph.Found{More: true, Indexing: true}, nil
}
