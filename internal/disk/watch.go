package disk

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Watch returns fs, with an eye on dir and the files in it: dir as fs.PathJoin
// spells it, since Pebble does. A checkpoint elsewhere may fail without harm.
func (s *Stop) Watch(fs vfs.FS, dir string) vfs.FS { return &watchedFS{FS: fs, dir: dir, stop: s} }

type watchedFS struct {
	vfs.FS
	dir  string
	stop *Stop
}

func (w *watchedFS) file(name string, f vfs.File, err error) (vfs.File, error) {
	if name != w.dir && w.PathDir(name) != w.dir {
		return f, err
	}
	if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log") {
		w.stop.phase.CompareAndSwap(opening, recovering)
	}
	vital := name == w.dir || strings.HasSuffix(name, ".log")
	if err := w.stop.check(err, vital); err != nil {
		return nil, err
	}
	return &watchedFile{File: f, stop: w.stop, vital: vital, directory: name == w.dir}, nil
}

func (w *watchedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := w.order(name); err != nil {
		return nil, err
	}
	f, err := w.FS.Create(name, c)
	return w.file(name, f, err)
}

// order makes what was done in the directory durable before name is made or
// removed, if name is one of Pebble's markers. A marker says which manifest is
// the current one; Pebble takes it that a crash does not keep the marker and
// lose the manifest, or lose both markers. A file system may not be so kind.
func (w *watchedFS) order(name string) error {
	if !isMarker(w.PathBase(name)) || w.PathDir(name) != w.dir {
		return nil
	}
	return w.stop.check(SyncDir(w.FS, w.dir), true)
}

func isMarker(base string) bool { return strings.HasPrefix(base, "marker.") }

func (w *watchedFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.FS.ReuseForWrite(old, name, c)
	return w.file(name, f, err)
}

func (w *watchedFS) OpenDir(name string) (vfs.File, error) {
	f, err := w.FS.OpenDir(name)
	return w.file(name, f, err)
}

func (w *watchedFS) Rename(old, name string) error {
	return w.stop.check(w.FS.Rename(old, name), false)
}

func (w *watchedFS) Remove(name string) error {
	if err := w.order(name); err != nil {
		return err
	}
	return w.stop.check(w.FS.Remove(name), false)
}

func (w *watchedFS) List(name string) ([]string, error) {
	list, err := w.FS.List(name)
	return list, w.stop.check(err, false)
}

func (w *watchedFS) Stat(name string) (vfs.FileInfo, error) {
	info, err := w.FS.Stat(name)
	return info, w.stop.check(err, false)
}

func (w *watchedFS) Unwrap() vfs.FS { return w.FS }

type watchedFile struct {
	vfs.File
	stop      *Stop
	vital     bool
	directory bool
}

func (f *watchedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.stop.check(err, f.vital)
}

func (f *watchedFile) Sync() error {
	err := f.File.Sync()
	if err != nil && f.directory {
		f.stop.hold(err)
	}
	return f.stop.check(err, f.vital)
}

func (f *watchedFile) SyncData() error { return f.stop.check(f.File.SyncData(), f.vital) }
func (f *watchedFile) Close() error    { return f.stop.check(f.File.Close(), f.vital) }

func (f *watchedFile) SyncTo(n int64) (bool, error) {
	full, err := f.File.SyncTo(n)
	return full, f.stop.check(err, f.vital)
}

func (f *watchedFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	return info, f.stop.check(err, f.vital)
}
