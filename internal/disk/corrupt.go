package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrCorrupt: what is in a directory is not what was written there.
var ErrCorrupt = errors.New("what is on the disk is not what was written")

// CheckFiles looks at what Pebble would take for a store that is new, or older than
// it is, and whose files it would then remove. ErrCorrupt: there is data in dir, and
// the marker, the manifest that it names, or the manifest's beginning is not there.
func CheckFiles(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(names, func(name string) bool {
		return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log")
	}) {
		return nil
	}
	if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "marker.manifest.") }) {
		return fmt.Errorf("%w: there are tables or write-ahead logs, but no file marker.manifest.*", ErrCorrupt)
	}
	there, err := pebble.Peek(dir, fs)
	if err != nil {
		return err
	}
	f, err := fs.Open(there.ManifestFilename)
	if err != nil {
		return err
	}
	err = checkManifest(f)
	if bad := f.Close(); err == nil {
		return bad
	}
	return fmt.Errorf("%w: %s: %w", ErrCorrupt, fs.PathBase(there.ManifestFilename), err)
}

// checkManifest reads a manifest. What Pebble was writing when the machine stopped
// may be cut off at its end, and nowhere else.
func checkManifest(f vfs.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	text := make([]byte, info.Size())
	if _, err := io.ReadFull(f, text); err != nil {
		return err
	}
	r := record.NewReader(bytes.NewReader(text), 0)
	for n := 0; ; n++ {
		at := r.Offset()
		one, err := r.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, one)
		}
		switch {
		case errors.Is(err, io.EOF) && n > 0:
			return nil
		case errors.Is(err, io.EOF):
			return errors.New("it is empty")
		case err != nil && (n == 0 || !cutOff(text[min(at, int64(len(text))):])):
			return fmt.Errorf("record %d at byte %d: %w", n+1, at, err)
		case err != nil:
			return nil
		}
	}
}

// cutOff reports whether rest, which begins with a chunk that cannot be read, is
// what is left of one that was being written: nothing comes behind it. A chunk has
// a checksum of 4 bytes, its length in 2, its kind, and its data.
func cutOff(rest []byte) bool {
	const head = 7
	return len(rest) < head || head+int(rest[4])+int(rest[5])<<8 >= len(rest) ||
		!slices.ContainsFunc(rest, func(b byte) bool { return b != 0 })
}

// IsCorrupt reports whether an error of Pebble, or of CheckFiles, says that what was
// read is not what was written, or that a file is gone which should be there. Whoever
// opens a store says so: Pebble does not always mark what it meets there.
func IsCorrupt(err error, opening bool) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, ErrCorrupt), pebble.IsCorruptionError(err):
		return true
	case !opening:
		return false
	}
	for _, known := range []error{
		os.ErrNotExist, record.ErrInvalidChunk, record.ErrZeroedChunk, record.ErrUnexpectedEOF, io.ErrUnexpectedEOF, pebble.ErrDBNotPristine,
		strconv.ErrSyntax,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return slices.ContainsFunc([]string{
		"object size mismatch", "error when loading manifest", "pebble: unknown ", "name from file",
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// Line is an error's text on one line. Those of Pebble have several.
func Line(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.TrimSpace(line) == "" || strings.Contains(line, "corruption detail carrier")
	})
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(slices.Compact(lines), "; ")
}
