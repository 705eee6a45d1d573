package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphd/graphd/internal/ingest"
)

// exchange answers the n-th request, from 1, whose body has these lines.
type exchange func(n int, r *http.Request, lines []string) (*http.Response, error)

// script is a server that is none: it answers as a test says.
type script struct {
	t      *testing.T
	answer exchange
	n      int
	sent   []string // the lines of each request, joined by spaces
}

// RoundTrip implements http.RoundTripper.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil || int64(len(text)) != r.ContentLength || r.Header.Get("Content-Type") != "application/x-ndjson" || r.URL.Path != "/graph/api/v1/lineage/batch" {
		s.t.Errorf("%v: %s of %d bytes, told as %d: %v", r.URL, text, len(text), r.ContentLength, r.Header)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	s.n++
	s.sent = append(s.sent, strings.Join(lines, " "))
	answer, err := s.answer(s.n, r, lines)
	if answer != nil {
		answer.Request = r
	}
	return answer, err
}

func answered(status int, kind, body string, headers ...string) *http.Response {
	r := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func problem(status int, title, detail string, headers ...string) *http.Response {
	return answered(status, "application/problem+json", fmt.Sprintf(`{"title":%q,"status":%d,"detail":%q,"errors":[]}`, title, status, detail), headers...)
}

// taken answers that all lines were taken in, but for those that begin as told.
func taken(lines []string, failed map[string]string) *http.Response {
	type failure struct {
		Index     int    `json:"index"`
		Reason    string `json:"reason"`
		Retriable bool   `json:"retriable"`
	}
	answer := struct {
		Failed   []failure `json:"failed_events"`
		Receipts []any     `json:"receipts"`
	}{[]failure{}, []any{}}
	for i, l := range lines {
		receipt := map[string]any{"outcome": "new"}
		for start, reason := range failed {
			if strings.HasPrefix(l, start) {
				answer.Failed = append(answer.Failed, failure{i, reason, strings.Contains(reason, "later")})
				receipt = map[string]any{"title": "no", "errors": []any{}}
			}
		}
		answer.Receipts = append(answer.Receipts, receipt)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return answered(200, "application/json", string(text))
}

// torn is a body that breaks.
type torn struct{ io.Reader }

func (torn) Close() error { return nil }

// intakeOf returns an intake into a script. Time is the bubble's.
func intakeOf(t *testing.T, retryFor time.Duration, answer exchange) (*httpIntake, *script, *[]error) {
	t.Helper()
	r, err := newRemote(remoteFlags{to: "http://graph.test/graph/", key: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, answer: answer}
	r.http.Transport = s
	notices := &[]error{}
	return newHTTPIntake(r, retryFor, func(err error) { *notices = append(*notices, err) }), s, notices
}

func bodies(texts ...string) (out [][]byte) {
	for _, t := range texts {
		out = append(out, []byte(t))
	}
	return out
}

// became writes items as words.
func became(items []ingest.Item) string {
	words := make([]string, len(items))
	for i, item := range items {
		switch {
		case item.Err != nil:
			words[i] = item.Err.Error()
		case item.Receipt != nil:
			words[i] = string(item.Receipt.Outcome)
		default:
			words[i] = "?"
		}
	}
	return strings.Join(words, ", ")
}

func TestSendTriesAgainWhatMayPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pauses []time.Duration
		last := time.Now()
		h, s, notices := intakeOf(t, 2*time.Minute, func(n int, r *http.Request, lines []string) (*http.Response, error) {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			if r.Header.Get("Authorization") != "Bearer s3cret" {
				t.Errorf("Authorization is %q", r.Header.Get("Authorization"))
			}
			switch n {
			case 1:
				return nil, errors.New("connection refused")
			case 2:
				return problem(503, "The store is full", "Make room.", "Retry-After", "7"), nil
			case 3:
				return answered(502, "text/html", "<h1>Bad gateway</h1>"), nil
			case 4:
				return problem(503, "Not at the moment", "", "Retry-After", "600"), nil
			case 5:
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: torn{io.MultiReader(strings.NewReader(`{"failed_`), torn{broken{}})}}, nil
			case 6:
				return problem(503, "Not at the moment", "", "Retry-After", last.UTC().Add(9*time.Second).Format(http.TimeFormat)), nil
			}
			return taken(lines, nil), nil
		})
		items, err := h.send(t.Context(), bodies(`{"a":1}`, `{"b":2}`))
		if err != nil || became(items) != "new, new" || s.n != 7 {
			t.Fatalf("%v: %s after %d requests", err, became(items), s.n)
		}
		if len(*notices) != 1 || !strings.Contains((*notices)[0].Error(), "connection refused") {
			t.Errorf("told: %v", *notices)
		}
		for i, want := range [][2]time.Duration{
			{0, 0}, {125 * time.Millisecond, 375 * time.Millisecond}, {7 * time.Second, 7700 * time.Millisecond}, {time.Millisecond, time.Second},
			{30 * time.Second, 33 * time.Second}, {time.Millisecond, time.Second}, {8 * time.Second, 10 * time.Second},
		} {
			if pauses[i] < want[0] || pauses[i] > want[1] {
				t.Errorf("request %d came after %s, want %s", i+1, pauses[i], want)
			}
		}
		// It was told once; what comes after it has answered is told anew.
		if h.down.Load() {
			t.Error("the server counts as down")
		}
	})
}

