package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/graphd/graphd/internal/httpapi"
)

// defaultServer is where graphd serve listens if nobody told it otherwise.
const defaultServer = "http://127.0.0.1:5000"

// remoteFlags say which server a command speaks to.
type remoteFlags struct {
	to, key string
}

func (f *remoteFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.to, "to", defaultServer, "`URL` of the graphd server")
	fs.StringVar(&f.key, "api-key", "", "API `KEY`, sent as Authorization: Bearer; other users of the machine see a command line, so better give the variable")
}

// remote is a graphd server as a client sees it.
type remote struct {
	base *url.URL
	key  string
	http *http.Client
}

// newRemote returns the server that the flags name. It does not ask it anything.
// Its error is a *usageError, and never holds the key.
func newRemote(f remoteFlags) (*remote, error) {
	u, err := url.Parse(f.to)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, &usageError{errors.New("--to: want the URL of a graphd server, such as " + defaultServer + ", without user, query or fragment")}
	}
	key := strings.TrimSpace(f.key)
	if strings.ContainsFunc(key, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) || r == ' ' }) {
		return nil, &usageError{errors.New("--api-key: it holds what no key does (only printable ASCII, no spaces)")}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// A digest is over what the server sent, and the bodies are told by their bytes.
	transport.DisableCompression = true
	return &remote{base: u, key: key, http: &http.Client{
		Transport: transport,
		// A redirect would lose the body or take the key elsewhere: it is told instead.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// close lets go of the connections.
func (r *remote) close() { r.http.CloseIdleConnections() }

// request is one request to a server.
type request struct {
	method, path string
	query        url.Values
	accept       string
	// content is the type of body, whose length is given.
	content string
	body    io.Reader
	length  int64
}

// do sends a request. An answer that is no 200 is a *refused error, and one that
// did not come is net/http's. The caller closes the answer's body.
func (r *remote) do(ctx context.Context, q request) (*http.Response, error) {
	u := r.base.JoinPath(q.path)
	u.RawQuery = q.query.Encode()
	req, err := http.NewRequestWithContext(ctx, q.method, u.String(), q.body)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	req.ContentLength = q.length
	req.Header.Set("Accept", q.accept+", application/problem+json")
	req.Header.Set("User-Agent", "graphd/"+build().Version)
	if q.content != "" {
		req.Header.Set("Content-Type", q.content)
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	answer, err := r.http.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("nothing answers there: is graphd running, and at that address (--to)? %w", err)
	}
	if err != nil {
		return nil, err // it names the method and the URL
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		return nil, refusal(answer)
	}
	return answer, nil
}

// refused is an answer that is no success.
type refused struct {
	status int
	// after is when the server wants to be asked again, 0 if it did not say.
	after time.Duration
	text  string
}

// Error implements error.
func (r *refused) Error() string { return r.text }

// What is read of an answer that is no success, and shown of one that is no
// problem document.
const (
	problemBytes = 1 << 20
	plainBytes   = 300
)

// refusal reads an answer that is no success.
func refusal(answer *http.Response) *refused {
	r := &refused{status: answer.StatusCode, after: retryAfter(answer.Header.Get("Retry-After"), time.Now())}
	r.text = fmt.Sprintf("%s %s: %d %s", answer.Request.Method, answer.Request.URL, answer.StatusCode, http.StatusText(answer.StatusCode))
	if place := answer.Header.Get("Location"); place != "" && answer.StatusCode/100 == 3 {
		r.text += ": it is elsewhere, at " + printable(place) + "; give that as --to if it is right"
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, problemBytes)) // what there is of it
	var p httpapi.Problem
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case kind == "application/problem+json" && json.Unmarshal(body, &p) == nil && p.Title != "":
		r.text += ": " + printable(p.Title)
		if p.Detail != "" {
			r.text += ". " + printable(string(p.Detail))
		}
		if p.TraceID != "" {
			r.text += " (trace " + printable(p.TraceID) + ")"
		}
	case len(body) > 0:
		if text := strings.TrimSpace(string(body[:min(len(body), plainBytes)])); text != "" {
			r.text += ": " + printable(text)
		}
	}
	return r
}

// maxPause bounds the pause that a server asks for.
const maxPause = 30 * time.Second

// retryAfter reads a Retry-After field (RFC 9110, 10.2.3): seconds, or a date. It
// is 0 if there is none that can be read.
func retryAfter(field string, now time.Time) time.Duration {
	pause := time.Duration(0)
	if seconds, err := strconv.ParseUint(field, 10, 31); err == nil {
		pause = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(field); err == nil {
		pause = date.Sub(now)
	}
	return min(max(pause, 0), maxPause)
}
