package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func snapshotFrom(ctx context.Context, url string, args ...string) (code int, stdout, stderr string) {
	var out, log output
	code = run(ctx, append([]string{"snapshot", "--to", url}, args...), nil, &out, &log, func(string) string { return "" })
	return code, out.String(), log.String()
}

// serves is a server that answers one way.
func serves(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(handle)
	t.Cleanup(srv.Close)
	return srv.URL
}

// sends is a server that sends bytes as they are and hangs up.
func sends(t *testing.T, text string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			head := make([]byte, 1<<10)
			_, _ = c.Read(head) // of the request: it is short, and comes at once
			_, _ = io.WriteString(c, text)
			c.Close()
		}
	}()
	return "http://" + ln.Addr().String()
}

const lines = "application/x-ndjson"

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func TestSnapshotTakesNothingLessThanAllOfIt(t *testing.T) {
	long := strings.Repeat(`{"type":"event"}`+"\n", 10_000)
	head := "HTTP/1.1 200 OK\r\nContent-Type: " + lines + "\r\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(long), long)
	for name, test := range map[string]struct {
		url  string
		code int
		want string // on standard error
	}{
		"whole": {serves(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.String() != "/api/v1/snapshot?wait=31" {
				t.Errorf("asked for %s", r.URL)
			}
			w.Header().Set("Content-Type", lines)
			w.Header().Set("Trailer", "Content-Digest")
			io.WriteString(w, long)
			w.Header().Set("Content-Digest", digest(long))
		}), 0, ""},
		"aborted": {serves(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", lines)
			w.Header().Set("Trailer", "Content-Digest")
			io.WriteString(w, long)
			panic(http.ErrAbortHandler)
		}), exitFailed, "broke off and is incomplete"},
		"without trailer":            {sends(t, head+"Transfer-Encoding: chunked\r\n\r\n"+chunk+"0\r\n\r\n"), 0, ""},
		"without the trailer told":   {sends(t, head+"Trailer: Content-Digest\r\nTransfer-Encoding: chunked\r\n\r\n"+chunk+"0\r\n\r\n"), exitFailed, "is not the one that was sent"},
		"of another digest":          {sends(t, head+"Trailer: Content-Digest\r\nTransfer-Encoding: chunked\r\n\r\n"+chunk+"0\r\nContent-Digest: "+digest("x")+"\r\n\r\n"), exitFailed, "is not the one that was sent"},
		"without the last chunk":     {sends(t, head+"Transfer-Encoding: chunked\r\n\r\n"+chunk), exitFailed, "broke off and is incomplete, after 170000 bytes: unexpected EOF"},
		"shorter than it says":       {sends(t, head+"Content-Length: 170001\r\n\r\n"+long), exitFailed, "broke off and is incomplete"},
		"without any sign of an end": {sends(t, "HTTP/1.0 200 OK\r\nContent-Type: "+lines+"\r\n\r\n"+long), exitFailed, "does not show whether it is complete"},
		"a page":                     {sends(t, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n"), exitFailed, "is no graphd server"},
		"still settling": {serves(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"title":"Not at the moment","detail":"The graph is still settling.","status":503,"errors":[]}`)
		}), exitNotNow, "503 Service Unavailable: Not at the moment. The graph is still settling."},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := snapshotFrom(t.Context(), test.url, "--wait", "30001ms")
			if code != test.code || !strings.Contains(stderr, test.want) || test.want == "" && stderr != "" {
				t.Errorf("exit status %d, want %d: %s", code, test.code, stderr)
			}
			if code == 0 && stdout != long {
				t.Errorf("%d bytes came", len(stdout))
			}
			// A file is replaced by the whole or left alone.
			dir := t.TempDir()
			path := filepath.Join(dir, "snapshot.ndjson")
			if err := os.WriteFile(path, []byte("before"), 0o640); err != nil {
				t.Fatal(err)
			}
			want := "before"
			if test.code == 0 {
				want = long
			}
			code, stdout, _ = snapshotFrom(t.Context(), test.url, "--wait", "30001ms", "--output", path)
			got, err := os.ReadFile(path)
			info, bad := os.Stat(path)
			if code != test.code || err != nil || bad != nil || string(got) != want || info.Mode() != 0o640 || stdout != "" {
				t.Errorf("exit status %d, %v, %v: %d bytes, want %d, mode %v", code, err, bad, len(got), len(want), info.Mode())
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestSnapshotLeavesWhatIsNoFileAlone(t *testing.T) {
	for _, path := range []string{os.DevNull, t.TempDir()} {
		code, _, stderr := snapshotFrom(t.Context(), defaultServer, "--output", path)
		if code != exitUsage || !strings.Contains(stderr, "is no regular file") {
			t.Errorf("--output %s: exit status %d, %s", path, code, stderr)
		}
	}
	// A link stays one.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "real"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	url := sends(t, "HTTP/1.1 200 OK\r\nContent-Type: "+lines+"\r\nContent-Length: 3\r\n\r\n{}\n")
	if code, _, stderr := snapshotFrom(t.Context(), url, "--output", filepath.Join(dir, "link")); code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "real")); err != nil || string(got) != "{}\n" {
		t.Errorf("%v: %q", err, got)
	}
}

func TestSnapshotEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serves(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", lines)
		io.WriteString(w, "{}\n")
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	path := filepath.Join(t.TempDir(), "new")
	if code, _, stderr := snapshotFrom(ctx, url, "--output", path); code != exitFailed || !strings.Contains(stderr, "context canceled") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a part of it stands there: %v", err)
	}
}
