package schema

import (
	"cmp"
	"slices"

	"github.com/graphd/graphd/internal/openlineage"
)

// Container names the place of a facet in an event. The same key means
// different things in different containers: dataQualityMetrics of an input is
// another facet than dataQualityMetrics of a dataset.
type Container = openlineage.Container

// The containers of the standard, under the names that this package's tables
// use.
const (
	Run     = openlineage.RunFacets
	Job     = openlineage.JobFacets
	Dataset = openlineage.DatasetFacets
	Input   = openlineage.InputFacets
	Output  = openlineage.OutputFacets
)

// tombstones says whether a facet in this container can be withdrawn with
// "_deleted": true (core 2-0-2, JobFacet and DatasetFacet).
func tombstones(c Container) bool { return c == Job || c == Dataset }

// FacetType is one kind of facet that has a schema of its own.
type FacetType struct {
	Container  Container
	Key        string // the facet's key in its container
	ID         string // the $id of its schema, as published
	Definition string // the name under $defs of that schema
}

// typed lists every facet of the standard by the container that its published
// base type names (RunFacet, JobFacet, DatasetFacet, InputDatasetFacet,
// OutputDatasetFacet), which its file name does not always say:
// DataQualityAssertionsDatasetFacet is a facet of inputs. Two files define a
// facet for two containers each.
var typed = []struct {
	container Container
	key       string
	file      string
	def       string // empty: the file's name
}{
	{Run, "environmentVariables", "EnvironmentVariablesRunFacet", ""},
	{Run, "errorMessage", "ErrorMessageRunFacet", ""},
	{Run, "executionParameters", "ExecutionParametersRunFacet", ""},
	{Run, "externalQuery", "ExternalQueryRunFacet", ""},
	{Run, "extractionError", "ExtractionErrorRunFacet", ""},
	{Run, "jobDependencies", "JobDependenciesRunFacet", ""},
	{Run, "nominalTime", "NominalTimeRunFacet", ""},
	{Run, "parent", "ParentRunFacet", ""},
	{Run, "processing_engine", "ProcessingEngineRunFacet", ""},
	{Run, "tags", "TagsRunFacet", ""},
	{Run, "test", "TestRunFacet", ""},

	{Job, "documentation", "DocumentationJobFacet", ""},
	{Job, "jobType", "JobTypeJobFacet", ""},
	{Job, "lineage", "LineageFacet", "LineageJobFacet"},
	{Job, "ownership", "OwnershipJobFacet", ""},
	{Job, "sourceCode", "SourceCodeJobFacet", ""},
	{Job, "sourceCodeLocation", "SourceCodeLocationJobFacet", ""},
	{Job, "sql", "SQLJobFacet", ""},
	{Job, "tags", "TagsJobFacet", ""},

	{Dataset, "catalog", "CatalogDatasetFacet", ""},
	{Dataset, "columnLineage", "ColumnLineageDatasetFacet", ""},
	{Dataset, "dataQualityMetrics", "DataQualityMetricsDatasetFacet", ""},
	{Dataset, "dataSource", "DatasourceDatasetFacet", ""},
	{Dataset, "datasetType", "DatasetTypeDatasetFacet", ""},
	{Dataset, "documentation", "DocumentationDatasetFacet", ""},
	{Dataset, "hierarchy", "HierarchyDatasetFacet", ""},
	{Dataset, "lifecycleStateChange", "LifecycleStateChangeDatasetFacet", ""},
	{Dataset, "lineage", "LineageFacet", "LineageDatasetFacet"},
	{Dataset, "ownership", "OwnershipDatasetFacet", ""},
	{Dataset, "schema", "SchemaDatasetFacet", ""},
	{Dataset, "storage", "StorageDatasetFacet", ""},
	{Dataset, "symlinks", "SymlinksDatasetFacet", ""},
	{Dataset, "tags", "TagsDatasetFacet", ""},
	{Dataset, "version", "DatasetVersionDatasetFacet", ""},

	{Input, "dataQualityAssertions", "DataQualityAssertionsDatasetFacet", ""},
	{Input, "dataQualityMetrics", "DataQualityMetricsInputDatasetFacet", ""},
	{Input, "inputStatistics", "InputStatisticsInputDatasetFacet", ""},
	{Input, "subset", "BaseSubsetDatasetFacet", "InputSubsetInputDatasetFacet"},

	{Output, "outputStatistics", "OutputStatisticsOutputDatasetFacet", ""},
	{Output, "subset", "BaseSubsetDatasetFacet", "OutputSubsetOutputDatasetFacet"},
}

// TypedFacets returns every (container, key) that has a schema, sorted by
// container, then key. It reads the embedded files and compiles nothing; a
// file that New would refuse makes it panic.
func TypedFacets() []FacetType {
	files, err := readFiles(embedded)
	if err != nil {
		panic("schema: " + err.Error())
	}
	out := make([]FacetType, 0, len(typed))
	for _, t := range typed {
		out = append(out, FacetType{
			Container:  t.container,
			Key:        t.key,
			ID:         files[facetFile(t.file)].id,
			Definition: cmp.Or(t.def, t.file),
		})
	}
	slices.SortFunc(out, func(a, b FacetType) int {
		return cmp.Or(cmp.Compare(a.Container, b.Container), cmp.Compare(a.Key, b.Key))
	})
	return out
}
