package normalize_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/normalize"
)

// What is no event although its schema accepts it, and where that is seen.
func TestRejections(t *testing.T) {
	for _, c := range []struct {
		event, path, value string
		pointer            string
	}{
		{runEvent, "job.name", `""`, "/job/name"},
		{runEvent, "job.namespace", `""`, "/job/namespace"},
		{runEvent, "run.runId", `""`, "/run/runId"},
		{runEvent, "inputs", `[{"namespace": "n", "name": "a"}, {"namespace": "n", "name": ""}]`, "/inputs/1/name"},
		{runEvent, "outputs", `[{"namespace": "", "name": "a"}]`, "/outputs/0/namespace"},
		{jobEvent, "job.name", `""`, "/job/name"},
		{jobEvent, "outputs", `[{"namespace": "", "name": "a"}]`, "/outputs/0/namespace"},
		{datasetEvent, "dataset.name", `""`, "/dataset/name"},
		{datasetEvent, "dataset.namespace", `""`, "/dataset/namespace"},
		{runEvent, "eventTime", `"yesterday"`, "/eventTime"},
		{runEvent, "eventTime", `"2026-02-30T00:00:00Z"`, "/eventTime"},
		{runEvent, "eventTime", `"2026-03-01"`, "/eventTime"},
		{runEvent, "eventTime", `""`, "/eventTime"},
		{datasetEvent, "eventTime", `"2026-03-01T25:00:00Z"`, "/eventTime"},
	} {
		event := with(t, c.event, c.path, c.value)
		in := input(t, event)
		_, err := normalizer(t).Event(in)
		var no *normalize.Rejection
		if !errors.As(err, &no) || no.Pointer != c.pointer || no.Reason == "" {
			t.Errorf("%s %s: %v, want a rejection at %s", c.path, c.value, err, c.pointer)
			continue
		}
		if at := in.Root.Lookup(c.pointer); at == nil || no.Offset != int(at.Off) {
			t.Errorf("%s: byte %d is not where %s stands", c.path, no.Offset, c.pointer)
		}
		if _, err := normalizer(t).Explain(in); !errors.As(err, &no) {
			t.Errorf("explained all the same: %v", err)
		}
		if text := no.Error(); !strings.Contains(text, c.pointer) || !strings.Contains(text, no.Reason) {
			t.Errorf("error text %q", text)
		}
	}
}

func TestWarningsHaveCodesOfAClosedList(t *testing.T) {
	var known []string
	for _, w := range normalize.WarningCodes() {
		known = append(known, w.Code)
	}
	insert := func(members string) string {
		return strings.Replace(runEvent, `"eventType"`, members+`, "eventType"`, 1)
	}
	for _, c := range []struct {
		event string
		want  []fact.Warning // without details
	}{
		{runEvent, nil},
		{with(t, runEvent, "eventTime", `"2026-03-01T05:00:00"`), []fact.Warning{{Code: "zoneless-time", Pointer: "/eventTime"}}},
		{with(t, runEvent, "run.facets.nominalTime.nominalStartTime", `"2026-03-01T05:00:00"`),
			[]fact.Warning{{Code: "zoneless-time", Pointer: "/run/facets/nominalTime/nominalStartTime"}}},
		{insert(`"a": 1, "a": 2`), []fact.Warning{{Code: "duplicate-keys"}}},
		{insert(`"a": [NaN, Infinity, -Infinity]`), []fact.Warning{{Code: "non-finite"}}},
		{insert(`"a": "\ud800"`), []fact.Warning{{Code: "lone-surrogate"}}},
	} {
		got := factOf(t, normalizer(t), c.event).Warnings
		for i := range got {
			if got[i].Detail == "" || !slices.Contains(known, got[i].Code) {
				t.Errorf("warning %+v", got[i])
			}
			got[i].Detail = ""
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v, want %+v\n%s", got, c.want, c.event)
		}
	}
}

func TestATimeWithoutAZoneIsUTC(t *testing.T) {
	n := normalizer(t)
	without, utc := factOf(t, n, with(t, runEvent, "eventTime", `"2026-03-01T05:00:00.5"`)), factOf(t, n, with(t, runEvent, "eventTime", `"2026-03-01T07:00:00.50+02:00"`))
	if without.Time != utc.Time || without.Time.String() != "2026-03-01T05:00:00.5Z" {
		t.Errorf("%s and %s", without.Time, utc.Time)
	}
}
