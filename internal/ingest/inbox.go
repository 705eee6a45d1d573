package ingest

import (
	"sync"
	"time"
)

// Inbox keeps the bodies rejected last, within a bound, so that somebody can
// see what a producer sends that is no OpenLineage event. It is safe for
// concurrent use.
type Inbox struct {
	mu      sync.Mutex
	entries []InboxEntry // oldest first, from first on
	first   int          // those before it are dropped
	bytes   int
	bound   int
	total   int64
}

// InboxEntry is one rejected body.
type InboxEntry struct {
	Received time.Time `json:"received"`
	Problems []Problem `json:"problems"`
	// Body is the beginning of the body, Size its whole length in bytes.
	Body string `json:"body"`
	Size int    `json:"size"`
}

// What an entry keeps of a body, and takes beside it.
const (
	inboxBody     = 4096
	inboxOverhead = 512
	inboxProblems = 8
)

// NewInbox returns an inbox that takes about bound bytes.
func NewInbox(bound int) *Inbox { return &Inbox{bound: bound} }

func (in *Inbox) add(received time.Time, body []byte, no *Rejected) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.total++
	problems := no.Problems[:min(len(no.Problems), inboxProblems)]
	e := InboxEntry{Received: received.UTC(), Problems: problems, Body: string(body[:min(len(body), inboxBody)]), Size: len(body)}
	in.entries = append(in.entries, e)
	in.bytes += e.size()
	for in.bytes > in.bound && in.first < len(in.entries)-1 {
		in.bytes -= in.entries[in.first].size()
		in.entries[in.first] = InboxEntry{} // its body is not held any longer
		in.first++
	}
	// The slice is moved when half of it is dropped, so that an entry costs the same
	// however many are kept.
	if in.first > len(in.entries)/2 {
		in.entries = append([]InboxEntry(nil), in.entries[in.first:]...)
		in.first = 0
	}
}

func (e *InboxEntry) size() int {
	n := inboxOverhead + len(e.Body)
	for i := range e.Problems {
		n += len(e.Problems[i].Pointer) + len(e.Problems[i].Reason)
	}
	return n
}

// Newest returns the entries rejected last, newest first, at most n, and how many
// bodies were rejected since the start.
func (in *Inbox) Newest(n int) (entries []InboxEntry, total int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := len(in.entries) - 1; i >= in.first && len(entries) < n; i-- {
		entries = append(entries, in.entries[i])
	}
	return entries, in.total
}
