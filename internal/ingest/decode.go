// Package ingest takes deliveries in: it decodes, validates and normalises a
// body, hands the fact to the store, and answers with a receipt. HTTP, files and
// later Kafka feed it.
//
// Start at Pipeline.Accept; Decoder.Decode is its pure part.
package ingest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/normalize"
	"github.com/graphd/graphd/internal/openlineage"
	"github.com/graphd/graphd/schema"
)

// Problem is one thing wrong with a delivery, where it stands and why.
type Problem struct {
	// Pointer is a JSON pointer (RFC 6901) into the body.
	Pointer string `json:"pointer"`
	// Offset is the byte offset of that place in the body.
	Offset int    `json:"offset"`
	Reason string `json:"reason"`
}

// Rejected says that a body is no OpenLineage event, and never will be.
type Rejected struct{ Problems []Problem }

// Error tells the first problem.
func (r *Rejected) Error() string {
	p := r.Problems[0]
	more := ""
	if n := len(r.Problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("%s at %q, byte %d%s", strings.TrimSuffix(p.Reason, "."), p.Pointer, p.Offset, more)
}

// Options configure a Decoder.
type Options struct {
	// Rules are the operator's class rules.
	Rules []normalize.ClassRule
	Names normalize.NameRules
}

// Decoder turns a body into a fact: decode, validate, normalise. It is pure and
// safe for concurrent use.
type Decoder struct {
	schema *schema.Validator
	norm   *normalize.Normalizer
}

// NewDecoder compiles the schemas and the rules. Its error is fatal: without
// schemas everything would be accepted.
func NewDecoder(opt Options) (*Decoder, error) {
	v, err := schema.New()
	if err != nil {
		return nil, fmt.Errorf("compiling the OpenLineage schemas: %w", err)
	}
	n, err := normalize.New(normalize.Options{Rules: opt.Rules, SchemaDigest: v.Digest(), Names: opt.Names})
	if err != nil {
		return nil, fmt.Errorf("compiling the identity rules: %w", err)
	}
	return &Decoder{schema: v, norm: n}, nil
}

// Version returns the identity version of the events that d decodes.
func (d *Decoder) Version() string { return d.norm.Version() }

// Decode returns the fact that a body states. The error is a *Rejected.
func (d *Decoder) Decode(body []byte) (*fact.Event, error) {
	in, warnings, err := d.input(body)
	if err != nil {
		return nil, err
	}
	e, err := d.norm.Event(in)
	if err != nil {
		return nil, rejected(err)
	}
	e.Warnings = append(e.Warnings, warnings...)
	return e, nil
}

// Explain returns the fields of a body's event by class: its identity document
// and what that leaves out. The error is a *Rejected.
func (d *Decoder) Explain(body []byte) (normalize.Explanation, error) {
	in, _, err := d.input(body)
	if err != nil {
		return normalize.Explanation{}, err
	}
	x, err := d.norm.Explain(in)
	if err != nil {
		return x, rejected(err)
	}
	return x, nil
}

func (d *Decoder) input(body []byte) (normalize.Input, []fact.Warning, error) {
	root, stats, err := jsontree.Parse(body, jsontree.Limits{})
	if err != nil {
		return normalize.Input{}, nil, rejected(err)
	}
	report := d.schema.Validate(root)
	if len(report.Violations) > 0 {
		r := &Rejected{}
		for _, v := range report.Violations {
			r.Problems = append(r.Problems, Problem{Pointer: v.Pointer, Offset: v.Offset, Reason: v.Reason})
		}
		return normalize.Input{}, nil, r
	}
	kinds := map[schema.EventKind]openlineage.Kind{
		schema.RunEvent: openlineage.RunEvent, schema.JobEvent: openlineage.JobEvent, schema.DatasetEvent: openlineage.DatasetEvent,
	}
	return normalize.Input{Root: root, Kind: kinds[report.Kind], Invalid: report.IsInvalid, Stats: stats}, warningsOf(&report), nil
}

// warningsOf tells which facets were left out of lineage and which formats are
// off.
func warningsOf(r *schema.Report) (out []fact.Warning) {
	for _, f := range r.Invalid {
		detail := "the facet does not match its schema and is left out of lineage"
		if len(f.Violations) > 0 && !secret(f.Pointer) {
			detail += ": " + f.Violations[0].Reason
		}
		out = append(out, fact.Warning{Code: "invalid-facet", Pointer: f.Pointer, Detail: detail})
	}
	for _, v := range r.Warnings {
		detail := v.Reason
		if secret(v.Pointer) {
			detail = "not in its format"
		}
		out = append(out, fact.Warning{Code: "format", Pointer: v.Pointer, Detail: detail})
	}
	return out
}

// secret reports whether a place may hold credentials, so that nothing of it is
// repeated in a warning: warnings are logged and shown.
func secret(pointer string) bool { return strings.Contains(pointer, "/facets/dataSource") }

// rejected makes a *Rejected of what a level below says.
func rejected(err error) error {
	var syntax *jsontree.SyntaxError
	var no *normalize.Rejection
	switch {
	case errors.As(err, &syntax):
		return &Rejected{[]Problem{{Pointer: syntax.Pointer, Offset: syntax.Offset, Reason: syntax.Reason}}}
	case errors.As(err, &no):
		return &Rejected{[]Problem{{Pointer: no.Pointer, Offset: no.Offset, Reason: no.Reason}}}
	}
	return err
}
