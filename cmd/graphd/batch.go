package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/ingest"
)

// Bounds of one try to send a batch: how long it may take, which is what a server
// lets a batch take and a little more, and how long its answer may be.
const (
	tryTime     = 7 * time.Minute
	answerBytes = 256 << 20
)

// httpIntake sends events to a server, as batches of one event a line. Sending
// one again does no harm, so that whatever may pass is tried again.
type httpIntake struct {
	remote *remote
	// retryFor is for how long a batch is tried again; 0: never.
	retryFor time.Duration
	// notice tells that the server cannot be reached for now. It is told once until
	// the server answers again.
	notice func(error)
	down   atomic.Bool
	// decoder says what is wrong with a body that is no line.
	decoder func() (*ingest.Decoder, error)
}

func newHTTPIntake(r *remote, retryFor time.Duration, notice func(error)) *httpIntake {
	return &httpIntake{remote: r, retryFor: retryFor, notice: notice, decoder: sync.OnceValues(func() (*ingest.Decoder, error) {
		return ingest.NewDecoder(ingest.Options{})
	})}
}

// line is a body on its way: the item that it is, and its text without a break.
type line struct {
	item int
	text []byte
}

// send implements intake.
func (h *httpIntake) send(ctx context.Context, bodies [][]byte) ([]ingest.Item, error) {
	items := make([]ingest.Item, len(bodies))
	lines := make([]line, 0, len(bodies))
	for i, body := range bodies {
		text, err := h.oneLine(body)
		if no := (*ingest.Rejected)(nil); errors.As(err, &no) {
			items[i].Err = no
		} else if err != nil {
			return items, err
		} else {
			lines = append(lines, line{i, text})
		}
	}
	return items, h.deliver(ctx, lines, items)
}

// close implements intake.
func (h *httpIntake) close(context.Context) error {
	h.remote.close()
	return nil
}

// oneLine puts a body on one line. A line break becomes a tab, which is as much
// white space between tokens, as little allowed within a string, and as long. A
// body that does not begin as an object is no event; as a line it could be none
// at all, or make an array of the batch. The error is then a *ingest.Rejected.
func (h *httpIntake) oneLine(body []byte) ([]byte, error) {
	text := bytes.Trim(body, " \t\r\n") // what JSON takes for white space, and no more
	if len(text) == 0 || text[0] != '{' {
		d, err := h.decoder()
		if err != nil {
			return nil, err
		}
		if _, err := d.Decode(body); err != nil {
			return nil, err
		}
	}
	return bytes.ReplaceAll(text, []byte{'\n'}, []byte{'\t'}), nil
}

// deliver sends lines until each has its item. A batch that is too large for the
// server goes in halves.
func (h *httpIntake) deliver(ctx context.Context, lines []line, items []ingest.Item) error {
	if len(lines) == 0 {
		return nil
	}
	left := lines
	err := h.retry(ctx, func() (err error) {
		left, err = h.post(ctx, left, items)
		return err
	})
	var no *refused
	if !errors.As(err, &no) || no.status != http.StatusRequestEntityTooLarge {
		return err
	}
	if len(left) == 1 {
		items[left[0].item].Err = no
		return nil
	}
	half := len(left) / 2
	if err := h.deliver(ctx, left[:half], items); err != nil {
		return err
	}
	return h.deliver(ctx, left[half:], items)
}

// batchAnswer is what is read of the answer to a batch.
type batchAnswer struct {
	Failed []struct {
		Index     int    `json:"index"`
		Reason    string `json:"reason"`
		Retriable bool   `json:"retriable"`
	} `json:"failed_events"`
	// Receipts are receipts, or problems of events that failed.
	Receipts []struct {
		Outcome fact.Outcome     `json:"outcome"`
		Errors  []ingest.Problem `json:"errors"`
	} `json:"receipts"`
}

// unfinished says that a server could not take some events of a batch for now.
type unfinished struct {
	events int
	reason string
}

// Error implements error.
func (u *unfinished) Error() string {
	return fmt.Sprintf("%d events were not taken in: %s", u.events, printable(u.reason))
}

// alien is an answer that graphd would not give.
type alien struct{ error }

