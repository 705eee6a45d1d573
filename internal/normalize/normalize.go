// Package normalize turns one validated event into a fact: what is the same
// event, of which run, and what does it say. It is pure: the result is a
// function of the event's body and of the rules alone, so that a producer can
// compute an event's ID before it emits it.
//
// Start at Normalizer.Event. The class table (classes.go) says which field is
// identity; project.go writes the canonical form; slots.go finds the slot;
// names.go finds the entity behind a dataset's name; statement.go reads what is
// said about lineage.
package normalize

//go:generate go run ./gendoc

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

// ContractVersion is the version of the identity contract, docs/identity.md.
const ContractVersion = "1"

// Options configure a Normalizer.
type Options struct {
	// Rules are the operator's own class rules, put behind the class table: of two
	// rules for the very same place the later one wins, else the more exact one
	// (node says which that is).
	Rules []ClassRule
	// SchemaDigest identifies the schemas that decide which facets are valid.
	SchemaDigest string
	Names        NameRules
}

// Normalizer makes facts of events. It is safe for concurrent use.
type Normalizer struct {
	version string
	names   NameRules
	always  []ClassRule // the table and the rules of every producer
	byGlob  []ClassRule // rules of some producers
	root    *node       // compiled from always
	special sync.Map    // which of byGlob match (uint64) -> *node
}

// maxProducerRules bounds how many rules may name a producer.
const maxProducerRules = 64

// New returns a Normalizer. The error says which rule cannot be read.
func New(opt Options) (*Normalizer, error) {
	n := &Normalizer{names: opt.Names, always: classTable}
	for _, r := range opt.Rules {
		switch r.Class {
		case Identity, Drifting, Fixed, Transport:
		default:
			return nil, fmt.Errorf("class rule %s %s %s: no such class: want identity, drifting, fixed or transport", r.Container, r.Facet, r.Path)
		}
		if r.Producer == "" {
			n.always = append(n.always[:len(n.always):len(n.always)], r)
		} else {
			n.byGlob = append(n.byGlob, r)
		}
	}
	if len(n.byGlob) > maxProducerRules {
		return nil, fmt.Errorf("%d class rules name a producer, at most %d may", len(n.byGlob), maxProducerRules)
	}
	var err error
	if n.root, err = compile(n.always); err != nil {
		return nil, err
	}
	if _, err = compile(concat(n.always, n.byGlob)); err != nil {
		return nil, err
	}
	n.version = VersionOf(opt.Rules, opt.SchemaDigest)
	return n, nil
}

// Version returns the identity version of the events that n makes.
func (n *Normalizer) Version() string { return n.version }

// NameRules returns the name rules in force.
func (n *Normalizer) NameRules() NameRules { return n.names }

// Input is a validated event.
type Input struct {
	Root *jsontree.Value
	Kind openlineage.Kind
	// Invalid reports whether a facet's own schema rejects it.
	Invalid func(facet *jsontree.Value) bool
	// Stats are what the decoder tolerated.
	Stats jsontree.Stats
}

// Rejection says why an event is no OpenLineage event although its schema
// accepts it.
type Rejection struct {
	Pointer string
	Offset  int
	Reason  string
}

// Error tells the reason, with the place.
func (r *Rejection) Error() string {
	return fmt.Sprintf("%s at %q (byte %d)", r.Reason, r.Pointer, r.Offset)
}

// Event returns the fact that an event states. The error is a *Rejection.
func (n *Normalizer) Event(in Input) (*fact.Event, error) {
	r, err := n.read(in)
	if err != nil {
		return nil, err
	}
	ev := &fact.Event{
		Kind: in.Kind, Version: n.version, Type: openlineage.EventType(in.Root.Get("eventType").StrOr("")),
		Time: r.time, Producer: r.producer, Job: r.job,
	}
	identity := r.identity()
	ev.Attempt, ev.Parent, ev.Root, ev.Slot, ev.Backfill = identity.attempt, identity.parent, identity.root, identity.slot, identity.backfill
	ev.ID = fact.HashBytes("event "+n.version, identity.document)

	ev.Statement = r.statement()
	buf := r.described(make([]byte, 0, 4096), Fixed)
	if len(r.leftOut) > 0 {
		buf = append(append(buf, '\n'), r.leftOutList()...)
	}
	ev.Content = fact.HashBytes("content "+n.version, buf)
	buf = r.described(buf[:0], Drifting)
	ev.Drift = fact.HashBytes("drift "+n.version, buf)
	buf = jsontree.AppendCanonical(buf[:0], in.Root)
	ev.Body = fact.HashBytes("body", buf)
	buf, _ = project(buf[:0], in.Root, r.place, Identity, (Transport|Drifting)&^r.identityMask())
	ev.Detail = string(buf)

	ev.Facets = r.entityFacets()
	if in.Kind == openlineage.DatasetEvent {
		var real bool
		ev.Dataset, _, real = n.names.Entity(r.dataset)
		ev.Pseudo = !real
	}
	ev.Warnings = r.warnings
	return ev, nil
}

