package normalize_test

import (
	"slices"
	"testing"

	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/openlineage"
)

// What is cut off a dataset's name, and what is kept. An empty subset: nothing.
func TestDatasetBehindAName(t *testing.T) {
	const s3 = "s3://lake"
	for _, c := range []struct{ namespace, name, kept, subset string }{
		// Partitions as key=value.
		{s3, "orders/day=2026-03-01", "orders", "day=2026-03-01"},
		{s3, "orders/day=2026-03-01/hour=7", "orders", "day=2026-03-01/hour=7"},
		{s3, "orders/day=", "orders", "day="},
		{s3, "orders/=2", "orders/=2", ""},
		{s3, "a=1/orders", "a=1/orders", ""}, // not at the end
		// Dates that are some.
		{s3, "orders/2026-03-01", "orders", "2026-03-01"},
		{s3, "orders/20260301", "orders", "20260301"},
		{s3, "orders/2026/03", "orders", "2026/03"},
		{s3, "orders/2026/03/01", "orders", "2026/03/01"},
		{s3, "orders/2026/03/01/23", "orders", "2026/03/01/23"},
		{s3, "orders/2024-02-29", "orders", "2024-02-29"},
		{s3, "orders/dt=2026-03-01/2026/03/01/part-0.parquet", "orders", "dt=2026-03-01/2026/03/01/part-0.parquet"},
		// Dates that are none.
		{s3, "orders/2026-02-29", "orders/2026-02-29", ""},
		{s3, "orders/2026-13-01", "orders/2026-13-01", ""},
		{s3, "orders/20261301", "orders/20261301", ""},
		{s3, "orders/2026/13", "orders/2026/13", ""},
		{s3, "orders/2026/02/30", "orders/2026/02/30", ""},
		{s3, "orders/2026/03/01/24", "orders/2026/03/01/24", ""},
		{s3, "orders/2026", "orders/2026", ""},
		{s3, "orders/2026-3-1", "orders/2026-3-1", ""},
		{s3, "orders/18991231", "orders/18991231", ""},
		{s3, "orders/22000101", "orders/22000101", ""},
		{s3, "orders/v2026-03-01", "orders/v2026-03-01", ""},
		{s3, "orders/2026-03-01.csv", "orders/2026-03-01.csv", ""},
		// Files of a dataset, globs.
		{s3, "orders/part-00000-a.snappy.parquet", "orders", "part-00000-a.snappy.parquet"},
		{s3, "orders/*.parquet", "orders", "*.parquet"},
		{s3, "orders/*/*", "orders", "*/*"},
		{s3, "orders/file-?.csv", "orders", "file-?.csv"},
		{s3, "orders/{a,b}", "orders", "{a,b}"},
		{s3, "orders/[ab].csv", "orders", "[ab].csv"},
		{s3, "orders/a[b", "orders/a[b", ""},
		{s3, "orders/parts", "orders/parts", ""},
		// Never the whole path, and never its first segment.
		{s3, "2026-03-01", "2026-03-01", ""},
		{s3, "/2026-03-01", "/2026-03-01", ""},
		{s3, "day=1/hour=2", "day=1", "hour=2"},
		{s3, "2026/03/01", "2026/03/01", ""},
		{s3, "2026/03/01/2026/03/01", "2026/03/01", "2026/03/01"},
		{s3, "*", "*", ""},
		{s3, "", "", ""},
		{s3, "/", "/", ""},
		// Slashes.
		{s3, "/orders/day=1/", "/orders", "day=1"},
		{s3, "orders//day=1", "orders", "day=1"},
		{s3, "//orders//day=1//", "//orders", "day=1"},
		{s3, "orders/", "orders/", ""},
		{"file", "/data/orders/2026-03-01", "/data/orders", "2026-03-01"},
		// Only where names are paths.
		{"postgres://db:5432", "shop/orders/2026-03-01", "shop/orders/2026-03-01", ""},
		{"kafka://broker:9092", "orders/day=1", "orders/day=1", ""},
		{"s3fake://lake", "orders/day=1", "orders/day=1", ""},
		// BigQuery: partition decorators and shards.
		{"bigquery", "p.d.orders$20260301", "p.d.orders", "$20260301"},
		{"bigquery", "p.d.orders$2026030107", "p.d.orders", "$2026030107"},
		{"bigquery", "p.d.orders_20260301", "p.d.orders", "_20260301"},
		{"bigquery", "p.d.orders_*", "p.d.orders", "_*"},
		{"bigquery", "p.d.orders_20261301", "p.d.orders_20261301", ""},
		{"bigquery", "p.d.orders_2026", "p.d.orders_2026", ""},
		{"bigquery", "p.d.$20260301", "p.d.$20260301", ""},
		{"bigquery", "p.d._20260301", "p.d._20260301", ""},
		{"bigquery", "p.d_20260301.orders", "p.d_20260301.orders", ""},
		{"snowflake://x", "d.s.orders_20260301", "d.s.orders_20260301", ""},
	} {
		entity, subset, ok := normalize.DefaultNameRules().Entity(openlineage.Name{Namespace: c.namespace, Name: c.name})
		if entity.Namespace != c.namespace || entity.Name != c.kept || subset != c.subset || !ok {
			t.Errorf("%s %s: %q without %q (%v), want %q without %q", c.namespace, c.name, entity.Name, subset, ok, c.kept, c.subset)
		}
		// What is found is found again.
		if again, subset, _ := normalize.DefaultNameRules().Entity(entity); again != entity && c.subset != "" {
			t.Errorf("%s: %s is cut again to %s by %s", c.name, entity.Name, again.Name, subset)
		}
	}
}