// post sends lines once, and returns those that are to be sent again: all of them
// on every error but *unfinished.
func (h *httpIntake) post(ctx context.Context, lines []line, items []ingest.Item) ([]line, error) {
	try, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	text := make(net.Buffers, 0, 2*len(lines))
	length := int64(0)
	for _, l := range lines {
		text = append(text, l.text, []byte{'\n'})
		length += int64(len(l.text)) + 1
	}
	response, err := h.remote.do(try, request{
		method: http.MethodPost, path: "/api/v1/lineage/batch", accept: "application/json", content: "application/x-ndjson", body: &text, length: length,
	})
	if err != nil {
		return lines, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	if err != nil {
		return lines, fmt.Errorf("reading the answer to a batch: %w", err)
	}
	var answer batchAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return lines, &alien{fmt.Errorf("%s is no graphd server: the answer to a batch cannot be read: %w", h.remote.base, err)}
	}
	return answer.sort(h.remote, lines, items)
}

// sort puts what became of lines into their items.
func (a *batchAnswer) sort(r *remote, lines []line, items []ingest.Item) (again []line, err error) {
	strange := func(format string, args ...any) ([]line, error) {
		return lines, &alien{fmt.Errorf("%s answers to a batch as graphd does not: %s", r.base, fmt.Sprintf(format, args...))}
	}
	if len(a.Receipts) != len(lines) {
		return strange("%d receipts for %d events", len(a.Receipts), len(lines))
	}
	failed := make(map[int]error, len(a.Failed))
	reason := ""
	for _, f := range a.Failed {
		if f.Index < 0 || f.Index >= len(lines) {
			return strange("event %d of %d failed", f.Index, len(lines))
		}
		failed[f.Index] = errors.New(f.Reason)
		if problems := a.Receipts[f.Index].Errors; len(problems) > 0 {
			failed[f.Index] = &ingest.Rejected{Problems: problems}
		}
		if f.Retriable {
			failed[f.Index], reason = nil, f.Reason
		}
	}
	for i := range lines {
		if _, ok := failed[i]; !ok && a.Receipts[i].Outcome == "" {
			return strange("event %d has neither an outcome nor a fault", i)
		}
	}
	for i, l := range lines {
		err, isFailed := failed[i]
		switch {
		case !isFailed:
			items[l.item].Receipt = &ingest.Receipt{Outcome: a.Receipts[i].Outcome}
		case err != nil:
			items[l.item].Err = err
		default:
			again = append(again, l)
		}
	}
	if len(again) > 0 {
		return again, &unfinished{len(again), reason}
	}
	return nil, nil
}

// retry calls try until it succeeds, fails for good, or retryFor is over. Pauses
// grow, and are random, so that those who were refused at once do not come again
// at once.
func (h *httpIntake) retry(ctx context.Context, try func() error) error {
	pauses := &backoff.ExponentialBackOff{InitialInterval: 250 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: maxPause / 2}
	options := []backoff.RetryOption{
		backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(h.retryFor), backoff.WithNotify(func(err error, _ time.Duration) {
			if h.down.CompareAndSwap(false, true) {
				h.notice(err)
			}
		}),
	}
	if h.retryFor <= 0 {
		options = append(options, backoff.WithMaxTries(1))
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := try()
		if err == nil {
			h.down.Store(false)
			return struct{}{}, nil
		}
		if ctx.Err() != nil {
			return struct{}{}, backoff.Permanent(context.Cause(ctx))
		}
		return struct{}{}, verdict(err)
	}, options...)
	return err
}

// verdict says of an error whether, and when, to try again, in the terms of
// package backoff.
func verdict(err error) error {
	var no *refused
	var certificate *tls.CertificateVerificationError
	switch other := (*alien)(nil); {
	case errors.As(err, &other), errors.As(err, &certificate):
		return backoff.Permanent(err)
	case errors.As(err, &no):
		switch no.status {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			if no.after > 0 {
				jitter := time.Duration(rand.Int64N(int64(no.after)/10 + 1))
				return &later{err, &backoff.RetryAfterError{Duration: no.after + jitter}}
			}
		default:
			return backoff.Permanent(err)
		}
	}
	return err
}

// later is an error of a server that said when to ask again.
type later struct {
	error
	pause *backoff.RetryAfterError
}

// Unwrap gives both.
func (l *later) Unwrap() []error { return []error{l.error, l.pause} }