// Explanation is the answer to why two events are the same or not.
type Explanation struct {
	// Document is the canonical identity document: what the event ID hashes.
	Document []byte
	// Fixed, Drifting and Transport are the canonical parts that it leaves out.
	Fixed, Drifting, Transport []byte
}

// Explain returns an event's fields by class.
func (n *Normalizer) Explain(in Input) (Explanation, error) {
	r, err := n.read(in)
	if err != nil {
		return Explanation{}, err
	}
	part := func(mask Class) []byte {
		b, kept := project(nil, in.Root, r.place, Identity, mask&^r.identityMask())
		if !kept {
			return []byte("{}")
		}
		return b
	}
	return Explanation{
		Document: bytes.Clone(r.identity().document), Fixed: part(Fixed), Drifting: part(Drifting), Transport: part(Transport),
	}, nil
}

// eventReader reads one event.
type eventReader struct {
	names     NameRules
	root      *jsontree.Value
	kind      openlineage.Kind
	invalid   func(*jsontree.Value) bool
	place     *node
	producer  string
	time      openlineage.Instant
	job       openlineage.Name
	dataset   openlineage.Name
	runFacets *jsontree.Value
	jobFacets *jsontree.Value
	warnings  []fact.Warning
	// leftOut names the facets that their schema rejects and that would speak of
	// lineage, each as a canonical JSON array.
	leftOut []string
}

func (n *Normalizer) read(in Input) (*eventReader, error) {
	r := &eventReader{
		names: n.names, root: in.Root, kind: in.Kind, invalid: in.Invalid,
		producer:  in.Root.Get("producer").StrOr(""),
		job:       nameOf(in.Root.Get("job")),
		runFacets: in.Root.At("run", "facets"), jobFacets: in.Root.At("job", "facets"),
	}
	if err := r.requireNames(); err != nil {
		return nil, err
	}
	at := in.Root.Get("eventTime")
	t, err := openlineage.ParseTime(at.StrOr(""))
	if err != nil {
		return nil, &Rejection{Pointer: "/eventTime", Offset: offset(at), Reason: err.Error()}
	}
	r.time = t.Instant
	if t.Zoneless {
		r.warn(WarnZonelessTime, "/eventTime", "the time names no zone and was read as UTC")
	}
	s := in.Stats
	r.warnCount(s.DuplicateKeys, WarnDuplicateKeys, "keys that stand twice in one object: the last one counts")
	r.warnCount(s.NonFinite, WarnNonFinite, "bare NaN or Infinity, read as null")
	r.warnCount(s.LoneSurrogates, WarnLoneSurrogate, "surrogate escapes without their other half, kept as they are")
	r.place = n.placeFor(r.producer)
	return r, nil
}

func offset(v *jsontree.Value) int {
	if v == nil {
		return 0
	}
	return int(v.Off)
}

