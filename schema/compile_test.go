package schema

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// copied is the embedded files with one replacement in one of them.
func copied(t *testing.T, path, old, new string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(embedded, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(embedded, p)
		out[p] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if path != "" {
		text := string(out[path].Data)
		if !strings.Contains(text, old) {
			t.Fatalf("%s does not contain %s", path, old)
		}
		out[path].Data = []byte(strings.Replace(text, old, new, 1))
	}
	return out
}

// TestNewRefuses: whatever is wrong with a schema file must stop the program
// at its start, because the library would carry on with half of it.
func TestNewRefuses(t *testing.T) {
	const sql = "facets/SQLJobFacet.json"
	for name, test := range map[string]struct{ path, old, new, want string }{
		"no JSON":            {sql, `{`, `{{`, "invalid character"},
		"metaschema, type":   {sql, `"type": "string"`, `"type": "text"`, "compilation failed"},
		"metaschema, core":   {coreFile, `"required": ["runId"]`, `"required": "runId"`, "compilation failed"},
		"metaschema, unused": {sql, `"$defs": {`, `"$defs": {"Other": {"minLength": -1}, `, "compilation failed"},
		"dangling reference": {"facets/LineageFacet.json", `"LineageInput": {`, `"LineageSource": {`, "not found"},
		"outside reference":  {sql, `{"type": "string"}`, `{"$ref": "https://example.org/x.json"}`, "not embedded"},
		"file reference":     {sql, `{"type": "string"}`, `{"$ref": "file:///etc/hostname"}`, "not embedded"},
		"other draft":        {sql, "draft/2020-12/schema", "draft/2019-09/schema", "$schema"},
		"no id":              {sql, `"$id"`, `"$comment"`, "no $id"},
		"two of one id":      {sql, "1-1-0/SQLJobFacet", "1-0-1/SourceCodeJobFacet", "has the $id of"},
		"missing definition": {sql, `"SQLJobFacet": {`, `"SqlJobFacet": {`, "not found"},
		"accepts everything": {sql, `"required": ["_producer", "_schemaURL", "query"]`, `"required": []`, "asserts nothing"},
		"compared objects":   {sql, `"dialect": {"type": "string"}`, `"dialect": {"enum": [{"a": 1}]}`, "does not support"},
		"alternatives":       {sql, `"dialect": {"type": "string"}`, `"dialect": {"anyOf": [{"type": "string"}]}`, "does not support"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := compileAll(copied(t, test.path, test.old, test.new))
			if v != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
	files := copied(t, "", "", "")
	delete(files, sql)
	if _, err := compileAll(files); err == nil {
		t.Error("a missing file was not noticed")
	}
}

// TestLibraryForgetsFailures documents the reason for definition's probes and
// for one compiler per New: after a failed Compile the library gives a schema
// that accepts everything. When this test fails the library has been mended.
func TestLibraryForgetsFailures(t *testing.T) {
	const url = "https://example.org/s.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(url, strings.NewReader(`{"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/none"}}}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile(url); err == nil {
		t.Fatal("a dangling reference compiles")
	}
	s, err := c.Compile(url)
	if err != nil {
		t.Skipf("the second Compile fails too: %v", err)
	}
	if err := s.Validate(map[string]any{"a": 1}); err != nil {
		t.Errorf("the second Compile gives a schema that asserts: %v", err)
	}
	// Our own path, with a file that fails in the same way, twice.
	files, err := readFiles(copied(t, "facets/SQLJobFacet.json", `{"type": "string"}`, `{"$ref": "#/$defs/none"}`))
	if err != nil {
		t.Fatal(err)
	}
	own, err := newCompiler(files, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.definition("facets/SQLJobFacet.json", "SQLJobFacet"); err == nil {
		t.Fatal("a dangling reference compiles")
	}
	if s, err := own.definition("facets/SQLJobFacet.json", "SQLJobFacet"); err == nil && s.Validate(map[string]any{}) == nil {
		t.Error("definition gave a schema that accepts everything")
	}
}

func TestDigest(t *testing.T) {
	a, b := newValidator(t), newValidator(t)
	if a.Digest() != b.Digest() || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(a.Digest()) {
		t.Errorf("%s, %s", a.Digest(), b.Digest())
	}
	// Stored events name the rules they were held to. A change of this constant
	// begins a new era: make it only with a change of the schemas.
	if want := "e90ab1ebcd33b8990f526f622f2627522c51a25be1f67a11a8c5291ef5c3b47a"; a.Digest() != want {
		t.Errorf("the digest is %s, was %s", a.Digest(), want)
	}
	of := func(fsys fs.FS) string {
		v, err := compileAll(fsys)
		if err != nil {
			t.Fatal(err)
		}
		return v.Digest()
	}
	lineEnds := copied(t, "", "", "")
	for _, f := range lineEnds {
		f.Data = []byte(strings.ReplaceAll(string(f.Data), "\n", "\r\n"))
	}
	if of(lineEnds) != a.Digest() {
		t.Error("line ends change the digest")
	}
	if of(copied(t, "facets/SQLJobFacet.json", `"dialect"`, `"flavour"`)) == a.Digest() {
		t.Error("a renamed property does not change the digest")
	}
}

// TestOwnWording: the files hold rules only, no prose of the standard.
func TestOwnWording(t *testing.T) {
	files, err := readFiles(embedded)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 39 {
		t.Errorf("%d files, want the core and 38 facets", len(files))
	}
	for path, f := range files {
		var doc any
		if err := json.Unmarshal(f.text, &doc); err != nil {
			t.Fatal(err)
		}
		var visit func(v any, names bool)
		visit = func(v any, names bool) {
			switch v := v.(type) {
			case []any:
				for _, x := range v {
					visit(x, false)
				}
			case map[string]any:
				for k, x := range v {
					if !names && slices.Contains([]string{"description", "example", "examples", "title", "$comment"}, k) {
						t.Errorf("%s has a %s", path, k)
					}
					visit(x, !names && (k == "properties" || k == "$defs"))
				}
			}
		}
		visit(doc, false)
	}
}

// TestOneSchemaPerFacet: every file is dispatched to, and a facet lies under
// the key that its own file names.
func TestOneSchemaPerFacet(t *testing.T) {
	files, err := readFiles(embedded)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for path, f := range files {
		ids[f.id] = path
	}
	used := map[string]bool{}
	list := TypedFacets()
	for i, f := range list {
		path := ids[f.ID]
		used[path] = true
		var doc struct {
			Properties map[string]any `json:"properties"`
			Defs       map[string]struct {
				Required   []string       `json:"required"`
				Properties map[string]any `json:"properties"`
			} `json:"$defs"`
		}
		if err := json.Unmarshal(files[path].text, &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Properties) != 1 || doc.Properties[f.Key] == nil {
			t.Errorf("%s is not for the key %s", path, f.Key)
		}
		def := doc.Defs[f.Definition]
		for _, name := range []string{"_producer", "_schemaURL"} {
			if def.Properties[name] == nil || !slices.Contains(def.Required, name) {
				t.Errorf("%s: %s does not require %s", path, f.Definition, name)
			}
		}
		if _, ok := def.Properties["_deleted"]; ok != tombstones(f.Container) {
			t.Errorf("%s: %s has _deleted: %v", path, f.Definition, ok)
		}
		if i > 0 {
			if p := list[i-1]; p.Container > f.Container || p.Container == f.Container && p.Key >= f.Key {
				t.Errorf("%v before %v", p, f)
			}
		}
	}
	if len(used) != len(files)-1 {
		t.Errorf("%d of %d facet files are dispatched to", len(used), len(files)-1)
	}
}

func TestURIFastPath(t *testing.T) {
	library := jsonschema.Formats["uri"]
	base := []string{
		"", "https://", "http://h", "https://example.org/a/b.json#/$defs/X", "https://example.org?x=1&y=2#z", "https:///a",
		"https://a:80/", "https://u@h/", "https://[::1]/", "https://[::1", "HTTPS://x/", "http://a b/", "https://x/%zz", "https://x/%41",
		"https://-/", "https://./", "https://x/a#b#c", "https://x/?#", "ftp://x", "x", "//x/y", "urn:a:b", "https://x/\x00", "https://é/", "https://x/é",
	}
	for _, s := range base {
		if isURI(s) != library(s) {
			t.Errorf("%q: %v, the library says %v", s, isURI(s), library(s))
		}
	}
	// Every byte at every place of a plain one.
	const plain = "https://ab.c/d#e?f"
	for i := range len(plain) + 1 {
		for c := range 256 {
			s := plain[:i] + string([]byte{byte(c)}) + plain[i:]
			if isURI(s) != library(s) {
				t.Errorf("%q: %v, the library says %v", s, isURI(s), library(s))
			}
		}
	}
	if isURI(3) != library(3) {
		t.Error("a number")
	}
}
