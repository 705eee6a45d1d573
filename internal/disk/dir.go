package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// MakeDir creates dir, with its parents, and sees to it that a crash does not lose it.
func MakeDir(fs vfs.FS, dir string) error {
	var made []string
	for d := dir; ; d = fs.PathDir(d) {
		_, err := fs.Stat(d)
		if err == nil || fs.PathDir(d) == d {
			break
		}
		if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		made = append(made, d)
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range made {
		if err := SyncDir(fs, fs.PathDir(d)); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir makes durable what was made, renamed and removed in dir.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock locks dir, which exists, for one store. Errors: busy if another one has it,
// the file system's if the file cannot be made or locked.
func Lock(fs vfs.FS, dir string, busy error) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, fs)
	if err == nil {
		return lock, nil
	}
	return nil, lockError(err, busy)
}

func lockError(err, busy error) error {
	// A PathError is of the file. The others are fcntl's, and Pebble's within one
	// process.
	if path := new(fs.PathError); errors.As(err, &path) {
		return err
	}
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "lock held by current process") {
		return busy
	}
	return fmt.Errorf("locking it: %w", err)
}
