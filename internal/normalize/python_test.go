package normalize_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/ingest"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/sharedtest"
	"github.com/graphd/graphd/schema"
)

var script = filepath.Join("..", "..", "scripts", "identity.py")

// python runs scripts/identity.py, which computes identities without a line of
// this program, in an environment unlike this one.
func python(t *testing.T, stdin []byte, args ...string) (stdout []byte, err error) {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is absent: scripts/identity.py is not compared with this program")
	}
	cmd := exec.Command(interpreter, append([]string{"-B", "-S", script, "--rules", rulesFile}, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PYTHONHASHSEED=7", "TZ=Asia/Kathmandu")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err = cmd.Output()
	if stderr.Len() > 0 {
		t.Fatalf("%s: %v\n%s", cmd, err, &stderr)
	}
	return stdout, err
}

func TestPythonAgreesOnTheVectors(t *testing.T) {
	out, err := python(t, nil, "--check", vectorsFile)
	all, _ := readVectors(t)
	if want := fmt.Sprintf("%d vectors, 0 differ, ", len(all.Vectors)); err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%v\n%s", err, out)
	}
	broken := filepath.Join(t.TempDir(), "vectors.json")
	all.Vectors[0].Document += " "
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := python(t, nil, "--check", broken); err == nil {
		t.Errorf("a wrong vector passes\n%s", out)
	}
}

func TestPythonAgreesOnRandomEvents(t *testing.T) {
	var bodies [][]byte
	for seed := range uint64(randomEvents) {
		event := newGenerator(seed).runEvent()
		bodies = append(bodies, []byte(spell(event, seed)), []byte(spell(event, seed+1000)))
	}
	bodies = append(bodies, []byte(awkward(t)))
	v, err := schema.New()
	if err != nil {
		t.Fatal(err)
	}
	n, err := normalize.New(normalize.Options{SchemaDigest: v.Digest()})
	if err != nil {
		t.Fatal(err)
	}
	compareWithPython(t, bodies, func(body []byte) (*fact.Event, string, bool) {
		return factOf(t, n, string(body)), document(t, n, string(body)), true
	})
}

// uriPieces are what connection URIs are made of, and what may be taken for it.
var uriPieces = []string{
	"jdbc:", "JDBC:mysql:", "oracle:thin:", "abfss", "://", "//", "/", "@", "@//", "?", ";", "&", "#", "=", ":", ",", "(", ")", " ", "\t",
	"[", "]", "{", "}", "'", "\"", "%77", "%", "user=a", "&password=b", ";pwd=c", "x=1", "host", ":5432", "u:p", "Pwd=", "token", "key", "api_key=", "é", "\u0338", "\n",
}

// awkward returns an event full of numbers, times and connection URIs, many of
// them at the limits of what is one.
func awkward(t *testing.T) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 3))
	var numbers, times, inputs []string
	for i := range 3000 {
		literal := []byte{"-1"[rng.IntN(2)]}
		for range 1 + rng.IntN([]int{4, 20, 45}[i%3]) {
			literal = append(literal, "1234567890"[rng.IntN(10)])
		}
		if literal[0] == '-' && literal[1] == '0' {
			literal[1] = '9'
		}
		text := string(literal)
		if rng.IntN(2) == 0 {
			text += fmt.Sprintf(".%0*d", 1+rng.IntN(20), rng.IntN(1<<30))
		}
		if rng.IntN(2) == 0 {
			text += fmt.Sprintf("e%d", []int{rng.IntN(801) - 400, rng.IntN(50) - 25}[rng.IntN(2)])
		}
		numbers = append(numbers, text)
	}
	for range 3000 {
		time := []byte([]string{
			"2026-02-28T23:59:59.123456789+23:59", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-00:01", "2024-02-29 12:30+0530[Asia/Kolkata]", "2026-01-01t00:00:00,5z", "2026-01-01T00:00:00-00",
		}[rng.IntN(6)])
		for range rng.IntN(3) {
			time[rng.IntN(len(time))] = "0123459-+:. TZ[]"[rng.IntN(16)]
		}
		times = append(times, fmt.Sprintf(`{"nominalStartTime": %q}`, time))
	}
	for i := range 4000 {
		var uri strings.Builder
		for range rng.IntN(14) {
			uri.WriteString(uriPieces[rng.IntN(len(uriPieces))])
		}
		inputs = append(inputs, fmt.Sprintf(`{"namespace": "db", "name": "t%d", "facets": {"dataSource": {"uri": %q}}}`, i, &uri))
	}
	list := func(elems []string) string { return "[" + strings.Join(elems, ",") + "]" }
	return with(t, runEvent, "run.facets.acme", `{"numbers": `+list(numbers)+`, "times": `+list(times)+`}`, "inputs", list(inputs))
}

func TestPythonAgreesOnRecordedEvents(t *testing.T) {
	var bodies [][]byte
	for _, s := range sharedtest.RecordedStreams(t) {
		for _, d := range s.Deliveries {
			bodies = append(bodies, d.Body)
		}
	}
	d := decoder(t, nil)
	compareWithPython(t, bodies, func(body []byte) (*fact.Event, string, bool) {
		e, err := d.Decode(body)
		var no *ingest.Rejected
		if errors.As(err, &no) {
			return nil, no.Problems[0].Pointer, false
		}
		x, err := d.Explain(body)
		if err != nil {
			t.Fatal(err)
		}
		// The script has no schemas.
		valid := !slices.ContainsFunc(e.Warnings, func(w fact.Warning) bool { return w.Code == "invalid-facet" })
		return e, string(x.Document), valid
	})
}

// compareWithPython lets the script compute identities of bodies, and compares
// them with what read returns: a fact with its identity document and whether all
// of its facets are valid, or the pointer of a rejection.
func compareWithPython(t *testing.T, bodies [][]byte, read func(body []byte) (e *fact.Event, text string, valid bool)) {
	t.Helper()
	out, err := python(t, slices.Concat([]byte("["), bytes.Join(bodies, []byte(",")), []byte("]")), "-")
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(bodies) {
		t.Fatalf("%d lines for %d events, %v", len(lines), len(bodies), err)
	}
	compared := 0
	for i, line := range lines {
		var got struct {
			Version, EventID, Content, SlotRule, Rejected string
			Document                                      json.RawMessage
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		e, text, valid := read(bodies[i])
		switch {
		case e == nil:
			if got.Rejected != text {
				t.Errorf("rejected at %q, want %q\n%s", got.Rejected, text, bodies[i])
			}
		case !valid:
		default:
			compared++
			if string(got.Document) != text || got.EventID != e.ID.String() || got.Content != e.Content.String() || got.SlotRule != e.Slot.Rule.String() {
				t.Errorf("event %s, content %s, slot rule %q\n%s\nwant %s, %s, %q\n%s",
					got.EventID, got.Content, got.SlotRule, got.Document, e.ID, e.Content, e.Slot.Rule, text)
			}
			if got.Version != e.Version {
				t.Fatalf("version %s, want %s", got.Version, e.Version)
			}
		}
	}
	if compared < len(bodies)*9/10 {
		t.Errorf("only %d of %d events could be compared", compared, len(bodies))
	}
}
