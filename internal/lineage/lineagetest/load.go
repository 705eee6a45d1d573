package lineagetest

import (
	"fmt"
	"strings"
	"time"
)

// The load: jobs that run again and again, each run a START and a COMPLETE, some
// thousand events apart as they are where many jobs run at once. An event has
// about 3 KB, with the facets of an Airflow task that ran a query: its run in a
// slot of its own, two inputs and an output with their schemas, and on COMPLETE the
// output's column lineage.

const (
	loadJobs     = 5_000
	loadColumns  = 4
	loadInFlight = 2_000 // runs between a START and its COMPLETE
)

var loadEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// LoadEvent returns the nth event of a load for measurements (see above).
func LoadEvent(n int) []byte {
	// Events come in blocks of 2*loadInFlight: the STARTs of so many runs, then their
	// COMPLETEs.
	block, within := n/(2*loadInFlight), n%(2*loadInFlight)
	run, complete := block*loadInFlight+within%loadInFlight, within >= loadInFlight
	job, slot := run%loadJobs, run/loadJobs
	kind, offset := "START", 0
	if complete {
		kind, offset = "COMPLETE", 1
	}
	at := loadEpoch.Add(time.Duration(slot)*time.Hour + time.Duration(job)*100*time.Millisecond + time.Duration(offset)*10*time.Minute)
	const base = `"_producer":"https://github.com/apache/airflow/tree/providers-openlineage/2.7.1","_schemaURL":"https://openlineage.io/spec/facets/1-0-0/%s.json#/$defs/%s"`
	facet := func(name string) string { return fmt.Sprintf(base, name, name) }
	var b strings.Builder
	fmt.Fprintf(&b, `{"eventType":%q,"eventTime":%q,"producer":"https://github.com/apache/airflow/tree/providers-openlineage/2.7.1","schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",`,
		kind, at.Format("2006-01-02T15:04:05.000Z"))
	fmt.Fprintf(&b, `"run":{"runId":"0198%04x-%04x-7%03x-8000-%012x","facets":{`, job>>4&0xffff, slot&0xffff, job&0xfff, run)
	fmt.Fprintf(&b, `"nominalTime":{%s,"nominalStartTime":%q},`, facet("NominalTimeRunFacet"), loadEpoch.Add(time.Duration(slot)*time.Hour).Format(time.RFC3339))
	fmt.Fprintf(&b, `"processing_engine":{%s,"version":"3.1.0","name":"Airflow","openlineageAdapterVersion":"2.7.1"},`, facet("ProcessingEngineRunFacet"))
	fmt.Fprintf(&b, `"externalQuery":{%s,"externalQueryId":"01b%09x-0000-%04x","source":"snowflake://account"}}},`, facet("ExternalQueryRunFacet"), run, offset)
	fmt.Fprintf(&b, `"job":{"namespace":"airflow-production","name":"team_%02d.pipeline_%04d.load_table","facets":{`, job%50, job)
	fmt.Fprintf(&b, `"jobType":{%s,"processingType":"BATCH","integration":"AIRFLOW","jobType":"TASK"},`, facet("JobTypeJobFacet"))
	fmt.Fprintf(&b, `"ownership":{%s,"owners":[{"name":"team_%02d","type":"OWNER"}]},`, facet("OwnershipJobFacet"), job%50)
	fmt.Fprintf(&b, `"sql":{%s,"query":"insert into warehouse.mart.table_%04d select a.* from warehouse.raw.source_%04d a join warehouse.raw.source_%04d b on a.id = b.id"}}},`,
		facet("SQLJobFacet"), job, job, (job+1)%loadJobs)
	dataset := func(name, extra string) {
		fmt.Fprintf(&b, `{"namespace":"snowflake://account","name":%q,"facets":{"schema":{%s,"fields":[`, name, facet("SchemaDatasetFacet"))
		for c := range loadColumns {
			fmt.Fprintf(&b, `%s{"name":"column_%d","type":"VARCHAR"}`, loadComma(c), c)
		}
		fmt.Fprintf(&b, `]}%s}}`, extra)
	}
	b.WriteString(`"inputs":[`)
	dataset(fmt.Sprintf("warehouse.raw.source_%04d", job), "")
	b.WriteByte(',')
	dataset(fmt.Sprintf("warehouse.raw.source_%04d", (job+1)%loadJobs), "")
	b.WriteString(`],"outputs":[`)
	lineage := ""
	if complete {
		var l strings.Builder
		fmt.Fprintf(&l, `,"columnLineage":{%s,"fields":{`, facet("ColumnLineageDatasetFacet"))
		for c := range loadColumns {
			fmt.Fprintf(&l, `%s"column_%d":{"inputFields":[{"namespace":"snowflake://account","name":"warehouse.raw.source_%04d","field":"column_%d"}]}`, loadComma(c), c, job, c)
		}
		l.WriteString(`}}`)
		lineage = l.String()
	}
	dataset(fmt.Sprintf("warehouse.mart.table_%04d", job), lineage)
	b.WriteString(`]}`)
	return []byte(b.String())
}

func loadComma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}
