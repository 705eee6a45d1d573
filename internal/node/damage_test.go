package node_test

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// beside lists what lies beside the graph's directory, of one kind.
func beside(t *testing.T, fs vfs.FS, kind string) []string {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "graph."+kind+"-") })
}

func move(t *testing.T, fs vfs.FS, from, to string) {
	t.Helper()
	if err := errors.Join(fs.RemoveAll(to), fs.Rename(from, to)); err != nil {
		t.Fatal(err)
	}
}

func copyDir(t *testing.T, from, to vfs.FS, dir string) {
	t.Helper()
	if err := to.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if ok, err := vfs.Clone(from, to, dir, dir, vfs.CloneSync); err != nil || !ok {
		t.Fatal(ok, err)
	}
}

// graphFiles returns the paths of the graph's files of a kind.
func graphFiles(t *testing.T, fs vfs.FS, kind string) (paths []string) {
	t.Helper()
	names, err := fs.List("data/graph")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, kind) || strings.HasPrefix(name, kind) {
			paths = append(paths, "data/graph/"+name)
		}
	}
	if len(paths) == 0 {
		t.Fatalf("there is no %s in %q", kind, names)
	}
	return paths
}

func content(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, fs vfs.FS, path string, text []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flip changes the bytes of a file at so many places, from the first on in steps, in
// place, so that who has it open sees it. A store that runs may remove it meanwhile.
func flip(t *testing.T, fs vfs.FS, path string, first, step, places int) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	for at := int64(first); places > 0 && err == nil; places-- {
		if _, err = f.ReadAt(b, at); err == nil {
			b[0] ^= 0x55
			_, err = f.WriteAt(b, at)
		}
		at += int64(step)
	}
	if errors.Is(err, io.EOF) {
		err = nil // beyond the end
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, fs vfs.FS, path string, n int) {
	t.Helper()
	write(t, fs, path, content(t, fs, path)[:n])
}

func remove(t *testing.T, fs vfs.FS, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := fs.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// each calls f with the files of a kind.
func each(t *testing.T, fs vfs.FS, kind string, f func(path string)) {
	t.Helper()
	for _, path := range graphFiles(t, fs, kind) {
		f(path)
	}
}
