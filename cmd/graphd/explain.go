package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/httpapi"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/jsontree"
)

// explanation says why two events do or do not merge.
type explanation struct {
	A identityLine `json:"a"`
	B identityLine `json:"b"`
	// Merge is whether B, behind A, adds to what A is; Outcome is what its delivery
	// would do.
	Merge     bool          `json:"merge"`
	Outcome   graph.Outcome `json:"outcome"`
	SameEvent bool          `json:"sameEvent"`
	// SameContent is whether one event has one content.
	SameContent bool        `json:"sameContent"`
	Differences []explained `json:"differences"`
}

// explained is one difference, in a field of some class. The pointer leads into
// the event, with sets in canonical order; for slot into the slot that the
// identity document has in place of the runId. What only whole bodies show, such
// as which of two datasets a description is of, is of class body, and its pointer
// leads into the body as sent.
type explained struct {
	Class   string          `json:"class"`
	Pointer httpapi.Text    `json:"pointer"`
	A       json.RawMessage `json:"a,omitempty"`
	B       json.RawMessage `json:"b,omitempty"`
}

func (a *app) explainCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain A B",
		Short: "Say why two events do or do not merge, field by field",
		Long: "Compare two events: whether they are one event, with one content, and which field of which class makes the difference.\n" +
			"The exit status is 0 if they merge, 1 if they do not, 2 if that cannot be said.\n\n" +
			"A and B are each a file that holds one event, or FILE#N for the N-th event of a file; one of them can be -.",
		Args: exactly(2, "two events, A and B"),
		RunE: func(_ *cobra.Command, args []string) error {
			x, err := a.explain(args[0], args[1])
			if err != nil {
				return &statusError{exitUsage, err}
			}
			if asJSON {
				err = a.writeJSON(x)
			} else {
				_, err = a.stdout.Write(x.text())
			}
			if err == nil && !x.Merge {
				err = &statusError{code: exitFailed}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func (a *app) explain(pathA, pathB string) (*explanation, error) {
	decoder, err := ingest.NewDecoder(ingest.Options{Names: nameRules(true)})
	if err != nil {
		return nil, err
	}
	if pathA == "-" && pathB == "-" {
		return nil, errors.New("only one of the two events can come from standard input")
	}
	x := &explanation{Differences: []explained{}}
	var bodies [2][]byte
	var events [2]*fact.Event
	for i, path := range []string{pathA, pathB} {
		body, err := a.one(path)
		if err != nil {
			return nil, err
		}
		e, id, err := httpapi.Identify(decoder, body.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", printable(path), err)
		}
		bodies[i], events[i] = body.Data, e
		*[]*identityLine{&x.A, &x.B}[i] = identityLine{httpapi.Text(body.Place()), id}
	}
	httpapi.Place(decoder.Version(), events[:], []*httpapi.Identity{x.A.Identity, x.B.Identity})
	x.conclude()
	return x, x.compare(bodies)
}

// one reads the one event that a path names.
func (a *app) one(path string) (ingest.Body, error) {
	file, number := path, 0
	if i := strings.LastIndexByte(path, '#'); i > 0 {
		if n, err := strconv.Atoi(path[i+1:]); err == nil && n > 0 {
			if _, err := os.Stat(path); err != nil { // no file has that very name
				file, number = path[:i], n
			}
		}
	}
	var found []ingest.Body
	total := 0
	for body, err := range (ingest.Source{Stdin: a.stdin, MaxBody: maxEvent}).Read(file) {
		if total++; err != nil && (number == 0 || number == total) {
			return body, err
		}
		if number == 0 && total <= 2 || number == total {
			found = append(found, body)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case number > 0:
		return ingest.Body{}, fmt.Errorf("%s holds %d events, there is no number %d", printable(file), total, number)
	case total == 0:
		return ingest.Body{}, fmt.Errorf("%s holds no event", printable(file))
	}
	return ingest.Body{}, fmt.Errorf("%s holds %d events: say which, as %s#1", printable(file), total, printable(file))
}

// conclude says what the second event is to the first.
func (x *explanation) conclude() {
	a, b := x.A.Identity, x.B.Identity
	x.SameEvent = a.EventID == b.EventID
	x.SameContent = x.SameEvent && a.Content == b.Content
	switch {
	case !x.SameEvent:
		x.Outcome = graph.New
	case a.Body == b.Body:
		x.Outcome = graph.Retry
	case !x.SameContent:
		x.Outcome = graph.Collision
	case a.Drift != b.Drift:
		x.Outcome = graph.Redescribed
	default:
		x.Outcome = graph.Equivalent
	}
	x.Merge = x.SameContent
}

// deciding is the class of field that makes an outcome.
var deciding = map[graph.Outcome]string{graph.New: "identity", graph.Collision: "fixed", graph.Redescribed: "drifting", graph.Equivalent: "transport"}

// compare finds the differences, by class; where those do not tell the outcome,
// in the bodies.
func (x *explanation) compare(bodies [2][]byte) error {
	a, b := x.A.Identity, x.B.Identity
	told := x.Outcome == graph.Retry
	for _, part := range []struct {
		class string
		a, b  json.RawMessage
	}{
		{"identity", a.Document, b.Document}, {"fixed", a.Fixed, b.Fixed}, {"drifting", a.Drifting, b.Drifting},
		{"transport", a.Transport, b.Transport}, {"body", bodies[0], bodies[1]},
	} {
		if part.class == "body" && told {
			break
		}
		left, right, err := parseBoth(part.a, part.b, jsontree.Limits{Canonical: part.class != "body"})
		if err != nil {
			return err
		}
		for _, d := range differ(left, right) {
			told = told || part.class == deciding[x.Outcome]
			class, pointer := part.class, d.pointer
			if class == "identity" {
				class, pointer = placeInEvent(pointer)
			}
			x.Differences = append(x.Differences, explained{class, httpapi.Text(pointer), json.RawMessage(d.a), json.RawMessage(d.b)})
		}
	}
	return nil
}

func parseBoth(a, b []byte, limits jsontree.Limits) (left, right *jsontree.Value, err error) {
	if left, _, err = jsontree.Parse(a, limits); err == nil {
		right, _, err = jsontree.Parse(b, limits)
	}
	return left, right, err
}

// placeInEvent turns a pointer into the identity document, which holds the event
// beside its kind and its slot, into one into the event.
func placeInEvent(pointer string) (class, inEvent string) {
	if rest, ok := strings.CutPrefix(pointer, "/slot"); ok {
		return "slot", rest
	}
	if pointer == "/kind" {
		return "kind", ""
	}
	return "identity", strings.TrimPrefix(pointer, "/event")
}

// decides reports whether a difference of a class makes two events of one.
func decides(class string) bool { return class == "identity" || class == "slot" || class == "kind" }

var verdicts = map[graph.Outcome]string{
	graph.New:         "They do not merge: they are two events.",
	graph.Retry:       "They merge: B is A, sent again.",
	graph.Equivalent:  "They merge: one event, which B tells another time, or in another way.",
	graph.Redescribed: "They merge: one event. B describes its job or its datasets otherwise (redescribed).",
	graph.Collision:   "They do not merge: one event ID with two contents, a collision. Both are kept.",
}

// text writes the explanation for people.
func (x *explanation) text() []byte {
	var out []byte
	for _, side := range []struct {
		name string
		line *identityLine
	}{{"A", &x.A}, {"B", &x.B}} {
		id := side.line.Identity
		of := id.Job
		if of == nil {
			of = id.Dataset
		}
		out = fmt.Appendf(out, "%s  %s\n   %s event of %s, %s %s\n   event   %s\n   content %s\n",
			side.name, printable(string(side.line.Place)), id.Kind, printable(string(of.Name))+"  ("+printable(string(of.Namespace))+")",
			id.Type, id.EventTime, id.EventID, id.Content)
	}
	out = fmt.Appendf(out, "\n%s\n", verdicts[x.Outcome])
	list := func(title string, want func(class string) bool) {
		first := true
		for _, d := range x.Differences {
			if !want(d.Class) {
				continue
			}
			if first {
				out = fmt.Appendf(out, "\n%s\n", title)
				first = false
			}
			out = fmt.Appendf(out, "  %-9s %s\n    A  %s\n    B  %s\n", d.Class, printable(string(d.Pointer)), shown(d.A), shown(d.B))
		}
	}
	list("What makes two events of them:", decides)
	list("What makes two contents of them:", func(class string) bool { return class == "fixed" })
	list("What differs and makes no difference:", func(class string) bool { return class == "drifting" || class == "transport" })
	list("Where their bodies differ (an order of sets, or what is null or empty, says nothing by itself):", func(class string) bool { return class == "body" })
	return out
}

// maxShown bounds a value on the screen.
const maxShown = 300

func shown(json json.RawMessage) string {
	switch text := string(json); {
	case text == "":
		return "(absent)"
	case len(text) > maxShown:
		return printable(strings.ToValidUTF8(text[:maxShown], "")) + fmt.Sprintf("… (%d bytes)", len(text))
	default:
		return printable(text)
	}
}
