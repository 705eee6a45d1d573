package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// codings are the content codings that request bodies may have.
const codings = "gzip, deflate, zstd"

// maxWindow bounds what a zstd frame makes its reader hold; RFC 9659 asks of
// senders to stay within it. minWindow is what takes no lease.
const (
	maxWindow = 8 << 20
	minWindow = 64 << 10
)

// jsonTypes and lineTypes are the media types that are read. No page of another
// site can send one of them without asking first.
var (
	jsonTypes = []string{"application/json"}
	lineTypes = []string{"application/x-ndjson", "application/ndjson", "application/jsonl"}
)

// mediaType returns the type of a body, application/json if it is not said.
func mediaType(h http.Header, allowed ...string) (string, error) {
	refuse := func(reason string) error {
		f := fail("unsupported-media-type", []Fault{{Header: "Content-Type", Reason: text(reason)}}, "Send %s.", oneOf(allowed))
		f.header.Set("Accept", strings.Join(allowed, ", "))
		return f
	}
	sent := h.Get("Content-Type")
	if sent == "" {
		return jsonTypes[0], nil
	}
	kind, params, err := mime.ParseMediaType(sent)
	if err != nil {
		return "", refuse("it is no media type")
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return "", refuse("JSON is sent in UTF-8")
	}
	if strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json") {
		kind = jsonTypes[0]
	}
	for _, a := range allowed {
		if kind == a {
			return a, nil
		}
	}
	return "", refuse("it is none of the types that are read here")
}

// source is a request's body as it comes from the network. It keeps the error
// that ended it, so that a broken connection is told from a broken coding.
type source struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// body is a request's body, decoded and bounded.
type body struct {
	control *http.ResponseController
	within  time.Duration
	network *source
	decoded io.ReadCloser
	coding  string
	limit   int64
	read    int64
}

// errLimit is what reading beyond a body's limit gives.
func (b *body) errLimit() error {
	return fail("too-large", nil, "The body is longer than %d bytes, decompressed. That is the limit of this route.", b.limit)
}

// openBody begins to read a request's body, of at most limit bytes, which has to
// arrive within a time. What decompressing it takes is reserved in l.
func openBody(w http.ResponseWriter, r *http.Request, limit int64, within time.Duration, l *lease) (*body, error) {
	b := &body{
		control: http.NewResponseController(w), within: within, network: &source{Reader: r.Body}, limit: limit,
		coding: strings.ToLower(strings.TrimSpace(strings.Join(r.Header.Values("Content-Encoding"), ","))),
	}
	b.deadline()
	var err error
	switch b.coding {
	case "", "identity":
		if r.ContentLength > limit {
			return nil, b.errLimit()
		}
		b.decoded = io.NopCloser(b.network)
	case "gzip", "x-gzip":
		b.decoded, err = gzip.NewReader(b.network)
	case "deflate":
		b.decoded, err = inflate(b.network)
	case "zstd":
		b.decoded, err = unzstd(r.Context(), b.network, l)
	default:
		f := fail("unsupported-media-type", []Fault{{Header: "Content-Encoding", Reason: "it is no coding that is read here"}},
			"Send the body as it is, or in one of %s.", codings)
		f.header.Set("Accept-Encoding", codings)
		return nil, f
	}
	if f := (*failure)(nil); errors.As(err, &f) {
		return nil, f
	}
	if err != nil {
		return nil, b.broken(err)
	}
	return b, nil
}

