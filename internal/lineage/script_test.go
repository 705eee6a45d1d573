package lineage_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/lineage/lineagetest"
	"github.com/graphd/graphd/internal/openlineage"
)

// scriptCase is one case of testdata/cases.txt: events, and answers that hold
// whatever their order.
type scriptCase struct {
	name    string
	bodies  [][]byte
	answers []string
}

func readCases(t *testing.T, path string) (cases []*scriptCase) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n, line := range strings.Split(string(raw), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, ok := strings.CutPrefix(line, "case "); ok {
			cases = append(cases, &scriptCase{name: name})
			continue
		}
		c := cases[len(cases)-1]
		if answer, ok := strings.CutPrefix(line, "=> "); ok {
			c.answers = append(c.answers, answer)
			continue
		}
		e, err := parseEvent(strings.Fields(line))
		if err != nil {
			t.Fatalf("%s:%d: %v", path, n+1, err)
		}
		c.bodies = append(c.bodies, e.Body())
	}
	return cases
}

// scriptStart is minute 0.
var scriptStart = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// parseEvent reads TYPE minute JOB/run[#map] word=value...
func parseEvent(words []string) (*lineagetest.Event, error) {
	minute, err := strconv.Atoi(words[1])
	if err != nil {
		return nil, err
	}
	e := &lineagetest.Event{
		Time:      scriptStart.Add(time.Duration(minute) * time.Minute),
		RunFacets: lineagetest.Object{}, JobFacets: lineagetest.Object{},
	}
	s := scriptEvent{e: e, airflow: lineagetest.Airflow{Map: fact.NoMap}}
	switch words[0] {
	case "JOB":
		e.Job = lineagetest.Job(words[2])
	case "DATASET":
		e.Of = &lineagetest.Dataset{Name: lineagetest.Table(words[2]), Facets: lineagetest.Object{}}
	default:
		e.Type = openlineage.EventType(words[0])
		job, run := s.run(words[2])
		e.Job, e.Run = lineagetest.Job(job), run
	}
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		if err := s.word(key, value); err != nil {
			return nil, err
		}
	}
	if s.airflow.Dag != "" {
		key, facet := s.airflow.Facet()
		e.RunFacets[key] = facet
	}
	if s.entries != nil {
		e.JobFacets["lineage"] = lineagetest.Lineage(s.entries)
	}
	return e, nil
}

type scriptEvent struct {
	e       *lineagetest.Event
	airflow lineagetest.Airflow
	entries []lineagetest.Entry
}

// run splits JOB/run#map.
func (s *scriptEvent) run(word string) (job, run string) {
	job, run, _ = strings.Cut(word, "/")
	if short, m, ok := strings.Cut(run, "#"); ok {
		run = short
		s.airflow.Map, _ = strconv.Atoi(m)
	}
	return job, run
}

