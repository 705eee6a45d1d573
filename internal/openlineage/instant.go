package openlineage

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Instant is a moment in UTC with nanoseconds. Its zero value is the year 1,
// earlier than every instant that ParseTime returns, and means "none".
type Instant struct {
	// Sec counts seconds since 0001-01-01T00:00:00Z, so that it is never negative.
	Sec  int64
	Nano int32
}

const secondsToUnixEpoch = 62135596800

// InstantOf returns t as an Instant.
func InstantOf(t time.Time) Instant {
	return Instant{Sec: t.Unix() + secondsToUnixEpoch, Nano: int32(t.Nanosecond())}
}

// Time returns i as a time.Time in UTC.
func (i Instant) Time() time.Time { return time.Unix(i.Sec-secondsToUnixEpoch, int64(i.Nano)).UTC() }

// IsZero reports whether i is no moment at all.
func (i Instant) IsZero() bool { return i == Instant{} }

// Compare orders instants: -1 when i is before j, 0 when equal, 1 when after.
func (i Instant) Compare(j Instant) int {
	if c := cmp.Compare(i.Sec, j.Sec); c != 0 {
		return c
	}
	return cmp.Compare(i.Nano, j.Nano)
}

// Before reports whether i is before j.
func (i Instant) Before(j Instant) bool { return i.Compare(j) < 0 }

// After reports whether i is after j.
func (i Instant) After(j Instant) bool { return i.Compare(j) > 0 }

// Hour returns the number of whole hours since the year 1.
func (i Instant) Hour() int64 { return i.Sec / 3600 }

// String returns the canonical spelling: RFC 3339 in UTC, with as many digits
// of the second as are needed.
func (i Instant) String() string {
	if i.IsZero() {
		return ""
	}
	return i.Time().Format(time.RFC3339Nano)
}

// MarshalText makes an Instant readable in JSON output.
func (i Instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// ParsedTime is what ParseTime read.
type ParsedTime struct {
	Instant
	// Zoneless says that the text named no zone and was read as UTC.
	Zoneless bool
}

// ParseTime reads a moment in every spelling that producers were seen to send
// (docs/identity.md, Canonical form): RFC 3339 with "T", "t" or a space; with
// or without seconds; a fraction of any length after "." or "," (digits past
// the ninth are cut); a zone as "Z", "z", "+02:00", "+0200" or "+02", or none
// (read as UTC); and behind the zone a Java region such as "[Europe/London]".
func ParseTime(s string) (ParsedTime, error) {
	fail := func(why string) (ParsedTime, error) {
		return ParsedTime{}, fmt.Errorf("not a readable time: %s", why)
	}
	p := timeParser{rest: s}
	year, month, day := p.number(4), 0, 0
	p.literal("-")
	month = p.number(2)
	p.literal("-")
	day = p.number(2)
	if p.failed || !p.anyOf("Tt ") {
		return fail("want YYYY-MM-DDThh:mm:ss, a fraction and a zone")
	}
	hour, minute, second := p.number(2), 0, 0
	p.literal(":")
	minute = p.number(2)
	if strings.HasPrefix(p.rest, ":") {
		p.literal(":")
		second = p.number(2)
	}
	nano := p.fraction()
	offset, zoneless := p.zone()
	if p.failed || p.rest != "" {
		return fail("the part after the date is not hh:mm[:ss[.fraction]][zone]")
	}
	if year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return fail("no such day")
	}
	if hour > 23 || minute > 59 || second > 59 {
		return fail("no such time of day")
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nano, time.UTC)
	i := InstantOf(t.Add(-offset))
	if i.Sec <= 0 || i.Time().Year() > 9999 {
		return fail("outside the years 1 to 9999")
	}
	return ParsedTime{Instant: i, Zoneless: zoneless}, nil
}

func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// timeParser eats a time from the front of rest; failed sticks.
type timeParser struct {
	rest   string
	failed bool
}

func (p *timeParser) number(digits int) int {
	if p.failed || len(p.rest) < digits {
		p.failed = true
		return 0
	}
	for i := range digits {
		if p.rest[i] < '0' || p.rest[i] > '9' {
			p.failed = true
			return 0
		}
	}
	n, err := strconv.Atoi(p.rest[:digits])
	p.failed = err != nil
	p.rest = p.rest[digits:]
	return n
}

func (p *timeParser) literal(s string) {
	if !strings.HasPrefix(p.rest, s) {
		p.failed = true
		return
	}
	p.rest = p.rest[len(s):]
}

func (p *timeParser) anyOf(set string) bool {
	if p.rest == "" || !strings.ContainsRune(set, rune(p.rest[0])) {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// fraction eats an optional fraction of a second and returns nanoseconds.
func (p *timeParser) fraction() int {
	if !p.anyOf(".,") {
		return 0
	}
	nano, scale, digits := 0, 100_000_000, 0
	for p.rest != "" && p.rest[0] >= '0' && p.rest[0] <= '9' {
		nano += int(p.rest[0]-'0') * scale
		scale /= 10
		digits++
		p.rest = p.rest[1:]
	}
	p.failed = p.failed || digits == 0
	return nano
}

// zone eats an optional zone and region.
func (p *timeParser) zone() (offset time.Duration, zoneless bool) {
	switch {
	case p.anyOf("Zz"):
	case p.rest == "":
		return 0, true
	case p.rest[0] == '+' || p.rest[0] == '-':
		sign := time.Duration(1)
		if p.rest[0] == '-' {
			sign = -1
		}
		p.rest = p.rest[1:]
		hours, minutes := p.number(2), 0
		if p.anyOf(":") || (p.rest != "" && p.rest[0] != '[') {
			minutes = p.number(2)
		}
		if hours > 23 || minutes > 59 {
			p.failed = true
		}
		offset = sign * (time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
	default:
		p.failed = true
		return 0, false
	}
	if strings.HasPrefix(p.rest, "[") && strings.HasSuffix(p.rest, "]") && !strings.ContainsAny(p.rest[1:len(p.rest)-1], "[]") {
		p.rest = ""
	}
	return offset, false
}