// unzstd reads zstd. A frame says how much of its past its reader has to hold,
// megabytes of it in a few bytes: that is leased before it is taken, and no later
// frame may ask for more than the first one.
func unzstd(ctx context.Context, r io.Reader, l *lease) (io.ReadCloser, error) {
	in := bufio.NewReader(r)
	start, err := in.Peek(zstd.HeaderMaxSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var head zstd.Header
	if err := head.Decode(start); err != nil {
		return nil, err
	}
	window := max(head.WindowSize, minWindow)
	switch {
	case head.Skippable: // the frame that counts is behind it
		window = maxWindow
	case head.SingleSegment:
		window = max(head.FrameContentSize, minWindow)
	}
	if window > maxWindow {
		return nil, zstd.ErrWindowSizeExceeded
	}
	if window > minWindow {
		if err := l.reserve(ctx, 2*int64(window)); err != nil { // the window, and the block behind it
			return nil, err
		}
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

// deadline says until when the connection has to deliver. Where it cannot be
// told the server's own deadline holds.
func (b *body) deadline() { _ = b.control.SetReadDeadline(time.Now().Add(b.within)) }

// inflate reads what "deflate" means by the standard, a zlib stream, and what
// some clients send under that name, the bare one.
func inflate(r io.Reader) (io.ReadCloser, error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && head[0]>>4 <= 7 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(in)
	}
	return flate.NewReader(in), nil
}

// Read implements io.Reader. Its errors are failures, but for io.EOF.
func (b *body) Read(p []byte) (int, error) {
	if room := b.limit - b.read + 1; int64(len(p)) > room {
		p = p[:room]
	}
	n, err := b.decoded.Read(p)
	if b.read += int64(n); b.read > b.limit {
		return 0, b.errLimit()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.broken(err)
	}
	return n, err
}

// broken tells why a body cannot be read on.
func (b *body) broken(err error) error {
	if b.network.err != nil {
		// The client may be gone, or slow; either way it was not the body's fault.
		return fail("unavailable", nil, "The body did not arrive. Send it again.").retry(busyPause).because(b.network.err)
	}
	reason := "it is no " + b.coding
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		reason = "the " + b.coding + " stream ends too early"
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		reason = fmt.Sprintf("its window is larger than %d bytes, or than that of the first frame", maxWindow)
	}
	return fail("invalid-body", []Fault{at("", int(b.read), reason)},
		"The body's Content-Encoding is %q, but it can be decompressed only up to byte %d: %s.", b.coding, b.read, reason).because(err)
}

// Close ends reading. The deadline is put off: net/http reads on, to see whether
// the client goes away, and would end the request at the old one.
func (b *body) Close() error {
	b.deadline()
	return b.decoded.Close()
}

// firstRead is what a body's buffer begins with; most events fit.
const firstRead = 8 << 10

// readAll reads a body into memory that is leased before it is taken, by what
// arrived and not by what a header promises.
func readAll(ctx context.Context, r io.Reader, l *lease) ([]byte, error) {
	var buf []byte
	for size := firstRead; ; size *= 2 {
		// The old buffer and the new one, and a copy to keep.
		if err := l.grow(ctx, int64(size)*3); err != nil {
			return nil, err
		}
		buf = append(make([]byte, 0, size), buf...)
		for len(buf) < size {
			n, err := r.Read(buf[len(buf):size])
			buf = buf[:len(buf)+n]
			if errors.Is(err, io.EOF) {
				// The store keeps it: no room at its end.
				return bytes.Clone(buf), nil
			}
			if err != nil {
				return nil, err
			}
		}
	}
}

// readEvent reads the body of a request that holds one event, and leases what
// decoding it will take.
func (s *Server) readEvent(w http.ResponseWriter, r *http.Request, l *lease) ([]byte, error) {
	b, err := openBody(w, r, s.limits.EventBytes, s.limits.BodyTime, l)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	data, err := readAll(r.Context(), b, l)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, fail("invalid-body", []Fault{at("", 0, "the body is empty")}, "Send one OpenLineage event as a JSON object.")
	}
	return data, l.grow(r.Context(), weight(data))
}

// What is read of a body that was refused for its length, so that a client that
// sends all of it before it listens gets the answer and not a broken connection.
const (
	drainBytes = 256 << 20
	drainTime  = 5 * time.Second
)

// drain reads and drops what is left of a request's body.
func drain(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Expect") != "" { // it waits for leave to send
		return
	}
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime)); err != nil {
		return // without an end to it, not at all
	}
	_, _ = io.CopyN(io.Discard, r.Body, drainBytes)
}