// broken is a reader that fails.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestSendGivesUp(t *testing.T) {
	for _, test := range []struct {
		retryFor  time.Duration
		low, high int
	}{{0, 1, 1}, {time.Second, 2, 8}, {2 * time.Minute, 8, 40}} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			h, s, _ := intakeOf(t, test.retryFor, func(int, *http.Request, []string) (*http.Response, error) {
				return problem(503, "The store is full", "Make room.", "Retry-After", "0"), nil
			})
			items, err := h.send(t.Context(), bodies(`{}`))
			var no *refused
			if !errors.As(err, &no) || !strings.Contains(err.Error(), "503 Service Unavailable: The store is full. Make room.") || became(items) != "?" {
				t.Errorf("%v, %s", err, became(items))
			}
			if s.n < test.low || s.n > test.high || time.Since(start) > test.retryFor {
				t.Errorf("--retry-for %s: %d requests in %s", test.retryFor, s.n, time.Since(start))
			}
		})
	}
}

func TestSendTellsWhatIsFinal(t *testing.T) {
	for _, test := range []struct {
		answer *http.Response
		want   string
	}{
		{problem(401, "Who are you?", "Send a key."), "POST http://graph.test/graph/api/v1/lineage/batch: 401 Unauthorized: Who are you?. Send a key."},
		{answered(404, "text/html", "<h1>\x1b[2JNo</h1>"), `404 Not Found: "<h1>\x1b[2JNo</h1>"`},
		{answered(301, "text/html", "", "Location", "https://graph.test/"), "301 Moved Permanently: it is elsewhere, at https://graph.test/; give that as --to"},
		{problem(500, "Something is broken", "See the log."), "500 Internal Server Error: Something is broken"},
		{answered(200, "text/html", "<h1>Welcome</h1>"), "http://graph.test/graph/ is no graphd server"},
		{answered(200, "application/json", `{"receipts":[]}`), "as graphd does not: 0 receipts for 2 events"},
		{answered(200, "application/json", `{"receipts":[{"outcome":"new"},{}]}`), "event 1 has neither an outcome nor a fault"},
		{answered(200, "application/json", `{"failed_events":[{"index":9}],"receipts":[{},{}]}`), "event 9 of 2 failed"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, s, _ := intakeOf(t, time.Minute, func(int, *http.Request, []string) (*http.Response, error) { return test.answer, nil })
			items, err := h.send(t.Context(), bodies(`{}`, `{}`))
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret") || became(items) != "?, ?" {
				t.Errorf("%v\nwant %s; %s", err, test.want, became(items))
			}
			if s.n != 1 {
				t.Errorf("%s was asked for %d times", test.want, s.n)
			}
		})
	}
}

func TestSendRepeatsOnlyWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s, notices := intakeOf(t, time.Minute, func(n int, _ *http.Request, lines []string) (*http.Response, error) {
			failed := map[string]string{`{"bad`: "it is bad"}
			if n == 1 {
				failed[`{"wait`] = "later"
			}
			return taken(lines, failed), nil
		})
		items, err := h.send(t.Context(), bodies(`{"a":1}`, `{"wait":1}`, `{"bad":1}`, `{"wait":2}`, `{"b":1}`))
		if err != nil || became(items) != "new, new, it is bad, new, new" {
			t.Errorf("%v: %s", err, became(items))
		}
		if len(s.sent) != 2 || s.sent[1] != `{"wait":1} {"wait":2}` {
			t.Errorf("sent: %q", s.sent)
		}
		if len(*notices) != 1 || !strings.Contains((*notices)[0].Error(), "2 events were not taken in: later") {
			t.Errorf("told: %v", *notices)
		}
	})
}

func TestSendHalvesWhatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s, _ := intakeOf(t, time.Minute, func(_ int, _ *http.Request, lines []string) (*http.Response, error) {
			if len(lines) > 2 || strings.HasPrefix(lines[0], `{"huge`) {
				return problem(413, "Too large", "The limit is small."), nil
			}
			return taken(lines, nil), nil
		})
		items, err := h.send(t.Context(), bodies(`{"a":1}`, `{"a":2}`, `{"a":3}`, `{"huge":1}`, `{"a":5}`))
		if err != nil || !strings.HasPrefix(became(items), "new, new, new, POST http") || !strings.HasSuffix(became(items), "Too large. The limit is small., new") {
			t.Errorf("%v: %s; sent %q", err, became(items), s.sent)
		}
	})
}

// The lines that go out are the bodies, and nothing in a body makes more or fewer
// of them.
func TestSendPutsEachBodyOnItsLine(t *testing.T) {
	h, s, _ := intakeOf(t, 0, func(_ int, _ *http.Request, lines []string) (*http.Response, error) { return taken(lines, nil), nil })
	items, err := h.send(t.Context(), bodies(" [1]", "{\n \"a\":\r\n1}\n", "", "{\"a\":\"b\nc\"}", "null", "\u00a0{}", "{}{}"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, false, true, false, false, true} {
		var no *ingest.Rejected
		if got := items[i].Receipt != nil; got != want || !want && !errors.As(items[i].Err, &no) {
			t.Errorf("body %d is sent: %v; %s", i, got, became(items))
		}
	}
	if want := "{\t \"a\":\r\t1} {\"a\":\"b\tc\"} {}{}"; len(s.sent) != 1 || s.sent[0] != want {
		t.Errorf("sent %q, want %q", s.sent, want)
	}
	// Nothing is sent where nothing is left.
	if items, err := h.send(t.Context(), bodies("x")); err != nil || items[0].Err == nil || s.n != 1 {
		t.Errorf("%v, %s, %d requests", err, became(items), s.n)
	}
}

func TestSendEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h, s, _ := intakeOf(t, time.Hour, func(int, *http.Request, []string) (*http.Response, error) {
			return problem(503, "Not at the moment", "", "Retry-After", "30"), nil
		})
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		if _, err := h.send(ctx, bodies(`{}`)); !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Second || s.n != 1 {
			t.Errorf("%v after %s and %d requests", err, time.Since(start), s.n)
		}
	})
}

func TestRejectionsOfAServerAreThoseOfADecoder(t *testing.T) {
	h, _, _ := intakeOf(t, 0, func(int, *http.Request, []string) (*http.Response, error) {
		return answered(200, "application/json", `{"failed_events":[{"index":0,"reason":"whole text"}],`+
			`"receipts":[{"title":"no","errors":[{"pointer":"/a/b","offset":7,"reason":"no time."},{"pointer":"","offset":0,"reason":"x"}]}]}`), nil
	})
	items, err := h.send(t.Context(), bodies(`{}`))
	if want := `no time at "/a/b", byte 7 (and 1 more)`; err != nil || became(items) != want {
		t.Errorf("%v: %s, want %s", err, became(items), want)
	}
}

func TestRemoteFlags(t *testing.T) {
	for _, f := range []remoteFlags{
		{to: ""}, {to: "localhost:5000"}, {to: "ftp://x"}, {to: "http://"}, {to: "http://u:p@x"}, {to: "http://x/?q=1"}, {to: "http://x/#f"}, {to: "http://x y"},
		{to: defaultServer, key: "s3cret\nX: y"}, {to: defaultServer, key: "s3cret s3cret"}, {to: defaultServer, key: "s3cret\u00e9"},
	} {
		var usage *usageError
		if _, err := newRemote(f); !errors.As(err, &usage) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%+v: %v", f, err)
		}
	}
	r, err := newRemote(remoteFlags{to: "https://graph.example/under/here", key: " key\n"})
	if err != nil || r.key != "key" {
		t.Errorf("%+v, %v", r, err)
	}
}
