package httpapi

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.yaml.in/yaml/v3"
)

// document is openapi.yaml, with the schemas of its answers compiled.
type document struct {
	root    map[string]any
	schemas map[string]*jsonschema.Schema // by JSON pointer
}

var readContract = sync.OnceValues(func() (*document, error) {
	d := &document{schemas: map[string]*jsonschema.Schema{}}
	if err := yaml.Unmarshal(openAPI, &d.root); err != nil {
		return nil, err
	}
	// Through JSON, so that numbers and maps are what the schema library takes.
	text, err := json.Marshal(d.root)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &d.root); err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	if err := compiler.AddResource("openapi.json", strings.NewReader(string(text))); err != nil {
		return nil, err
	}
	for path, item := range d.root["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			for status, response := range op.(map[string]any)["responses"].(map[string]any) {
				pointer := "/paths/" + escape(path) + "/" + method + "/responses/" + status
				if ref, ok := response.(map[string]any)["$ref"].(string); ok {
					pointer = strings.TrimPrefix(ref, "#")
				}
				content, _ := d.lookup(pointer)["content"].(map[string]any)
				for kind := range content {
					p := pointer + "/content/" + escape(kind) + "/schema"
					if d.schemas[p], err = compiler.Compile("openapi.json#" + p); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return d, nil
})

func contract(t *testing.T) *document {
	t.Helper()
	d, err := readContract()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func escape(token string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}

// lookup follows a JSON pointer, or gives nothing.
func (d *document) lookup(pointer string) map[string]any {
	v := d.root
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		v, _ = v[token].(map[string]any)
	}
	return v
}

// maxChecked bounds the answers that are held to their schemas: the longest ones
// repeat themselves, and take their time.
const maxChecked = 1 << 20

var parameter = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// operation finds the path and the method that a request is of.
func (d *document) operation(method, path string) (string, string) {
	for p, item := range d.root["paths"].(map[string]any) {
		pattern := parameter.ReplaceAllString(regexp.QuoteMeta(p), "[^/]+")
		if regexp.MustCompile("^" + pattern + "$").MatchString(path) {
			if m := strings.ToLower(method); item.(map[string]any)[m] != nil {
				return p, m
			}
		}
	}
	return "", ""
}

// check holds an answer to what its operation says of it. A request that is of
// no operation is answered with a problem.
func (d *document) check(t *testing.T, method, path string, a *answer) {
	t.Helper()
	if method == http.MethodHead || method == http.MethodOptions && a.status == http.StatusNoContent {
		return
	}
	pointer := "/components/responses/Problem"
	if p, m := d.operation(method, path); p != "" {
		base := "/paths/" + escape(p) + "/" + m + "/responses/"
		for _, status := range []string{strconv.Itoa(a.status), "default"} {
			if r := d.lookup(base + status); r != nil {
				pointer = base + status
				if ref, ok := r["$ref"].(string); ok {
					pointer = strings.TrimPrefix(ref, "#")
				}
				break
			}
		}
	}
	content, _ := d.lookup(pointer)["content"].(map[string]any)
	if len(content) == 0 {
		if len(a.body) > 0 {
			t.Errorf("%s %s: %d with a body that %s has not", method, path, a.status, pointer)
		}
		return
	}
	kind, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || content[kind] == nil {
		t.Errorf("%s %s: %d has Content-Type %q, %s has %v", method, path, a.status, a.header.Get("Content-Type"), pointer, content)
		return
	}
	if len(a.body) > maxChecked {
		return
	}
	var v any = string(a.body)
	if strings.HasSuffix(kind, "/json") || strings.HasSuffix(kind, "+json") {
		if err := json.Unmarshal(a.body, &v); err != nil {
			t.Errorf("%s %s: %v in %s", method, path, err, a.body)
			return
		}
	}
	if err := d.schemas[pointer+"/content/"+escape(kind)+"/schema"].Validate(v); err != nil {
		t.Errorf("%s %s: %d is not as openapi.yaml says: %#v\n%s", method, path, a.status, err, tail(string(a.body)))
	}
}

func TestOpenAPIHasTheRoutesAndTheirParameters(t *testing.T) {
	d := contract(t)
	told := map[string][]string{}
	for path, item := range d.root["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			query := []string{}
			params, _ := op.(map[string]any)["parameters"].([]any)
			for _, p := range params {
				param := p.(map[string]any)
				if ref, ok := param["$ref"].(string); ok {
					param = d.lookup(strings.TrimPrefix(ref, "#"))
				}
				if param["in"] == "query" {
					query = append(query, param["name"].(string))
				}
			}
			slices.Sort(query)
			told[strings.ToUpper(method)+" "+path] = query
		}
	}
	for _, r := range new(Server).routes() {
		key := r.method + " " + openAPIPath(r.path)
		query := slices.Sorted(slices.Values(r.query))
		if got, ok := told[key]; !ok {
			t.Errorf("openapi.yaml lacks %s", key)
		} else if !slices.Equal(got, query) {
			t.Errorf("%s has the parameters %v, openapi.yaml says %v", key, query, got)
		}
		delete(told, key)
	}
	for key := range told {
		t.Errorf("openapi.yaml has %s, which is no route", key)
	}
}

func TestOpenAPIReferencesResolve(t *testing.T) {
	d := contract(t)
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				used[ref] = true
				if d.lookup(strings.TrimPrefix(ref, "#")) == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(d.root)
	for group, list := range d.root["components"].(map[string]any) {
		for name := range list.(map[string]any) {
			if ref := fmt.Sprintf("#/components/%s/%s", group, name); !used[ref] {
				t.Errorf("%s is used nowhere", ref)
			}
		}
	}
}

func TestOpenAPIKindsOfProblemHaveAStatusAndATitle(t *testing.T) {
	for kind, k := range kinds {
		if k.status < 400 || k.title == "" {
			t.Errorf("%s: %+v", kind, k)
		}
		if k.status == http.StatusTooManyRequests {
			t.Errorf("%s is a 429, on which openlineage-python raises", kind)
		}
	}
}
