package normalize

import (
	"fmt"

	"github.com/graphd/graphd/internal/openlineage"
)

// Class is what a field of an event is to its identity. Every field belongs to
// exactly one.
type Class uint8

// The classes of fields (docs/identity.md, Classes of field).
const (
	// Identity is in the event ID. It is the default: when uncertain, include. A
	// duplicate that survives is visible and fixable, a distinct event that
	// vanished is neither.
	Identity Class = 1 << iota
	// Drifting describes an entity and changes with redeployments: in neither
	// the event ID nor the content digest of a run event.
	Drifting
	// Fixed describes an entity and should not change under one event ID: in the
	// content digest of a run event.
	Fixed
	// Transport tells how and when the event was made and sent: in neither,
	// stored for querying.
	Transport
)

// String returns the class's name in documentation and configuration.
func (c Class) String() string {
	switch c {
	case Identity:
		return "identity"
	case Drifting:
		return "drifting"
	case Fixed:
		return "fixed"
	case Transport:
		return "transport"
	}
	return "unknown"
}

// MarshalText writes the class's name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a class's name.
func (c *Class) UnmarshalText(text []byte) error {
	for _, class := range []Class{Identity, Drifting, Fixed, Transport} {
		if class.String() == string(text) {
			*c = class
			return nil
		}
	}
	return fmt.Errorf("no class %q: want identity, drifting, fixed or transport", text)
}

// EventRoot is the container of fields outside any facet: their Facet is "".
const EventRoot openlineage.Container = "event"

// ClassRule gives a class to a field of events.
type ClassRule struct {
	// Producer limits the rule to events whose producer matches this glob, in
	// which * stands for any text; "" matches every producer.
	Producer  string                `json:"producer,omitempty"`
	Container openlineage.Container `json:"container"`
	// Facet is the facet's key; a last * stands for any ending.
	Facet string `json:"facet"`
	// Path leads from the facet to the field: member names joined by dots, * for
	// any member, [] for the elements of an array, [key=value] for those elements
	// whose member has that value. "" is the whole facet.
	Path  string `json:"path"`
	Class Class  `json:"class"`
}

const (
	run     = openlineage.RunFacets
	job     = openlineage.JobFacets
	dataset = openlineage.DatasetFacets
	input   = openlineage.InputFacets
	output  = openlineage.OutputFacets
)

// classTable is the contract: everything that it does not name is Identity.
// docs/identity.md is generated from it. A change here is a new identity
// version, since the table's digest is part of it.
var classTable = concat(
	rules(EventRoot, "", Transport, "eventTime", "producer", "schemaURL", "run.runId"),

	// Who made an event and by which schema says nothing about what it means.
	baseMembers(run, job, dataset, input, output),
	// Facets that a parent facet forwards carry the same base members.
	rules(run, "parent", Transport,
		"run.runId", "root.run.runId",
		"run.facets.*._producer", "run.facets.*._schemaURL", "job.facets.*._producer", "job.facets.*._schemaURL",
		"root.run.facets.*._producer", "root.run.facets.*._schemaURL", "root.job.facets.*._producer", "root.job.facets.*._schemaURL"),
	rules(run, "jobDependencies", Transport,
		"upstream[].run.runId", "downstream[].run.runId",
		"upstream[].airflow.asset_events[].asset_event_id", "upstream[].airflow.asset_events[].asset_id",
		"downstream[].airflow.asset_events[].asset_event_id", "downstream[].airflow.asset_events[].asset_id"),
	rules(job, "lineage", Transport, "entries[].runId", "entries[].inputs[].runId", "entries[].fields.*.inputs[].runId"),
	rules(dataset, "lineage", Transport, "inputs[].runId", "fields.*.inputs[].runId"),

	whole(run, Transport, "errorMessage", "extractionError", "externalQuery", "processing_engine", "environmentVariables"),
	rules(run, "nominalTime", Transport, "nominalEndTime"),
	rules(run, "tags", Transport, "tags[key=openlineage_client_version]"),

	// Airflow.
	rules(run, "airflow", Transport, "taskUuid",
		"taskInstance.try_number", "taskInstance.log_url", "taskInstance.duration", "taskInstance.queued_dttm",
		"taskInstance.pool", "taskInstance.start_date", "taskInstance.end_date", "taskInstance.pid",
		"taskInstance.hostname", "taskInstance.dag_bundle_name"),
	airflowRun("airflow"), airflowRun("airflowDagRun"),
	rules(run, "airflow", Drifting,
		"task.owner", "task.queue", "task.pool", "task.priority_weight", "task.weight_rule", "task.retries",
		"task.retry_exponential_backoff", "task.trigger_rule", "task.depends_on_past", "task.wait_for_downstream",
		"task.wait_for_past_depends_before_skipping", "task.ignore_first_depends_on_past", "task.upstream_task_ids",
		"task.downstream_task_ids", "task.operator_class", "task.operator_class_path", "task.operator_provider_version",
		"task.is_setup", "task.is_teardown", "task.mapped", "task.multiple_outputs", "task.task_group",
		"task.executor_config", "task.max_active_tis_per_dagrun", "task.inlets", "task.outlets", "task.deferrable"),
	whole(run, Transport, "airflowState", "airflow_mappedTask", "unknownSourceAttribute"),
	whole(job, Drifting, "airflow"),

	// Spark. A dot after spark is part of the facet's key (spark.logicalPlan).
	whole(run, Transport, "spark_*", "spark.*", "environment-properties"),

	// dbt.
	whole(run, Transport, "dbt_run", "dbt_version"),
	whole(job, Drifting, "dbt_node"),
	whole(dataset, Drifting, "dbt_model"),

	// Flink counts checkpoints, Trino names its query, Iceberg reports a commit:
	// each of one execution.
	whole(run, Transport, "checkpoints", "trino_query_statistics"),
	rules(run, "trino_metadata", Transport, "query_id", "queryId", "transaction_id", "transactionId"),
	rules(run, "trino_query_context", Transport, "query_id", "queryId", "server_address", "serverAddress", "remote_client_address", "remoteClientAddress"),
	whole(input, Transport, "icebergScanReport"),
	whole(output, Transport, "icebergCommitReport"),

	// What describes an entity.
	whole(job, Drifting, "documentation", "ownership", "tags"),
	whole(dataset, Drifting, "documentation", "ownership", "tags"),
	whole(job, Fixed, "jobType"),
	rules(job, "jobType", Identity, "processingType"),
	whole(dataset, Fixed, "dataSource", "storage", "catalog", "hierarchy", "datasetType"),
)

