package ledger

import (
	"reflect"
	"testing"
	"time"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/openlineage"
)

func TestOffset(t *testing.T) {
	day := func(year int, nano int64) openlineage.Instant {
		return openlineage.InstantOf(time.Date(year, 5, 6, 7, 8, 9, 0, time.UTC).Add(time.Duration(nano)))
	}
	now := day(2025, 123_456_789)
	for _, c := range []struct {
		i, from openlineage.Instant
		bytes   int
	}{
		{now, now, 1 + 3},
		{day(2025, 124_000_000), now, 1},
		{day(2025, 154_000_000), now, 1},
		{day(2025, 155_000_000), now, 2},
		{day(2025, 92_000_000), now, 1},
		{day(2025, 90_000_000), now, 2},
		{day(2025, -3_000_000_000), now, 2},
		{day(2025, 5_000_000_000), now, 3},
		{day(2025, 5_000_000_001), now, 3 + 1},
		{day(2025, 999_999), now, 2 + 3},
		{now, rowEpoch, 6 + 3},
		{day(2019, 0), rowEpoch, 6},
		{openlineage.Instant{}, now, 7},
		{day(9999, 999_999_999), openlineage.Instant{}, 8 + 3},
		{openlineage.Instant{}, day(9999, 1), 8},
	} {
		b := appendOffset(nil, c.i, c.from)
		d := decoder{rest: b}
		if got := d.offset(c.from); got != c.i || len(b) != c.bytes || d.bad || len(d.rest) != 0 {
			t.Errorf("%v from %v: %d bytes say %v, want %d", c.i, c.from, len(b), got, c.bytes)
		}
	}
}

func TestEventRow(t *testing.T) {
	none := time.Time{}
	for _, seen := range []time.Time{epoch, epoch.Truncate(time.Second), none, none.Add(100 * time.Millisecond), time.Unix(0, 0).UTC(), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)} {
		for _, happened := range []openlineage.Instant{openlineage.InstantOf(epoch.Add(-time.Second)), {}, openlineage.InstantOf(seen)} {
			r := &eventRow{firstSeen: openlineage.InstantOf(seen), firstEventTime: happened}
			for n := range uint64(maxContents) {
				r.contents = append(r.contents, contentRow{content: digest("content", n)})
				for i := range min(5*n+1, maxDrifts) {
					r.contents[n].drifts = append(r.contents[n].drifts, n<<32+i)
				}
				for layout, value := range map[int][]byte{1: r.encode1(), 2: r.encode()} {
					got, err := decodeEventRow(value, 7)
					if err != nil {
						t.Fatal(err)
					}
					if got.size != windowKeyBytes+len(value) || got.generation != 7 {
						t.Errorf("size %d, generation %d", got.size, got.generation)
					}
					if got.size, got.generation = 0, 0; !reflect.DeepEqual(got, r) {
						t.Fatalf("layout %d: %+v came back as %+v", layout, r, got)
					}
				}
			}
		}
	}
	one := &eventRow{
		firstSeen: openlineage.InstantOf(epoch), firstEventTime: openlineage.InstantOf(epoch.Add(-1500 * time.Millisecond).Truncate(time.Millisecond)),
		contents: []contentRow{{digest("content", 1), []uint64{1}}},
	}
	value := one.encode()
	if want := 1 + 9 + 2 + len(fact.ID{}) + 8; len(value) != want {
		t.Errorf("an event with one body takes %d bytes, want %d", len(value), want)
	}
	for n := range value {
		if got, err := decodeEventRow(value[:n], 1); err == nil {
			t.Errorf("%d of %d bytes are read as %+v", n, len(value), got)
		}
	}
}