func TestEveryPathSchemeIsCut(t *testing.T) {
	for _, scheme := range normalize.DefaultNameRules().PathSchemes {
		for _, namespace := range []string{scheme, scheme + "://host"} {
			if entity, _, _ := normalize.DefaultNameRules().Entity(openlineage.Name{Namespace: namespace, Name: "a/day=1"}); entity.Name != "a" {
				t.Errorf("%s: %s", namespace, entity.Name)
			}
		}
	}
}

func TestCommonTableExpressionsOfDbtAreNoDatasets(t *testing.T) {
	for _, rules := range []normalize.NameRules{normalize.DefaultNameRules(), {}} {
		for name, want := range map[string]bool{
			"db.schema.__dbt__cte__orders": false, "__dbt__cte__orders": false,
			"db.__dbt__cte__x.orders": true, "db.schema.dbt__cte__orders": true,
		} {
			if _, _, ok := rules.Entity(openlineage.Name{Namespace: "postgres://db", Name: name}); ok != want {
				t.Errorf("%s: a dataset is %v, want %v", name, ok, want)
			}
		}
	}
}

func TestWithoutCollapseEveryPathIsADataset(t *testing.T) {
	rules := normalize.DefaultNameRules()
	rules.Collapse = false
	for _, sent := range []openlineage.Name{{Namespace: "s3://lake", Name: "orders/day=1"}, {Namespace: "bigquery", Name: "p.d.orders$20260301"}} {
		if entity, subset, ok := rules.Entity(sent); entity != sent || subset != "" || !ok {
			t.Errorf("%v: %v without %q, %v", sent, entity, subset, ok)
		}
	}
	if rules.Digest() == normalize.DefaultNameRules().Digest() {
		t.Error("the digest does not tell the rules apart")
	}
}

// Names are cut wherever they stand; the event ID uses them as sent.
func TestNamesAreCutEverywhereButInTheID(t *testing.T) {
	at := func(day string) string {
		name := `{"namespace": "s3://lake", "name": "orders/` + day + `"`
		return with(t, runEvent, "inputs.[]", name+`}`, "outputs.[]", name+`}`,
			"outputs.0.facets.columnLineage.fields.id.inputFields.[]", name+`, "field": "id"}`,
			"outputs.0.facets.lineage.inputs.[]", name+`, "type": "DATASET"}`,
			"outputs.0.facets.symlinks.identifiers.[]", name+`, "type": "TABLE"}`,
			"outputs.0.facets.lifecycleStateChange", `{"lifecycleStateChange": "RENAME", "previousIdentifier": `+name+`}}`,
			"job.facets.lineage.entries.[]", name+`, "type": "DATASET"}`)
	}
	first, second := factOf(t, normalizer(t), at("2026-03-01")), factOf(t, normalizer(t), at("2026-03-02"))
	if first.ID == second.ID {
		t.Error("two events of two paths are one")
	}
	orders := openlineage.Name{Namespace: "s3://lake", Name: "orders"}
	s := first.Statement
	out := s.Outputs[0]
	names := []openlineage.Name{
		s.Inputs[0].Dataset, out.Dataset, out.Columns.Entries[0].Source, out.Lineage.Entries[0].Sources[0].Name,
		out.Lifecycle.Previous, s.Lineage.Entries[0].Target.Name,
	}
	for _, f := range first.Facets {
		names = append(names, f.Symlinks...)
	}
	if len(names) != 7 || slices.ContainsFunc(names, func(n openlineage.Name) bool { return n != orders }) {
		t.Errorf("not all cut: %v", names)
	}
	if s.Inputs[0].Subset != "2026-03-01" || out.Subset != "2026-03-01" {
		t.Errorf("subsets %q and %q", s.Inputs[0].Subset, out.Subset)
	}
}
