package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/graphd/graphd/"

// allowed lists, for each package, the packages of graphd that it may import.
// Data flows from the bottom to the top: a package never imports one above it.
// Tests may import more.
var allowed = map[string][]string{
	"internal/openlineage": {},
	"internal/jsontree":    {},
	"schema":               {"internal/jsontree", "internal/openlineage"},
	"internal/fact":        {"internal/jsontree", "internal/openlineage"},
	"internal/normalize":   {"internal/fact", "internal/jsontree", "internal/openlineage"},
	// Pure: what follows from facts.
	"internal/lineage":             {"internal/fact", "internal/jsontree", "internal/openlineage"},
	"internal/lineage/lineagetest": {"internal/openlineage"},
	"internal/namesearch":          {"internal/fact", "internal/openlineage"},
	// What several stores need.
	"internal/disk":     {},
	"internal/linesort": {},
	// The contract and its drivers know nothing of the pipeline.
	"internal/graph":       {"internal/fact", "internal/lineage", "internal/openlineage"},
	"internal/graph/query": {"internal/graph", "internal/fact", "internal/lineage", "internal/namesearch", "internal/openlineage"},
	"internal/graph/memory": {
		"internal/graph", "internal/graph/query", "internal/fact", "internal/lineage", "internal/namesearch", "internal/openlineage",
	},
	"internal/graph/embedded": {
		"internal/disk", "internal/graph", "internal/graph/query", "internal/fact", "internal/lineage", "internal/linesort",
		"internal/namesearch", "internal/openlineage",
	},
	"internal/graph/graphtest": {
		"internal/graph", "internal/fact", "internal/lineage", "internal/lineage/lineagetest", "internal/openlineage",
		"internal/ingest", "internal/normalize", "internal/sharedtest",
	},
	// The log and who writes it into a graph know nothing of drivers, nor of how
	// events come.
	"internal/ledger":     {"internal/disk", "internal/fact", "internal/openlineage"},
	"internal/projection": {"internal/fact", "internal/graph", "internal/ledger"},
	"internal/ingest": {
		"schema", "internal/fact", "internal/graph", "internal/jsontree", "internal/ledger", "internal/normalize", "internal/openlineage",
		"internal/projection",
	},
	// Puts all of them together: the only one that knows the drivers.
	"internal/node": {
		"internal/fact", "internal/graph", "internal/graph/embedded", "internal/graph/memory", "internal/ingest", "internal/ledger",
		"internal/lineage", "internal/normalize", "internal/projection",
	},
	"internal/normalize/gendoc": {"internal/normalize", "internal/openlineage", "schema"},
	"internal/telemetry":        {},
	"internal/httpapi": {
		"internal/fact", "internal/graph", "internal/ingest", "internal/jsontree", "internal/lineage", "internal/node",
		"internal/openlineage", "internal/telemetry",
	},
	"internal/sharedtest":   {},
	"internal/architecture": {},
	"internal/e2e":          {},
	"internal/soak":         {"internal/lineage/lineagetest"},
	"cmd/graphd": {
		"internal/fact", "internal/graph", "internal/httpapi", "internal/ingest", "internal/jsontree", "internal/ledger",
		"internal/lineage", "internal/node", "internal/normalize", "internal/openlineage", "internal/telemetry",
	},
}

// pure are the packages that do no input or output.
var pure = []string{"internal/openlineage", "internal/jsontree", "internal/fact", "internal/normalize", "internal/lineage", "internal/namesearch"}

// effects are packages of the standard library that have effects beyond memory.
var effects = []string{"net", "net/http", "os", "os/exec", "syscall", "io/ioutil", "log", "log/slog", "database/sql", "math/rand", "math/rand/v2", "crypto/rand"}

type pkg struct {
	ImportPath string
	Dir        string
	Doc        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) (list []pkg) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,GoFiles", module+"...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		may, known := allowed[name]
		if !known {
			t.Errorf("%s is not in the table of this test: say which packages it may import", name)
			continue
		}
		for _, imp := range p.Imports {
			if own, ok := strings.CutPrefix(imp, module); ok && !slices.Contains(may, own) {
				t.Errorf("%s imports %s", name, own)
			}
			if slices.Contains(pure, name) && slices.Contains(effects, imp) {
				t.Errorf("%s is pure and imports %s", name, imp)
			}
		}
	}
}

func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && len(p.Doc) < 20 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// maxLines is what still fits on a few screens.
const maxLines = 500

func TestFilesFitOnAFewScreens(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(text, []byte("\n")); n > maxLines {
				t.Errorf("%s/%s has %d lines, at most %d fit", strings.TrimPrefix(p.ImportPath, module), f, n, maxLines)
			}
		}
	}
}
