package schema

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

//go:embed OpenLineage.json facets/*.json
var embedded embed.FS

const (
	draft    = "https://json-schema.org/draft/2020-12/schema"
	coreFile = "OpenLineage.json"
)

func facetFile(name string) string { return "facets/" + name + ".json" }

// file is one embedded schema: its text without insignificant white space (so
// that a checkout with other line ends has the same digest) and its $id.
type file struct {
	id   string
	text []byte
}

// readFiles reads every .json file of fsys, by path.
func readFiles(fsys fs.FS) (map[string]file, error) {
	files := map[string]file{}
	ids := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(fsys, path)
		if err != nil {
			return err
		}
		var head struct {
			Schema string `json:"$schema"`
			ID     string `json:"$id"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		// Another draft would be checked against another metaschema, and
		// would read some of the keywords differently.
		if head.Schema != draft {
			return fmt.Errorf("%s: $schema is %q, want %q", path, head.Schema, draft)
		}
		if head.ID == "" {
			return fmt.Errorf("%s: no $id", path)
		}
		if other, taken := ids[head.ID]; taken {
			return fmt.Errorf("%s: has the $id of %s", path, other)
		}
		ids[head.ID] = path
		var text bytes.Buffer
		if err := json.Compact(&text, raw); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		files[path] = file{id: head.ID, text: text.Bytes()}
		return nil
	})
	return files, err
}

// digest hashes the files in the order of their names and the dispatch table.
// Every part is preceded by its length, so no two sets share an encoding. The
// table is in it because it decides which schema a facet is held to.
func digest(files map[string]file) string {
	h := sha256.New()
	part := func(p []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write(p)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		part([]byte(name))
		part(files[name].text)
	}
	for _, t := range typed {
		part([]byte(t.container))
		part([]byte(t.key))
		part([]byte(facetFile(t.file)))
		part([]byte(cmp.Or(t.def, t.file)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// compiler compiles the files in one of the two forms.
type compiler struct {
	*jsonschema.Compiler
	files map[string]file
}

func newCompiler(files map[string]file, assertFormat bool) (*compiler, error) {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = assertFormat
	c.Formats["uri"] = isURI
	// The default loader reads file URLs.
	c.LoadURL = func(url string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("%s is not embedded", url)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := c.AddResource(files[name].id, bytes.NewReader(files[name].text)); err != nil {
			return nil, err
		}
	}
	return &compiler{c, files}, nil
}

// definition compiles one definition of one file. After any error the compiler
// must be thrown away: jsonschema v5 remembers the half-built schema, and
// compiling the same URL again returns it, without an error, as one that
// accepts everything.
func (c *compiler) definition(path, def string) (*jsonschema.Schema, error) {
	f, ok := c.files[path]
	if !ok {
		return nil, fmt.Errorf("%s is missing", path)
	}
	s, err := c.Compile(f.id + "#/$defs/" + def)
	if err != nil {
		return nil, err
	}
	// Every definition describes an object with required members. One that
	// lets these pass lost its content on the way here.
	for _, probe := range []any{nil, map[string]any{}} {
		if s.Validate(probe) == nil {
			return nil, fmt.Errorf("%s: %s accepts %v, so it asserts nothing", path, def, probe)
		}
	}
	return s, nil
}

// compileAll builds a Validator from the files of fsys.
func compileAll(fsys fs.FS) (*Validator, error) {
	files, err := readFiles(fsys)
	if err != nil {
		return nil, err
	}
	strict, err := newCompiler(files, true)
	if err != nil {
		return nil, err
	}
	loose, err := newCompiler(files, false)
	if err != nil {
		return nil, err
	}
	nodes := builder{}
	compile := func(path, def string, form func(*jsonschema.Schema) *jsonschema.Schema) (*node, error) {
		s, err := strict.definition(path, def)
		if err != nil {
			return nil, err
		}
		l, err := loose.definition(path, def)
		if err != nil {
			return nil, err
		}
		return nodes.node(form(s), form(l))
	}

	v := &Validator{digest: digest(files), facets: map[Container]map[string]*node{}}
	entire := func(s *jsonschema.Schema) *jsonschema.Schema { return s }
	for _, kind := range []EventKind{RunEvent, JobEvent, DatasetEvent} {
		if v.events[kind], err = compile(coreFile, kind.String(), entire); err != nil {
			return nil, err
		}
	}
	for _, t := range typed {
		n, err := compile(facetFile(t.file), cmp.Or(t.def, t.file), body)
		if err != nil {
			return nil, err
		}
		if v.facets[t.container] == nil {
			v.facets[t.container] = map[string]*node{}
		}
		v.facets[t.container][t.key] = n
	}
	return v, nil
}
