// Package lineagetest makes OpenLineage events for tests: Event builds one
// body, Stream a random history in which everything that is hard occurs.
//
// Start at Stream.
package lineagetest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/graphd/graphd/internal/openlineage"
)

// Object is a JSON object. Members that are facets need no _producer and no
// _schemaURL: Body adds them.
type Object = map[string]any

// Event is an OpenLineage event in the making: a run event if Run is set, else
// a job event if Job is, else a dataset event of Of.
type Event struct {
	Type     openlineage.EventType
	Time     time.Time
	Producer string // "" is DefaultProducer
	// Run is a short name; the body has a UUID computed from it.
	Run       string
	Job       openlineage.Name
	RunFacets Object
	JobFacets Object
	Inputs    []Dataset
	Outputs   []Dataset
	Of        *Dataset
}

// Dataset is a dataset named in an event.
type Dataset struct {
	Name   openlineage.Name
	Facets Object
}

// The producers of which the slot rules know something, and one of which they
// know nothing.
const (
	DefaultProducer = "https://example.com/scheduler/1"
	DagsterProducer = "https://github.com/OpenLineage/OpenLineage/tree/1.38.0/integration/dagster"
	SparkProducer   = "https://github.com/OpenLineage/OpenLineage/tree/1.53.0/integration/spark"
	AirflowProducer = "https://github.com/apache/airflow/tree/providers-openlineage/2.20.3"
)

const schemaURL = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/"

// RunID returns the UUID that a short name of a run stands for.
func RunID(short string) string {
	h := fnv.New64a()
	h.Write([]byte(short))
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", h.Sum64()&0xffffffffffff)
}

// Body returns the event's JSON, the same bytes for the same event.
func (e *Event) Body() []byte {
	producer := e.Producer
	if producer == "" {
		producer = DefaultProducer
	}
	body := Object{"eventTime": e.Time.Format(time.RFC3339Nano), "producer": producer}
	kind := "DatasetEvent"
	if e.Job.Name != "" {
		kind = "JobEvent"
		body["job"] = Object{"namespace": e.Job.Namespace, "name": e.Job.Name, "facets": signed(e.JobFacets, producer)}
		for key, list := range map[string][]Dataset{"inputs": e.Inputs, "outputs": e.Outputs} {
			if len(list) > 0 {
				body[key] = datasets(list, producer)
			}
		}
	}
	if e.Run != "" {
		kind = "RunEvent"
		body["run"] = Object{"runId": RunID(e.Run), "facets": signed(e.RunFacets, producer)}
		if e.Type != "" {
			body["eventType"] = e.Type
		}
	}
	if e.Of != nil {
		body["dataset"] = datasets([]Dataset{*e.Of}, producer)[0]
	}
	body["schemaURL"] = schemaURL + kind
	raw, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("an event that is no JSON: %v", err)) // a mistake of the test
	}
	return raw
}

func datasets(list []Dataset, producer string) (out []Object) {
	for _, d := range list {
		out = append(out, Object{"namespace": d.Name.Namespace, "name": d.Name.Name, "facets": signed(d.Facets, producer)})
	}
	return out
}

// signed adds to each facet what every facet has.
func signed(facets Object, producer string) Object {
	out := Object{}
	for key, v := range facets {
		if facet, ok := v.(Object); ok {
			full := Object{"_producer": producer, "_schemaURL": "https://openlineage.io/spec/facets/1-0-0/" + key + ".json"}
			for member, value := range facet {
				full[member] = value
			}
			v = full
		}
		out[key] = v
	}
	return out
}

// Table names a dataset: a path where its name has a scheme, else a table.
func Table(name string) openlineage.Name {
	if scheme, path, ok := strings.Cut(name, "://"); ok {
		bucket, key, _ := strings.Cut(path, "/")
		return openlineage.Name{Namespace: scheme + "://" + bucket, Name: key}
	}
	return openlineage.Name{Namespace: "db", Name: name}
}

// Job names a job.
func Job(name string) openlineage.Name { return openlineage.Name{Namespace: "ns", Name: name} }

func nameObject(n openlineage.Name) Object { return Object{"namespace": n.Namespace, "name": n.Name} }

// Parent is the parent facet that names a run.
func Parent(job openlineage.Name, run string) Object {
	return Object{"run": Object{"runId": RunID(run)}, "job": nameObject(job)}
}

