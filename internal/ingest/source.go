package ingest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Source reads events from files.
type Source struct {
	// Stdin is what the path "-" reads.
	Stdin io.Reader
	// MaxBody bounds one event, in bytes.
	MaxBody int
}

// Read yields the documents of paths, in their order: files, folders (every
// file below that is named like events, in the order of names) and "-" for
// standard input. A file holds JSON, a JSON array or newline-delimited JSON, as
// it is or in gzip or zstd, whatever its name.
//
// An error beside a Body with a Number is of that document alone (see Split),
// any other of a whole path. Reading goes on with the next one.
func (s Source) Read(paths ...string) iter.Seq2[Body, error] {
	return func(yield func(Body, error) bool) {
		for _, path := range paths {
			files, err := filesOf(path)
			if err != nil && !yield(Body{Path: path}, err) {
				return
			}
			for _, file := range files {
				if !s.file(file, yield) {
					return
				}
			}
		}
	}
}

// extensions are those of files of events in a folder, where others lie too.
var extensions = []string{".json", ".jsonl", ".ndjson"}

// filesOf returns the files that a path stands for.
func filesOf(path string) (files []string, err error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	err = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		name := strings.TrimSuffix(strings.TrimSuffix(file, ".gz"), ".zst")
		if err == nil && !d.IsDir() && slices.Contains(extensions, filepath.Ext(name)) {
			files = append(files, file)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no file below it is named *%s (nor any of these with .gz or .zst)", path, strings.Join(extensions, ", *"))
	}
	return files, err
}

func (s Source) file(path string, yield func(Body, error) bool) bool {
	in := s.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return yield(Body{Path: path}, err)
		}
		defer f.Close()
		in = f
	}
	text, err := decompressed(in)
	if err != nil {
		return yield(Body{Path: path}, fmt.Errorf("%s: %w", path, err))
	}
	defer text.Close()
	for b, err := range Split(text, Detect, s.MaxBody) {
		b.Path = path
		if err != nil && b.Number == 0 {
			err = fmt.Errorf("%s: %w", path, err)
		}
		if !yield(b, err) {
			return false
		}
	}
	return true
}

// decompressed reads what its first bytes say is compressed.
func decompressed(r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReader(r)
	magic, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(buffered), nil
}
