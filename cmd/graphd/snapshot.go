package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
)

// exitNotNow: not at the moment; it may go well later.
const exitNotNow = 3

// snapshotFlags say of which graph, and where to.
type snapshotFlags struct {
	placeFlags
	local  bool // of a directory
	wait   time.Duration
	output string
}

// maxSnapshotWait is the longest wait that a server grants.
const maxSnapshotWait = 10 * time.Minute

func (a *app) snapshotCommand() *cobra.Command {
	var f snapshotFlags
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Write the canonical snapshot of a graph",
		Long: "Write the canonical snapshot of a server's graph, or with --data of the graph in the directory of a graphd that does not\n" +
			"run: the whole of it, one JSON object a line, sorted, so that two graphs are equal if and only if their snapshots are.\n" +
			"graphd fold writes the same of the same events. It is of a moment at which nothing is pending and all that was\n" +
			"acknowledged is in it, for which it waits.\n" +
			"The exit status is 3 if there is none now, because the graph has not settled within --wait or cannot be written, or the\n" +
			"server is about to end or writes another one; ask again then. It is 1 on every other fault, also if only a part could\n" +
			"be written.",
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.wait < time.Second || f.wait > maxSnapshotWait {
				return &usageError{fmt.Errorf("--wait: want 1s to %s", maxSnapshotWait)}
			}
			var err error
			if f.local, err = f.isLocal(cmd.Flags()); err != nil {
				return err
			}
			return a.snapshot(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	f.add(fs)
	fs.DurationVar(&f.wait, "wait", 30*time.Second, "how long to wait for the graph to settle")
	fs.StringVar(&f.output, "output", "", "write to `FILE`, all of it or nothing, and not to standard output")
	return cmd
}

func (a *app) snapshot(ctx context.Context, f snapshotFlags) error {
	if f.output == "" {
		return a.writeSnapshot(ctx, f, a.stdout)
	}
	return writeWhole(f.output, func(w io.Writer) error { return a.writeSnapshot(ctx, f, w) })
}

// writeSnapshot writes the snapshot of the graph that the flags name.
func (a *app) writeSnapshot(ctx context.Context, f snapshotFlags, w io.Writer) error {
	if f.local {
		return a.localSnapshot(ctx, f, w)
	}
	r, err := newRemote(f.remoteFlags)
	if err != nil {
		return err
	}
	defer r.close()
	err = r.snapshot(ctx, f.wait, w)
	if no := (*refused)(nil); errors.As(err, &no) && no.status == http.StatusServiceUnavailable {
		return &statusError{exitNotNow, err}
	}
	return err
}

// snapshot writes a server's snapshot to w. A nil error promises that all of it
// was written: the transfer ended as it should, and if the server told a digest
// it is that of what came.
func (r *remote) snapshot(ctx context.Context, wait time.Duration, w io.Writer) error {
	answer, err := r.do(ctx, request{
		method: http.MethodGet, path: "/api/v1/snapshot", accept: "application/x-ndjson",
		query: url.Values{"wait": {strconv.Itoa(int((wait + time.Second - 1) / time.Second))}},
	})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "application/x-ndjson" {
		return fmt.Errorf("%s is no graphd server: a snapshot is application/x-ndjson, not %s", r.base, printable(kind))
	}
	// An end that is told from a connection that broke: of chunks or by length.
	ends := answer.ProtoMajor >= 2 || len(answer.TransferEncoding) > 0 || answer.ContentLength >= 0
	_, announced := answer.Trailer["Content-Digest"]
	sum := sha256.New()
	body := &watched{Reader: answer.Body}
	switch n, err := io.Copy(w, io.TeeReader(body, sum)); {
	case body.err != nil:
		return fmt.Errorf("the snapshot broke off and is incomplete, after %d bytes: %w", n, body.err)
	case err != nil:
		return fmt.Errorf("writing the snapshot, of which %d bytes were written: %w", n, err)
	case !announced && !ends:
		return fmt.Errorf("the answer of %s does not show whether it is complete, after %d bytes: ask the server without the proxy in between", r.base, n)
	}
	want := "sha-256=:" + base64.StdEncoding.EncodeToString(sum.Sum(nil)) + ":"
	if got := answer.Trailer.Get("Content-Digest"); announced && got != want {
		return fmt.Errorf("the snapshot is not the one that was sent: its digest is %s, that of the server %q", want, got)
	}
	return nil
}

// watched is a reader that keeps the error that ended it, so that it is told from
// an error of the writer.
type watched struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (r *watched) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// writeWhole writes a file so that others see it whole or as it was: under another
// name, which then takes its place.
func writeWhole(path string, write func(io.Writer) error) (err error) {
	switch info, bad := os.Stat(path); {
	case bad == nil && !info.Mode().IsRegular(): // a device or a pipe must not be replaced
		return &usageError{fmt.Errorf("--output: %s is no regular file; write to standard output and redirect that", printable(path))}
	case bad != nil && !errors.Is(bad, fs.ErrNotExist):
		return bad
	}
	if real, bad := filepath.EvalSymlinks(path); bad == nil {
		path = real
	}
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }() // nothing to do where it took its place
	if err := write(f); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