// requireNames rejects what cannot be an entity or a run.
func (r *eventReader) requireNames() error {
	empty := func(pointer string, v *jsontree.Value) error {
		if text, ok := v.Str(); ok && text == "" {
			return &Rejection{Pointer: pointer, Offset: offset(v), Reason: "an empty string names nothing"}
		}
		return nil
	}
	both := func(pointer string, v *jsontree.Value) error {
		if err := empty(pointer+"/namespace", v.Get("namespace")); err != nil {
			return err
		}
		return empty(pointer+"/name", v.Get("name"))
	}
	if r.kind == openlineage.DatasetEvent {
		r.dataset = nameOf(r.root.Get("dataset"))
		return both("/dataset", r.root.Get("dataset"))
	}
	if err := both("/job", r.root.Get("job")); err != nil {
		return err
	}
	if err := empty("/run/runId", r.root.At("run", "runId")); err != nil {
		return err
	}
	for _, list := range []string{"inputs", "outputs"} {
		items := r.root.Get(list)
		for i := range items.Len() {
			if err := both(fmt.Sprintf("/%s/%d", list, i), &items.Items[i].Value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *eventReader) warn(code, pointer, detail string) {
	r.warnings = append(r.warnings, fact.Warning{Code: code, Pointer: pointer, Detail: detail})
}

func (r *eventReader) warnCount(n int, code, what string) {
	if n > 0 {
		r.warn(code, "", fmt.Sprintf("%d %s", n, what))
	}
}

// facet returns a facet that is there and that its schema accepts, else nil.
func (r *eventReader) facet(facets *jsontree.Value, key string) *jsontree.Value {
	f := facets.Get(key)
	if f == nil || f.Kind != jsontree.Object || r.invalid(f) {
		return nil
	}
	return f
}

// placeFor returns the compiled rules that hold for a producer.
func (n *Normalizer) placeFor(producer string) *node {
	var match uint64
	for i := range n.byGlob {
		if matchGlob(n.byGlob[i].Producer, producer) {
			match |= 1 << i
		}
	}
	if match == 0 {
		return n.root
	}
	if place, ok := n.special.Load(match); ok {
		return place.(*node)
	}
	classes := n.always[:len(n.always):len(n.always)]
	for i := range n.byGlob {
		if match&(1<<i) != 0 {
			classes = append(classes, n.byGlob[i])
		}
	}
	place, err := compile(classes)
	if err != nil { // New has compiled every one of them
		panic(fmt.Sprintf("class rules that compiled no longer do: %v", err))
	}
	n.special.Store(match, place)
	return place
}

// identityMask returns the classes that are identity for this kind of event: in
// job and dataset events the description is the statement.
func (r *eventReader) identityMask() Class {
	if r.kind == openlineage.RunEvent {
		return Identity
	}
	return Identity | Drifting | Fixed
}

// described appends what a digest of a descriptive class covers: the fields of
// that class together with the identity fields around them, since a description
// says nothing without what it describes; nothing if there are none. (Of the
// class alone, two inputs that swap their data sources would look the same.)
func (r *eventReader) described(dst []byte, class Class) []byte {
	class &^= r.identityMask()
	if _, any := project(dst, r.root, r.place, Identity, class); !any {
		return dst
	}
	dst, _ = project(dst, r.root, r.place, Identity, Identity|class)
	return dst
}

type identityParts struct {
	document     []byte
	attempt      fact.Attempt
	parent, root fact.RunRef
	slot         fact.Slot
	backfill     bool
}

// identity writes the identity document: the identity fields of the event, its
// kind, and for a run event the slot in place of its runId.
func (r *eventReader) identity() identityParts {
	var p identityParts
	doc := make([]byte, 0, 4096)
	doc = append(doc, `{"event":`...)
	doc, kept := project(doc, r.root, r.place, Identity, r.identityMask())
	if !kept {
		doc = append(doc, '{', '}')
	}
	doc = append(doc, `,"kind":"`...)
	doc = append(doc, r.kind...)
	doc = append(doc, '"')
	if r.kind == openlineage.RunEvent {
		p.attempt = fact.Attempt{Job: r.job, RunID: lowerUUID(r.root.At("run", "runId").StrOr("")), Map: r.mapIndex()}
		parent := r.facet(r.runFacets, "parent")
		p.parent, p.root = runRef(parent), runRef(parent.Get("root"))
		var slot jsontree.Value
		p.slot, slot, p.backfill = r.slotOf(p.attempt, p.parent)
		doc = append(doc, `,"slot":`...)
		doc = jsontree.AppendCanonical(doc, &slot)
	}
	p.document = append(doc, '}')
	return p
}

// runRef reads a reference to a run; one that names no run or no job is none.
func runRef(v *jsontree.Value) fact.RunRef {
	ref := fact.RunRef{Job: nameOf(v.Get("job")), RunID: lowerUUID(v.At("run", "runId").StrOr(""))}
	if ref.RunID == "" || ref.Job.Name == "" {
		return fact.RunRef{}
	}
	return ref
}

// lowerUUID lower-cases a runId that is a UUID; any other is kept as given.
func lowerUUID(s string) string {
	if len(s) != 36 {
		return s
	}
	for i := range len(s) {
		c := s[i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash != (c == '-') || !dash && !hex {
			return s
		}
	}
	return strings.ToLower(s)
}