// FieldRule names a field of events; its members are as in ClassRule.
type FieldRule struct {
	Container openlineage.Container `json:"container"`
	Facet     string                `json:"facet"`
	Path      string                `json:"path"`
}

// setTable lists the arrays whose order and repetitions say nothing; every other
// array keeps its order.
var setTable = []FieldRule{
	{EventRoot, "", "inputs"}, {EventRoot, "", "outputs"},
	{run, "tags", "tags"}, {job, "tags", "tags"}, {dataset, "tags", "tags"},
	{dataset, "symlinks", "identifiers"},
	{job, "ownership", "owners"}, {dataset, "ownership", "owners"},
	{dataset, "columnLineage", "fields.*.inputFields"}, {dataset, "columnLineage", "fields.*.inputFields[].transformations"},
	{dataset, "columnLineage", "dataset"}, {dataset, "columnLineage", "dataset[].transformations"},
	{job, "lineage", "entries"}, {job, "lineage", "entries[].inputs"}, {job, "lineage", "entries[].inputs[].transformations"},
	{job, "lineage", "entries[].fields.*.inputs"}, {job, "lineage", "entries[].fields.*.inputs[].transformations"},
	{dataset, "lineage", "inputs"}, {dataset, "lineage", "inputs[].transformations"},
	{dataset, "lineage", "fields.*.inputs"}, {dataset, "lineage", "fields.*.inputs[].transformations"},
	{run, "executionParameters", "parameters"},
	{run, "jobDependencies", "upstream"}, {run, "jobDependencies", "downstream"},
	{dataset, "dataQualityAssertions", "assertions"}, {input, "dataQualityAssertions", "assertions"},
	{run, "test", "tests"},
}

// keptEmpty lists what stays in the identity document although it is empty:
// there the standard tells absent and empty apart. An explicit lineage facet
// says that nothing more is to be inferred, "inputs": [] that there is no
// upstream.
var keptEmpty = []FieldRule{
	{job, "lineage", ""}, {job, "lineage", "entries[].inputs"}, {job, "lineage", "entries[].fields.*.inputs"},
	{dataset, "lineage", ""}, {dataset, "lineage", "inputs"}, {dataset, "lineage", "fields.*.inputs"},
}

// credentialTable lists the connection URIs, whose credentials are removed
// wherever they are hashed or kept: a password is no identity, and changing it
// is no collision.
var credentialTable = []FieldRule{{dataset, "dataSource", "uri"}}

// credentialParameters are the parameters of a connection URI that are
// credentials: the letters and digits of their names in lower case, in which *
// stands for any text.
var credentialParameters = []string{
	"user", "sfuser", "dbuser", "*username", "*userid", "uid", "login", "logdata",
	"*password*", "*passwd*", "*pwd*", "*passphrase*", "*passcode*", "*pass", "pw",
	"*secret*", "*token*", "*credential*", "*authorization*", "*bearer*", "jwt",
	"key", "*apikey*", "*accesskey*", "*accountkey*", "*authkey*", "*encryptionkey*", "*functionkey*", "*masterkey*",
	"*privatekey*", "*pvtkey*", "*sharedkey*", "*storagekey*", "*subscriptionkey*",
	"sas", "sig", "*signature", "*sharedaccess*",
}

// instantMembers are the members whose times are written as instants in UTC
// wherever they stand, since they fill slots.
var instantMembers = []string{nominalStart}

func airflowRun(facet string) []ClassRule {
	return concat(
		rules(run, facet, Transport,
			"dagRun.start_date", "dagRun.end_date", "dagRun.duration", "dagRun.clear_number", "dagRun.run_after",
			"dagRun.triggering_user_name", "dagRun.triggered_by", "dagRun.note", "dagRun.dag_version_id",
			"dagRun.dag_version_number", "dagRun.dag_bundle_name", "dagRun.dag_bundle_version",
			// It carries the runIds of parents.
			"dagRun.conf.openlineage",
			"dag.fileloc"),
		rules(run, facet, Drifting,
			"dag.owner", "dag.owner_links", "dag.tags", "dag.description", "dag.timetable",
			"dag.timetable_summary", "dag.schedule_interval", "dag.start_date"))
}

func baseMembers(containers ...openlineage.Container) (out []ClassRule) {
	for _, c := range containers {
		out = append(out, rules(c, "*", Transport, "_producer", "_schemaURL")...)
	}
	return out
}

func rules(c openlineage.Container, facet string, class Class, paths ...string) (out []ClassRule) {
	for _, p := range paths {
		out = append(out, ClassRule{Container: c, Facet: facet, Path: p, Class: class})
	}
	return out
}

func whole(c openlineage.Container, class Class, facets ...string) (out []ClassRule) {
	for _, f := range facets {
		out = append(out, ClassRule{Container: c, Facet: f, Class: class})
	}
	return out
}

func concat(lists ...[]ClassRule) (out []ClassRule) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}
