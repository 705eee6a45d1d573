package jsontree

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// sampleEvent is an event in the manner of OpenLineage's Python client: many
// short strings, long URLs that repeat, few numbers, spaces after separators.
const sampleEvent = `{"eventTime": "2026-03-14T05:06:07.812345+00:00", "eventType": "COMPLETE", ` +
	`"inputs": [{"facets": {"dataSource": {"_producer": "https://github.com/OpenLineage/OpenLineage/tree/1.30.0/client/python", ` +
	`"_schemaURL": "https://openlineage.io/spec/facets/1-0-1/DatasourceDatasetFacet.json#/$defs/DatasourceDatasetFacet", ` +
	`"name": "postgres://warehouse:5432", "uri": "postgres://warehouse:5432/shop"}, ` +
	`"schema": {"_producer": "https://github.com/OpenLineage/OpenLineage/tree/1.30.0/client/python", ` +
	`"_schemaURL": "https://openlineage.io/spec/facets/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet", ` +
	`"fields": [{"fields": [], "name": "order_id", "ordinal_position": 1, "type": "bigint"}, ` +
	`{"fields": [], "name": "customer_id", "ordinal_position": 2, "type": "bigint"}, ` +
	`{"fields": [], "name": "placed_at", "ordinal_position": 3, "type": "timestamp with time zone"}, ` +
	`{"fields": [], "name": "total", "ordinal_position": 4, "type": "numeric"}]}}, ` +
	`"inputFacets": {"dataQualityMetrics": {"_producer": "https://github.com/OpenLineage/OpenLineage/tree/1.30.0/client/python", ` +
	`"_schemaURL": "https://openlineage.io/spec/facets/1-0-2/DataQualityMetricsInputDatasetFacet.json#/$defs/DataQualityMetricsInputDatasetFacet", ` +
	`"bytes": 7340032, "rowCount": 52431, "columnMetrics": {"total": {"nullCount": 0, "min": 0.5, "max": 1899.95, "sum": 1840266.25, "quantiles": {"0.25": 12.4, "0.5": 1e-07}}}}}, ` +
	`"name": "shop.public.orders", "namespace": "postgres://warehouse:5432"}], ` +
	`"job": {"facets": {"jobType": {"_producer": "https://github.com/OpenLineage/OpenLineage/tree/1.30.0/client/python", ` +
	`"_schemaURL": "https://openlineage.io/spec/facets/2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet", ` +
	`"integration": "AIRFLOW", "jobType": "TASK", "processingType": "BATCH"}, ` +
	`"sql": {"_producer": "https://github.com/OpenLineage/OpenLineage/tree/1.30.0/client/python", ` +
	`"_schemaURL": "https://openlineage.io/spec/facets/1-1-0/SQLJobFacet.json#/$defs/SQLJobFacet", ` +
	`"query": "INSERT INTO mart.daily_sales\nSELECT placed_at::date AS day, sum(total) AS total\nFROM public.orders\nWHERE placed_at >= '2026-03-13' AND placed_at < '2026-03-14'\nGROUP BY 1"}}, ` +
	`"name": "shop.daily_sales", "namespace": "analytics"}, ` +
	`"outputs": [{"facets": {"symlinks": {"_producer": "https://github.com/OpenLineage/OpenLineage/tree/1.30.0/client/python", ` +
	`"_schemaURL": "https://openlineage.io/spec/facets/1-0-1/SymlinksDatasetFacet.json#/$defs/SymlinksDatasetFacet", ` +
	`"identifiers": [{"name": "mart/daily_sales", "namespace": "s3://lake", "type": "TABLE"}]}}, ` +
	`"name": "shop.mart.daily_sales", "namespace": "postgres://warehouse:5432", "outputFacets": {}}], ` +
	`"producer": "https://github.com/OpenLineage/OpenLineage/tree/1.30.0/client/python", ` +
	`"run": {"facets": {"nominalTime": {"_producer": "https://github.com/OpenLineage/OpenLineage/tree/1.30.0/client/python", ` +
	`"_schemaURL": "https://openlineage.io/spec/facets/1-0-1/NominalTimeRunFacet.json#/$defs/NominalTimeRunFacet", ` +
	`"nominalEndTime": "2026-03-14T00:00:00Z", "nominalStartTime": "2026-03-13T00:00:00Z"}}, ` +
	`"runId": "019ce9a1-7c55-7d2e-9a41-3f0b6c1d2e4f"}, ` +
	`"schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"}`

func BenchmarkParse(b *testing.B) {
	data := []byte(sampleEvent)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(data, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodingJSONAny(b *testing.B) {
	data := []byte(sampleEvent)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAny(b *testing.B) {
	v := mustParse(b, sampleEvent)
	b.ReportAllocs()
	for b.Loop() {
		v.Any()
	}
}

func BenchmarkAppendCanonical(b *testing.B) {
	v := mustParse(b, sampleEvent)
	b.SetBytes(int64(len(sampleEvent)))
	var buf []byte
	for b.Loop() {
		buf = AppendCanonical(buf[:0], v)
	}
}

// repeated gives an array of about 1 MB that repeats one element.
func repeated(element string) []byte {
	return []byte("[" + strings.Repeat(element+",", (1<<20)/(len(element)+1)) + element + "]")
}

// BenchmarkHostile compares bodies of 1 MB that try to cost more than their
// size with one that is merely large ("ones").
func BenchmarkHostile(b *testing.B) {
	distinct := func(format func(i int) string) []byte {
		var buf bytes.Buffer
		for i := 0; buf.Len() < 1<<20; i++ {
			buf.WriteString(format(i))
		}
		return buf.Bytes()
	}
	cases := []struct {
		name string
		data []byte
		fail bool
	}{
		{"ones", repeated("1"), false},
		{"exponent1000000", repeated("1e1000000"), true},
		{"exponent400", repeated("1e400"), false},
		{"exponent39", repeated("1e39"), false},
		{"subnormal", repeated("1e-320"), false},
		{"digits17", repeated("0.12345678901234567"), false},
		{"digits1000", repeated("0." + strings.Repeat("7", 999)), false},
		{"digitsTooMany", repeated(strings.Repeat("7", 1<<20)), true},
		{"deep", []byte(strings.Repeat("[", 1<<20)), true},
		{"marks", []byte(`"e` + strings.Repeat("\u0301\u0323", 1<<18) + `"`), false},
		{"surrogates", repeated(`"\ud800"`), false},
		{"keysReversed", append(append([]byte("{"), distinct(func(i int) string {
			return `"` + strings.Repeat("k", 8) + string(rune('a'+i*7%26)) + itoa(1000000-i) + `":1,`
		})...), `"z":1}`...), false},
		{"keysEqual", append(append([]byte("{"), distinct(func(int) string { return `"k":1,` })...), `"k":1}`...), false},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Parse(c.data, Limits{}); (err != nil) != c.fail {
					b.Fatal(err)
				}
			}
		})
		if c.fail {
			continue
		}
		b.Run(c.name+"/any", func(b *testing.B) {
			v := mustParse(b, string(c.data))
			for b.Loop() {
				v.Any()
			}
		})
	}
}
