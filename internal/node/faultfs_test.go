package node_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var errInjected = errors.New("injected")

// fault says which operation fails: the nth of a class, before it is done or after
// it, and with forGood every one from then on, of whatever class.
type fault struct {
	class   string
	nth     int
	after   bool
	forGood bool
}

func (f fault) String() string {
	when := "before"
	if f.after {
		when = "after"
	}
	if f.forGood {
		when += ", for good"
	}
	return fmt.Sprintf("%s #%d fails (%s)", f.class, f.nth, when)
}

// faultFS counts the operations on a file system by class, which is what is done to
// which kind of file of which directory, as in "sync ledger/log", and fails one.
type faultFS struct {
	vfs.FS
	*faults
}

type faults struct {
	fault
	mu    sync.Mutex
	count map[string]int
	hit   bool
}

// op runs one operation, or not.
func (f *faults) op(kind, name string, do func() error) error {
	class := kind + " " + fileClass(name)
	f.mu.Lock()
	f.count[class]++
	fails := f.hit && f.forGood
	if class == f.class && f.count[class] == f.nth {
		f.hit, fails = true, true
	}
	f.mu.Unlock()
	if !fails {
		return do()
	}
	if f.after {
		if err := do(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", class, errInjected)
}

// struck reports whether the fault has come up.
func (f *faults) struck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

// fileClass is the kind of a file, with the store that it belongs to.
func fileClass(name string) string {
	base, dir := path.Base(name), path.Base(path.Dir(name))
	if base == "ledger" || base == "graph" {
		return base
	}
	if dir != "ledger" && dir != "graph" {
		return "above"
	}
	kind := strings.TrimLeft(path.Ext(base), ".")
	switch {
	case strings.HasPrefix(base, "MANIFEST"), strings.HasPrefix(base, "OPTIONS"):
		kind, _, _ = strings.Cut(base, "-")
	case strings.HasPrefix(base, "marker."):
		kind = "marker"
	case kind == "":
		kind = base
	}
	return dir + "/" + kind
}

func (f *faultFS) file(kind, name string, open func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	if err := f.op(kind, name, func() (err error) { file, err = open(); return err }); err != nil {
		return nil, err
	}
	return &faultFile{File: file, faults: f.faults, name: name}, nil
}

func (f *faultFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file("create", name, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *faultFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	return f.file("open", name, func() (vfs.File, error) { return f.FS.Open(name, o...) })
}

func (f *faultFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.file("open", name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, o...) })
}

func (f *faultFS) OpenDir(name string) (vfs.File, error) {
	return f.file("opendir", name, func() (vfs.File, error) { return f.FS.OpenDir(name) })
}

func (f *faultFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file("reuse", name, func() (vfs.File, error) { return f.FS.ReuseForWrite(old, name, c) })
}

func (f *faultFS) Link(old, name string) error {
	return f.op("link", name, func() error { return f.FS.Link(old, name) })
}

func (f *faultFS) Remove(name string) error {
	return f.op("remove", name, func() error { return f.FS.Remove(name) })
}

func (f *faultFS) RemoveAll(name string) error {
	return f.op("removeall", name, func() error { return f.FS.RemoveAll(name) })
}

func (f *faultFS) Rename(old, name string) error {
	return f.op("rename", name, func() error { return f.FS.Rename(old, name) })
}

func (f *faultFS) MkdirAll(name string, m os.FileMode) error {
	return f.op("mkdir", name, func() error { return f.FS.MkdirAll(name, m) })
}

func (f *faultFS) List(name string) (list []string, err error) {
	err = f.op("list", name, func() (err error) { list, err = f.FS.List(name); return err })
	return list, err
}

func (f *faultFS) Stat(name string) (info vfs.FileInfo, err error) {
	err = f.op("stat", name, func() (err error) { info, err = f.FS.Stat(name); return err })
	return info, err
}

func (f *faultFS) Unwrap() vfs.FS { return f.FS }

type faultFile struct {
	vfs.File
	*faults
	name string
}

func (f *faultFile) Write(p []byte) (n int, err error) {
	err = f.op("write", f.name, func() (err error) { n, err = f.File.Write(p); return err })
	return n, err
}

func (f *faultFile) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.op("write", f.name, func() (err error) { n, err = f.File.WriteAt(p, at); return err })
	return n, err
}

func (f *faultFile) Read(p []byte) (n int, err error) {
	err = f.op("read", f.name, func() (err error) { n, err = f.File.Read(p); return err })
	return n, err
}

func (f *faultFile) ReadAt(p []byte, at int64) (n int, err error) {
	err = f.op("read", f.name, func() (err error) { n, err = f.File.ReadAt(p, at); return err })
	return n, err
}

func (f *faultFile) Stat() (info vfs.FileInfo, err error) {
	err = f.op("stat", f.name, func() (err error) { info, err = f.File.Stat(); return err })
	return info, err
}

func (f *faultFile) SyncTo(length int64) (full bool, err error) {
	err = f.op("syncto", f.name, func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

func (f *faultFile) Sync() error     { return f.op("sync", f.name, f.File.Sync) }
func (f *faultFile) SyncData() error { return f.op("syncdata", f.name, f.File.SyncData) }
func (f *faultFile) Close() error    { return f.op("close", f.name, f.File.Close) }
