// Package sharedtest finds the data beside the checkout that some tests use: the
// standard's own schemas and streams recorded from real producers. They are
// not part of the repository; a test that needs them skips where they are
// absent, and says so.
//
// Start at Shared and RecordedStreams.
package sharedtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Shared returns the path of elem below the shared data: below $GRAPHD_SHARED
// if that is set, else below the directory "shared" beside the module's root.
// Where it does not exist the test is skipped, in capitals if CI is "true", so
// that a run that proves less than usual can be told from its log.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("GRAPHD_SHARED")
	named := root != ""
	if !named {
		root = filepath.Join(moduleRoot(t), "..", "shared")
	}
	path := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		message := fmt.Sprintf("../shared is absent: %s not run", t.Name())
		if !named && os.Getenv("CI") == "true" {
			message = strings.ToUpper(message)
		}
		t.Skipf("%s (no %s)", message, path)
	}
	return path
}

// moduleRoot is the nearest directory upwards that holds a go.mod. Tests run
// in their package's directory.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's directory")
		}
		dir = up
	}
}

// Stream is what one producer sent, in the order it arrived.
type Stream struct {
	Name       string // its folder below data/recorded, with slashes: "airflow/retail"
	Dir        string // the folder's path
	Deliveries []Delivery
}

// Delivery is one arrival of an event.
type Delivery struct {
	N           int    // from 1, its place in the stream
	Body        []byte // the decoded body
	Answer      string // how the recording server answered: "201", "503", "delay 2.5", "drop"
	DuplicateOf int    // the N of the first delivery of the same bytes, 0 if this is it
}

// RecordedStreams reads all recorded streams, sorted by name, or skips the
// test as Shared does.
func RecordedStreams(t testing.TB) []Stream {
	t.Helper()
	root := Shared(t, "data", "recorded")
	var streams []Stream
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "deliveries.jsonl" {
			return err
		}
		s, err := readStream(root, filepath.Dir(path))
		streams = append(streams, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(streams) == 0 {
		t.Fatalf("no deliveries.jsonl below %s", root)
	}
	slices.SortFunc(streams, func(a, b Stream) int { return strings.Compare(a.Name, b.Name) })
	return streams
}

func readStream(root, dir string) (Stream, error) {
	name, err := filepath.Rel(root, dir)
	if err != nil {
		return Stream{}, err
	}
	s := Stream{Name: filepath.ToSlash(name), Dir: dir}
	list, err := os.ReadFile(filepath.Join(dir, "deliveries.jsonl"))
	if err != nil {
		return s, err
	}
	bodies := map[int][]byte{}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		var line struct {
			N           int    `json:"n"`
			Answer      string `json:"answer"`
			DuplicateOf int    `json:"duplicate_of"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return s, fmt.Errorf("%s, delivery %d: %w", s.Name, len(s.Deliveries)+1, err)
		}
		body, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%03d.json", line.N)))
		if os.IsNotExist(err) && bodies[line.DuplicateOf] != nil {
			body, err = bodies[line.DuplicateOf], nil
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", s.Name, err)
		}
		bodies[line.N] = body
		s.Deliveries = append(s.Deliveries, Delivery{line.N, body, line.Answer, line.DuplicateOf})
	}
	return s, nil
}
