package openlineage

import (
	"strings"
	"testing"
	"time"
)

func TestParseTimeReadsEverySpelling(t *testing.T) {
	for _, c := range []struct {
		in, want string
		zoneless bool
	}{
		{"2026-11-30T16:38:26.196261+00:00", "2026-11-30T16:38:26.196261Z", false},
		{"2026-11-30T16:46:28.459Z", "2026-11-30T16:46:28.459Z", false},
		{"2026-11-20T02:00:00+02:00", "2026-11-20T00:00:00Z", false},
		{"2026-11-20T02:00:00+0200", "2026-11-20T00:00:00Z", false},
		{"2026-11-20T02:00:00+02", "2026-11-20T00:00:00Z", false},
		{"2026-11-20T02:00:00-05:30", "2026-11-20T07:30:00Z", false},
		{"2026-11-20 02:00:00z", "2026-11-20T02:00:00Z", false},
		{"2026-11-20t02:00:00Z", "2026-11-20T02:00:00Z", false},
		{"2026-11-20T02:00Z", "2026-11-20T02:00:00Z", false},
		{"2021-11-03T10:53:52.427343Z[Europe/London]", "2021-11-03T10:53:52.427343Z", false},
		{"2021-11-03T10:53:52.5+01:00[Europe/Berlin]", "2021-11-03T09:53:52.5Z", false},
		{"2021-11-03T10:53:52.5+01[Europe/Berlin]", "2021-11-03T09:53:52.5Z", false},
		{"2021-11-03T10:53:52.123456789Z", "2021-11-03T10:53:52.123456789Z", false},
		{"2021-11-03T10:53:52.1234567899Z", "2021-11-03T10:53:52.123456789Z", false},
		{"2021-11-03T10:53:52,5Z", "2021-11-03T10:53:52.5Z", false},
		{"2021-11-03T10:53:52.000Z", "2021-11-03T10:53:52Z", false},
		{"2021-11-03T10:53:52", "2021-11-03T10:53:52Z", true},
		{"2021-11-03T10:53:52.25", "2021-11-03T10:53:52.25Z", true},
		{"2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", false},
		{"0001-01-02T00:00:00Z", "0001-01-02T00:00:00Z", false},
		{"9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z", false},
	} {
		got, err := ParseTime(c.in)
		if err != nil {
			t.Errorf("ParseTime(%q): %v", c.in, err)
			continue
		}
		if got.String() != c.want || got.Zoneless != c.zoneless {
			t.Errorf("ParseTime(%q) = %s zoneless %v, want %s zoneless %v", c.in, got, got.Zoneless, c.want, c.zoneless)
		}
	}
}

func TestParseTimeRefusesWhatIsNoTime(t *testing.T) {
	for _, in := range []string{
		"", "yesterday", "2026-11-30", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-11-30T24:00:00Z",
		"2026-11-30T00:60:00Z", "2026-11-30T00:00:60Z", "2026-11-30T00:00:00.Z", "2026-11-30T00:00:00ZZ",
		"2026-11-30T00:00:00Z[", "2026-11-30T00:00:00[Europe/London]", "2026-11-30T00:00:00+25:00", "2026-11-30T00:00:00+1",
		"1669766400", "+2026-11-30T00:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "２026-11-30T00:00:00Z",
	} {
		if got, err := ParseTime(in); err == nil {
			t.Errorf("ParseTime(%q) = %s, want an error", in, got)
		} else if !strings.Contains(err.Error(), "not a readable time") {
			t.Errorf("ParseTime(%q): %v does not say what is wrong", in, err)
		}
	}
}

func FuzzParseTimeAgreesWithRFC3339(f *testing.F) {
	f.Add("2026-11-30T16:38:26.196261+00:00")
	f.Add("2021-11-03T10:53:52.427343Z[Europe/London]")
	f.Fuzz(func(t *testing.T, s string) {
		want, err := time.Parse(time.RFC3339Nano, s)
		if len(s) > 13 && s[13] != ':' {
			return // time.Parse also takes an hour of one digit, which no standard does
		}
		if strings.HasSuffix(s, ":60") || strings.Contains(s, "+24:") || strings.Contains(s, "-24:") {
			return // time.Parse also takes a zone of 60 minutes or 24 hours
		}
		if err != nil || want.UTC().Year() < 1 || want.UTC().Year() > 9999 || InstantOf(want).Sec <= 0 {
			return
		}
		got, err := ParseTime(s)
		if err != nil {
			t.Fatalf("time.Parse reads %q, ParseTime does not: %v", s, err)
		}
		if got.Instant != InstantOf(want) {
			t.Fatalf("ParseTime(%q) = %s, time.Parse %s", s, got, want)
		}
	})
}
