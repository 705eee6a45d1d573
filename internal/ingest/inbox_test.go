package ingest

import (
	"fmt"
	"testing"
	"time"
)

func TestInboxKeepsTheNewestWithinItsBound(t *testing.T) {
	in := NewInbox(100_000)
	no := &Rejected{[]Problem{{Reason: "no"}}}
	// So many that keeping them must not cost more the more were kept.
	const total = 200_000
	for i := range total {
		in.add(time.Time{}, fmt.Appendf(nil, "body %d", i), no)
	}
	entries, n := in.Newest(1 << 30)
	if n != total {
		t.Errorf("%d counted, want %d", n, total)
	}
	if len(entries) < 100 || len(entries) > 100_000/inboxOverhead {
		t.Errorf("%d entries within 100,000 bytes", len(entries))
	}
	for i, e := range entries {
		if want := fmt.Sprintf("body %d", total-1-i); e.Body != want {
			t.Fatalf("entry %d is %q, want %q", i, e.Body, want)
		}
	}
	if few, _ := in.Newest(2); len(few) != 2 || few[0].Body != entries[0].Body {
		t.Errorf("the two newest are %v", few)
	}
	if len(in.entries) > 2*len(entries)+1 {
		t.Errorf("%d slots for %d entries", len(in.entries), len(entries))
	}
}