// word applies one word=value.
func (s *scriptEvent) word(key, value string) error {
	e := s.e
	head, tail, cut := strings.Cut(value, ":")
	switch key {
	case "in":
		for _, name := range strings.Split(value, ",") {
			e.Inputs = append(e.Inputs, lineagetest.Dataset{Name: lineagetest.Table(name)})
		}
	case "out":
		for _, name := range strings.Split(value, ",") {
			e.Outputs = append(e.Outputs, lineagetest.Dataset{Name: lineagetest.Table(name), Facets: lineagetest.Object{}})
		}
	case "slot": // a day of January, or an instant
		if len(value) <= 2 {
			value = fmt.Sprintf("2026-01-%02sT00:00:00Z", value)
		}
		e.RunFacets["nominalTime"] = lineagetest.NominalTime(value)
	case "parent":
		job, run := (&scriptEvent{}).run(value)
		e.RunFacets["parent"] = lineagetest.Parent(lineagetest.Job(job), run)
	case "airflow": // dag/run_id/task, or dag/run_id for a DAG's own run
		parts := append(strings.Split(value, "/"), "")
		s.airflow.Dag, s.airflow.RunID, s.airflow.Task = parts[0], parts[1], parts[2]
	case "runtype":
		s.airflow.RunType = value
	case "owner": // of the DAG, or without one of the job
		s.airflow.Owner = value
		e.JobFacets["ownership"] = lineagetest.Object{"owners": []any{lineagetest.Object{"name": value}}}
	case "source": // input:name of its data source
		s.input(head).Facets = lineagetest.Object{"dataSource": lineagetest.Object{"name": tail}}
	case "producer":
		e.Producer = map[string]string{"spark": lineagetest.SparkProducer, "dagster": lineagetest.DagsterProducer}[value]
	case "type":
		e.JobFacets["jobType"] = lineagetest.JobType(value, "")
	case "emission":
		e.JobFacets["jobType"] = lineagetest.JobType("BATCH", value)
	case "param": // raw JSON
		e.RunFacets["executionParameters"] = lineagetest.Object{
			"parameters": []any{lineagetest.Object{"key": "p", "value": json.RawMessage(value)}}}
	case "custom": // raw JSON
		e.RunFacets["custom"] = lineagetest.Object{"value": json.RawMessage(value)}
	case "cols": // output:source,source, or in a dataset event source,source
		facet := func(sources string) lineagetest.Object {
			var columns []lineagetest.Column
			for _, source := range strings.Split(sources, ",") {
				columns = append(columns, lineagetest.Column{Field: "x", Source: lineagetest.Table(source), SourceField: "y"})
			}
			return lineagetest.ColumnLineage(columns)
		}
		s.dataset(head).Facets["columnLineage"] = facet(tail)
	case "entry", "entries": // target:source,source (@ before a job), target: for no upstream
		if value == "none" {
			s.entries = []lineagetest.Entry{}
			return nil
		}
		entry := lineagetest.Entry{Target: parseEnd(head)}
		if cut {
			entry.Inputs = []lineagetest.End{}
			for _, source := range strings.FieldsFunc(tail, func(r rune) bool { return r == ',' }) {
				entry.Inputs = append(entry.Inputs, parseEnd(source))
			}
		}
		s.entries = append(s.entries, entry)
	case "outentry": // output:source,source
		var sources []lineagetest.End
		for _, source := range strings.Split(tail, ",") {
			sources = append(sources, parseEnd(source))
		}
		s.dataset(head).Facets["lineage"] = lineagetest.DatasetLineage(sources)
	case "tombstone": // of an output's lineage facet
		s.dataset(value).Facets["lineage"] = lineagetest.Deleted(lineagetest.Object{})
	case "from": // in a dataset event: its explicit source
		e.Of.Facets["lineage"] = lineagetest.DatasetLineage([]lineagetest.End{parseEnd(value)})
	case "retired":
		e.Of.Facets[value] = lineagetest.Object{}
	case "version": // output:version
		s.dataset(head).Facets["version"] = lineagetest.Object{"datasetVersion": tail}
	case "drop":
		s.dataset(value).Facets["lifecycleStateChange"] = lineagetest.Lifecycle("DROP", "")
	case "rename": // output:name before
		s.dataset(head).Facets["lifecycleStateChange"] = lineagetest.Lifecycle("RENAME", tail)
	case "symlink":
		e.Of.Facets["symlinks"] = lineagetest.Symlinks(value)
	case "desc":
		e.Of.Facets["documentation"] = lineagetest.Object{"description": value}
	default:
		return fmt.Errorf("unknown word %q", key)
	}
	return nil
}

func parseEnd(word string) lineagetest.End {
	if job, ok := strings.CutPrefix(word, "@"); ok {
		return lineagetest.End{Job: true, Name: lineagetest.Job(job)}
	}
	return lineagetest.End{Name: lineagetest.Table(word)}
}

func (s *scriptEvent) input(name string) *lineagetest.Dataset {
	for i := range s.e.Inputs {
		if s.e.Inputs[i].Name == lineagetest.Table(name) {
			return &s.e.Inputs[i]
		}
	}
	panic("no input " + name) // a mistake in the script
}

// dataset returns the output of that name, or the dataset event's.
func (s *scriptEvent) dataset(name string) *lineagetest.Dataset {
	if s.e.Of != nil {
		return s.e.Of
	}
	for i := range s.e.Outputs {
		if s.e.Outputs[i].Name == lineagetest.Table(name) {
			return &s.e.Outputs[i]
		}
	}
	panic("no output " + name) // a mistake in the script
}