// NominalTime is the nominalTime facet of a slot.
func NominalTime(start string) Object { return Object{"nominalStartTime": start} }

// JobType is the jobType facet; emission is the content mode, "" for none.
func JobType(processing, emission string) Object {
	o := Object{"processingType": processing, "integration": "TEST"}
	if emission != "" {
		o["emissionPattern"] = Object{"eventTrigger": "SCHEDULED", "eventContentMode": emission}
	}
	return o
}

// Airflow is the airflow facet of a task's run, or with no task the
// airflowDagRun facet of a DAG's run.
type Airflow struct {
	Dag, RunID, Task string
	Map              int // -1 for none
	RunType          string
	Owner            string // of the DAG: a drifting field
}

// Facet returns the facet and its key.
func (a Airflow) Facet() (key string, facet Object) {
	facet = Object{"dagRun": Object{"run_id": a.RunID, "dag_id": a.Dag}}
	dag := Object{"dag_id": a.Dag}
	if a.RunType != "" {
		facet["dagRun"].(Object)["run_type"] = a.RunType
	}
	if a.Owner != "" {
		dag["owner"] = a.Owner
	}
	facet["dag"] = dag
	if a.Task == "" {
		return "airflowDagRun", facet
	}
	facet["task"] = Object{"task_id": a.Task}
	facet["taskInstance"] = Object{"map_index": a.Map}
	return "airflow", facet
}

// Column is one entry of a columnLineage facet: the source's field feeds the
// output's, or with an empty Field the whole output.
type Column struct {
	Field       string
	Source      openlineage.Name
	SourceField string
}

// ColumnLineage is the columnLineage facet of these entries.
func ColumnLineage(entries []Column) Object {
	fields, whole := Object{}, []any{}
	for _, c := range entries {
		in := nameObject(c.Source)
		in["field"] = c.SourceField
		if c.Field == "" {
			whole = append(whole, in)
			continue
		}
		old, _ := fields[c.Field].(Object)
		if old == nil {
			old = Object{"inputFields": []any{}}
		}
		old["inputFields"] = append(old["inputFields"].([]any), in)
		fields[c.Field] = old
	}
	o := Object{"fields": fields}
	if len(whole) > 0 {
		o["dataset"] = whole
	}
	return o
}

// End is an end of an explicit lineage entry. A job without a name is the
// event's own.
type End struct {
	Job  bool
	Name openlineage.Name
}

func (x End) object() Object {
	o := Object{"type": "DATASET"}
	if x.Job {
		o["type"] = "JOB"
	}
	if x.Name.Name != "" {
		o["namespace"], o["name"] = x.Name.Namespace, x.Name.Name
	}
	return o
}

// Entry is one entry of an explicit lineage facet: what feeds Target. Nil
// Inputs say nothing, empty ones that there is no upstream.
type Entry struct {
	Target End
	Inputs []End
}

// Lineage is a job's lineage facet.
func Lineage(entries []Entry) Object {
	list := []any{}
	for _, e := range entries {
		o := e.Target.object()
		if e.Inputs != nil {
			o["inputs"] = ends(e.Inputs)
		}
		list = append(list, o)
	}
	return Object{"entries": list}
}

// DatasetLineage is a dataset's lineage facet.
func DatasetLineage(inputs []End) Object {
	if inputs == nil {
		return Object{}
	}
	return Object{"inputs": ends(inputs)}
}

func ends(list []End) []any {
	out := []any{}
	for _, x := range list {
		out = append(out, x.object())
	}
	return out
}

// Lifecycle is the lifecycleStateChange facet; previous is "" unless the change
// is a RENAME.
func Lifecycle(change, previous string) Object {
	o := Object{"lifecycleStateChange": change}
	if previous != "" {
		o["previousIdentifier"] = nameObject(Table(previous))
	}
	return o
}

// Symlinks is the symlinks facet that gives a dataset other names.
func Symlinks(others ...string) Object {
	list := []any{}
	for _, other := range others {
		o := nameObject(Table(other))
		o["type"] = "TABLE"
		list = append(list, o)
	}
	return Object{"identifiers": list}
}

// Deleted is the tombstone of a facet. The members that the facet's schema
// requires must be added to it.
func Deleted(members Object) Object {
	members["_deleted"] = true
	return members
}
