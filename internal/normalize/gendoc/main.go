// Command gendoc writes what docs say about the identity contract out of the
// tables that the code runs on: the marked parts of docs/identity.md, and
// docs/identity-rules.json, with which other programs compute the same IDs.
//
// Usage: go run ./internal/normalize/gendoc
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	for path, generate := range files {
		path = filepath.Join(root, path)
		old, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		text, err := generate(old)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if string(text) == string(old) {
			continue
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files are what is generated, by path from the module's root; each function
// returns the new text of a file whose text is old.
var files = map[string]func(old []byte) ([]byte, error){
	"docs/identity.md":         fill,
	"docs/identity-rules.json": func([]byte) ([]byte, error) { return rulesJSON() },
}

// moduleRoot is the nearest directory upwards that holds a go.mod.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod in or above %s", start)
		}
	}
}
