package graphtest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The suite's own events, each a function of few words: times are seconds of one
// day, datasets are names in one namespace.

const nominal = `"nominalTime":{"_producer":"https://example.com/p","_schemaURL":"https://example.com/s","nominalStartTime":"2026-11-30T00:00:00Z"}`

const header = `"producer":"https://example.com/p","schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json"`

func at(second int) string { return fmt.Sprintf("2026-11-30T00:%02d:%02dZ", second/60, second%60) }

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func facets(members string) string {
	if members == "" {
		return ""
	}
	return `,"facets":{` + members + `}`
}

func datasets(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		name, members, _ := strings.Cut(n, "|")
		fmt.Fprintf(&b, `{"namespace":"db","name":%s%s}`, quote(name), facets(members))
	}
	return b.String()
}

// run is a run event of a job, with run facets.
func run(job, runID, eventType string, second int, runFacets string) []byte {
	return runIO(job, runID, eventType, second, runFacets, nil, nil)
}

// runIO is a run event with inputs and outputs; a name may carry dataset facets
// behind a bar.
func runIO(job, runID, eventType string, second int, runFacets string, inputs, outputs []string) []byte {
	return fmt.Appendf(nil, `{"eventType":%q,"eventTime":%q,%s,"run":{"runId":%s%s},"job":{"namespace":"jobs","name":%s},"inputs":[%s],"outputs":[%s]}`,
		eventType, at(second), header, quote(runID), facets(runFacets), quote(job), datasets(inputs), datasets(outputs))
}

// symlinks is a facet that gives a dataset another name.
func symlinks(other string) string {
	return fmt.Sprintf(`"symlinks":{"_producer":"https://example.com/p","_schemaURL":"https://example.com/s","identifiers":[{"namespace":"db","name":%q,"type":"TABLE"}]}`, other)
}

// complete is one run that read and wrote.
func complete(job string, second int, inputs, outputs []string) [][]byte {
	id := fmt.Sprintf("%s-%d", job, second)
	return [][]byte{run(job, id, "START", second, ""), runIO(job, id, "COMPLETE", second+1, "", inputs, outputs)}
}
