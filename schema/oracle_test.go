package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/sharedtest"
)

// oracle is a set of schemas as the library alone reads them. It shares
// nothing with the code under test but the library: it finds the facets of an
// event by itself, in plain maps.
type oracle struct {
	core   *jsonschema.Schema
	facets map[Container]map[string]*jsonschema.Schema
	strict *oracle // the same with formats asserted; in it nil
}

// newOracle is the standard's own schemas, as published.
func newOracle(t testing.TB) *oracle {
	t.Helper()
	return newLibrary(t, os.DirFS(sharedtest.Shared(t, "data", "openlineage", "spec")))
}

// newLibrary compiles the core and the facets of fsys, which is laid out as
// this package's folder and the standard's are.
func newLibrary(t testing.TB, fsys fs.FS) *oracle {
	t.Helper()
	o := compileOracle(t, fsys, false)
	o.strict = compileOracle(t, fsys, true)
	return o
}

func compileOracle(t testing.TB, fsys fs.FS, assertFormat bool) *oracle {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat = assertFormat
	c.LoadURL = func(url string) (io.ReadCloser, error) { return nil, fmt.Errorf("no network: %s", url) }
	var core string
	for path, doc := range documents(t, fsys) {
		if err := c.AddResource(doc.ID, bytes.NewReader(doc.text)); err != nil {
			t.Fatal(err)
		}
		if path == coreFile {
			core = doc.ID
		}
	}
	compile := func(url string) *jsonschema.Schema {
		s, err := c.Compile(url)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	o := &oracle{core: compile(core), facets: map[Container]map[string]*jsonschema.Schema{}}
	for _, f := range TypedFacets() {
		if o.facets[f.Container] == nil {
			o.facets[f.Container] = map[string]*jsonschema.Schema{}
		}
		o.facets[f.Container][f.Key] = compile(f.ID + "#/$defs/" + f.Definition)
	}
	return o
}

type document struct {
	ID   string                     `json:"$id"`
	Defs map[string]json.RawMessage `json:"$defs"`
	text []byte
}

// documents reads the core and the facets, by path.
func documents(t testing.TB, fsys fs.FS) map[string]document {
	t.Helper()
	paths, err := fs.Glob(fsys, "facets/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal("no facets", err)
	}
	out := map[string]document{}
	for _, path := range append(paths, coreFile) {
		var doc document
		if doc.text, err = fs.ReadFile(fsys, path); err == nil {
			err = json.Unmarshal(doc.text, &doc)
		}
		if err != nil {
			t.Fatal(path, err)
		}
		out[path] = doc
	}
	return out
}

// TestDispatchAsPublished: each definition that builds on one of the standard's
// five base facets is dispatched to in the container of that base, and there
// are no others.
func TestDispatchAsPublished(t *testing.T) {
	containers := map[string]Container{
		"RunFacet": Run, "JobFacet": Job, "DatasetFacet": Dataset, "InputDatasetFacet": Input, "OutputDatasetFacet": Output,
	}
	published := map[FacetType]bool{}
	for path, doc := range documents(t, os.DirFS(sharedtest.Shared(t, "data", "openlineage", "spec"))) {
		var root struct {
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(doc.text, &root); err != nil {
			t.Fatal(err)
		}
		for name, text := range doc.Defs {
			var def struct {
				AllOf []struct {
					Ref string `json:"$ref"`
				} `json:"allOf"`
			}
			if path == coreFile || json.Unmarshal(text, &def) != nil || len(def.AllOf) == 0 {
				continue
			}
			base := def.AllOf[0].Ref[strings.LastIndex(def.AllOf[0].Ref, "/")+1:]
			for key := range root.Properties {
				published[FacetType{containers[base], key, doc.ID, name}] = true
			}
		}
	}
	for _, f := range TypedFacets() {
		if !published[f] {
			t.Errorf("%+v is dispatched to and not published so", f)
		}
		delete(published, f)
	}
	for f := range published {
		t.Errorf("%+v is published and not dispatched to", f)
	}
}

// verdict is what both sides are compared by: whether the core accepts, the
// pointers of the typed facets that are invalid, and, of an accepted event,
// whether a format is broken anywhere else.
type verdict struct {
	accepted bool
	invalid  []string
	warned   bool
}

func (v verdict) String() string {
	return fmt.Sprintf("accepted %v, invalid facets %q, warned %v", v.accepted, v.invalid, v.warned)
}

func (v verdict) equal(w verdict) bool {
	return v.accepted == w.accepted && slices.Equal(v.invalid, w.invalid) && v.warned == w.warned
}

func (o *oracle) verdict(doc any) verdict {
	if o.core.Validate(doc) != nil {
		return verdict{}
	}
	out := verdict{accepted: true, warned: o.strict.core.Validate(doc) != nil}
	check := func(c Container, place string, facets any) {
		m, _ := facets.(map[string]any)
		for key, facet := range m {
			s := o.facets[c][key]
			if f, _ := facet.(map[string]any); s == nil || (c == Job || c == Dataset) && f["_deleted"] == true {
				continue
			}
			if s.Validate(facet) != nil {
				out.invalid = append(out.invalid, place+"/"+key)
			} else if o.strict.facets[c][key].Validate(facet) != nil {
				out.warned = true
			}
		}
	}
	get := func(v any, key string) any { m, _ := v.(map[string]any); return m[key] }
	dataset := func(place string, d any) { check(Dataset, place+"/facets", get(d, "facets")) }
	list := func(key, facets string, c Container) {
		l, _ := get(doc, key).([]any)
		for i, d := range l {
			place := "/" + key + "/" + strconv.Itoa(i)
			dataset(place, d)
			check(c, place+"/"+facets, get(d, facets))
		}
	}
	event := doc.(map[string]any)
	_, hasRun := event["run"]
	_, hasJob := event["job"]
	_, hasDataset := event["dataset"]
	// The kind, by asking the three definitions, as their oneOf does.
	switch {
	case hasDataset && !(hasRun && hasJob) && (!hasJob || o.datasetWins(event)):
		dataset("/dataset", event["dataset"])
	default:
		if hasRun {
			check(Run, "/run/facets", get(event["run"], "facets"))
		}
		check(Job, "/job/facets", get(event["job"], "facets"))
		list("inputs", "inputFacets", Input)
		list("outputs", "outputFacets", Output)
	}
	slices.Sort(out.invalid)
	return out
}

// datasetWins tells, of an accepted event with job and dataset and no run,
// which of the two it is: without job only the dataset event can be accepted.
func (o *oracle) datasetWins(event map[string]any) bool {
	without := maps.Clone(event)
	delete(without, "job")
	return o.core.Validate(without) == nil
}

// own is the verdict of the code under test, which is also held to what its
// reports promise.
func own(t *testing.T, v *Validator, root *jsontree.Value) verdict {
	r := v.Validate(root)
	out := verdict{accepted: len(r.Violations) == 0}
	out.warned = out.accepted && len(r.Warnings) > 0
	sound := func(list []Violation) {
		for _, x := range list {
			if at := root.Lookup(x.Pointer); len(x.Pointer) < 90 && (at == nil || int(at.Off) != x.Offset) {
				t.Errorf("%q does not lead to offset %d", x.Pointer, x.Offset)
			}
			if x.Reason == "" || strings.Contains(x.Reason, "Of failed") || strings.Contains(x.Reason, "validate with") {
				t.Errorf("a reason nobody can act on: %q", x.Reason)
			}
		}
	}
	sound(r.Violations)
	sound(r.Warnings)
	for i := range r.Invalid {
		f := &r.Invalid[i]
		out.invalid = append(out.invalid, f.Pointer)
		sound(f.Violations)
		if len(f.Violations) == 0 || !r.IsInvalid(f.Value) {
			t.Errorf("%s is invalid without a reason or a mark", f.Pointer)
		}
	}
	slices.Sort(out.invalid)
	return out
}

// sample is one document to compare verdicts on.
type sample struct {
	name string
	root *jsontree.Value
}

// samples collects every example, event and recorded delivery of the shared
// data, the standard's example facets each in an event of its own.
func samples(t *testing.T) []sample {
	t.Helper()
	var out []sample
	seen := map[string]bool{}
	add := func(name string, text []byte) {
		if seen[string(text)] {
			return
		}
		seen[string(text)] = true
		root, _, err := jsontree.Parse(text, jsontree.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, sample{name, root})
	}
	spec := sharedtest.Shared(t, "data", "openlineage", "spec", "tests")
	for _, f := range TypedFacets() {
		file := strings.TrimSuffix(filepath.Base(f.ID), ".json")
		paths, _ := filepath.Glob(filepath.Join(spec, file, "*.json"))
		for _, path := range paths {
			var doc map[string]json.RawMessage
			text, err := os.ReadFile(path)
			if err = cmp.Or(err, json.Unmarshal(text, &doc)); err != nil {
				t.Fatal(err)
			}
			for key, facet := range doc {
				event, _ := withFacet(f.Container, key, string(facet))
				add(fmt.Sprintf("%s as %s facet", filepath.Base(path), f.Container), []byte(event))
			}
		}
	}
	for _, dir := range []string{spec, sharedtest.Shared(t, "data", "openlineage", "events")} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
				return err
			}
			text, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			add(rel, text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range sharedtest.RecordedStreams(t) {
		for _, d := range s.Deliveries {
			add(fmt.Sprintf("%s %d", s.Name, d.N), d.Body)
		}
	}
	return out
}
