package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/schema"
)

const command = "go generate ./internal/normalize"

func TestPublishedFilesAreWhatTheTablesSay(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for path, generate := range files {
		t.Run(path, func(t *testing.T) {
			old, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Fatalf("%v; run: %s", err, command)
			}
			want, err := generate(old)
			if err != nil {
				t.Fatal(err)
			}
			if string(old) != string(want) {
				t.Errorf("stale; run: %s", command)
			}
		})
	}
}

func TestRulesAreStableJSONWithEveryRule(t *testing.T) {
	text, err := rulesJSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := rulesJSON()
	if err != nil || string(again) != string(text) {
		t.Fatalf("not the same twice: %v", err)
	}
	var rules struct {
		Version string
		Schemas string
		Classes []normalize.ClassRule
		Places  []normalize.PlaceRule
		Sets    []normalize.FieldRule
	}
	if err := json.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	if len(rules.Classes) != len(normalize.ClassTable()) || len(rules.Sets) != len(normalize.SetTable()) {
		t.Errorf("%d classes and %d sets, want all", len(rules.Classes), len(rules.Sets))
	}
	if name := regexp.MustCompile(`"[A-Z]\w*":`).Find(text); name != nil {
		t.Errorf("member %s is named as Go names it", name)
	}
	for i, r := range normalize.ClassTable() {
		if rules.Classes[i] != r {
			t.Errorf("class rule %d: %+v, want %+v", i, rules.Classes[i], r)
		}
	}
	for i, r := range normalize.PlaceRules() {
		if rules.Places[i] != r {
			t.Errorf("place rule %d: %+v, want %+v", i, rules.Places[i], r)
		}
	}
	v, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	if rules.Schemas != v.Digest() || rules.Version != normalize.VersionOf(nil, v.Digest()) {
		t.Errorf("version %s of schemas %s", rules.Version, rules.Schemas)
	}
}

func TestEveryPartOfTheDocumentIsFilled(t *testing.T) {
	var page strings.Builder
	for name := range parts {
		page.WriteString("<!-- generated: " + name + " -->\nSTALE\n<!-- end -->\nprose\n")
	}
	filled, err := fill([]byte(page.String()))
	if err != nil || strings.Contains(string(filled), "STALE") || strings.Count(string(filled), "prose") != len(parts) {
		t.Errorf("%v\n%.200s", err, filled)
	}
	for name, broken := range map[string]string{
		"a part is missing":    strings.Replace(page.String(), "generated: set table", "", 1),
		"a part is not closed": strings.ReplaceAll(page.String(), "<!-- end -->", ""),
		"an unknown part":      page.String() + "<!-- generated: nothing -->\n<!-- end -->\n",
	} {
		if _, err := fill([]byte(broken)); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}
