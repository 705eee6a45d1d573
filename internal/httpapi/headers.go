package httpapi

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/graphd/graphd/internal/ingest"
)

// idempotency remembers which body each Idempotency-Key came with. Events are
// told apart by what they say, so the key changes nothing of what a delivery
// does; it catches a client that uses one key for two bodies.
type idempotency struct {
	mu   sync.Mutex // over a look and what follows from it
	seen *lru.Cache[digest, digest]
}

type digest [sha256.Size]byte

// maxKey bounds a key, in bytes.
const maxKey = 255

func newIdempotency(size int) (*idempotency, error) {
	seen, err := lru.New[digest, digest](size)
	if err != nil {
		return nil, fmt.Errorf("remembering idempotency keys: %w", err)
	}
	return &idempotency{seen: seen}, nil
}

// key returns a request's Idempotency-Key, "" if it has none.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	wrong := func(reason string) error {
		return fail("invalid-header", []Fault{{Header: "Idempotency-Key", Reason: text(reason)}},
			"Send one Idempotency-Key of 1 to %d bytes, or none.", maxKey)
	}
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", wrong("it stands there more than once")
	case values[0] == "" || len(values[0]) > maxKey:
		return "", wrong("it is empty or too long")
	}
	return values[0], nil
}

// check notes a key with its body. It fails if the key came with another body
// before. A key of "" is none.
func (i *idempotency) check(route, key string, body []byte) error {
	if key == "" {
		return nil
	}
	k, sum := digest(sha256.Sum256([]byte(route+"\n"+key))), digest(sha256.Sum256(body))
	i.mu.Lock()
	defer i.mu.Unlock()
	if before, ok := i.seen.Get(k); ok && before != sum {
		return fail("idempotency-key-reused", []Fault{{Header: "Idempotency-Key", Reason: "it came with another body before"}},
			"Nothing was stored. Use a new key for each body, or none: graphd recognises a repeated event by what it says.")
	}
	i.seen.Add(k, sum)
	return nil
}

// forget frees a key whose body was refused: nothing was stored under it, and
// whoever mends the body may send it under the same key.
func (i *idempotency) forget(route, key string) {
	if key == "" {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen.Remove(digest(sha256.Sum256([]byte(route + "\n" + key))))
}

// longestWait bounds how long a caller may have its answer wait: less than a server
// that ends gives to the requests that run.
const longestWait = 15 * time.Second

// preferred reads the header Prefer (RFC 7240) and returns how long to wait for the
// graph to show what is written, and what to answer in Preference-Applied.
// respond-async asks not to wait; the answer is no 202, on which some clients
// fail. Unknown preferences are left alone, as the RFC asks.
func preferred(h http.Header) (wait time.Duration, applied string, err error) {
	wait = ingest.DefaultWait
	for _, field := range h.Values("Prefer") {
		for _, preference := range strings.Split(field, ",") {
			preference, _, _ = strings.Cut(preference, ";") // parameters: none of ours has one
			name, value, has := strings.Cut(preference, "=")
			name, value = strings.ToLower(strings.TrimSpace(name)), strings.Trim(strings.TrimSpace(value), `"`)
			wrong := func(reason string) (time.Duration, string, error) {
				return 0, "", fail("invalid-header", []Fault{{Header: "Prefer", Reason: text(reason)}},
					"Send Prefer: wait=SECONDS, Prefer: respond-async, or none.")
			}
			var asked time.Duration
			var as string
			switch name {
			case "wait":
				seconds, err := strconv.ParseUint(value, 10, 31)
				if err != nil {
					return wrong("wait is not a whole number of seconds")
				}
				asked, as = min(time.Duration(seconds)*time.Second, longestWait), "wait="+strconv.FormatUint(min(seconds, uint64(longestWait/time.Second)), 10)
			case "respond-async":
				if has {
					return wrong("respond-async takes no value")
				}
				as = "respond-async"
			}
			if as != "" && applied == "" { // the first one counts
				wait, applied = asked, as
			}
		}
	}
	return wait, applied, nil
}
