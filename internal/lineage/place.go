package lineage

import (
	"cmp"
	"crypto/sha1"
	"encoding/binary"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

// maxAncestors bounds how far up ancestors are followed and cycles looked for.
const maxAncestors = 16

// runNamespace is the fixed namespace of the UUIDv5 of logical runs.
var runNamespace = [16]byte{0x5d, 0x1c, 0x8e, 0x6a, 0x3f, 0x0b, 0x4e, 0x57, 0x9a, 0x21, 0x6c, 0xd4, 0x70, 0x1e, 0xb3, 0x98}

// link is an attempt on the way up from another: what placing needs to know of
// it. An attempt never heard from is a link that is not known: it has no slot
// but its runId.
type link struct {
	attempt  fact.Attempt
	key      fact.ID
	known    bool
	slot     fact.Slot
	parent   fact.RunRef
	backfill bool
}

// Placement is where an attempt stands among runs: the second level of
// settlement, a function of its own slot and those of its ancestors.
type Placement struct {
	// Run is its logical run. Rule and Slot found it; Under is the parent's logical
	// run that takes part in the slot under RulePlace, zero elsewhere.
	Run   RunID
	Slot  fact.Slot
	Under RunID
	// Parent is the attempt that its parent reference resolves to, zero if it
	// names none, ParentRun that attempt's logical run.
	Parent    fact.ID
	ParentRun RunID
	// Root is the logical run of its topmost named ancestor, or its own.
	Root RunID
	// Top is the logical run of its topmost known ancestor-or-self.
	Top RunID
	// Backfill says that an event of it or of a known ancestor is of a backfill.
	Backfill bool
	// Cycle says that its ancestors come back to one of them.
	Cycle bool
	// seen digests the whole way up: while it is the same, so is the placement of
	// whoever stands below.
	seen mark
}

// way is what place needs to find ancestors.
type way interface {
	// resolve returns the attempt that a reference to a run means.
	resolve(fact.RunRef) fact.Attempt
	// linkOf returns what is known of an attempt.
	linkOf(fact.Attempt) link
}

// place finds the placement of an attempt. version is the identity version that
// names of logical runs carry.
func place(w way, version string, a fact.Attempt) Placement {
	links := make([]link, 1, 4)
	links[0] = w.linkOf(a)
	cycle := -1 // where the way comes back to
	for len(links) <= maxAncestors {
		ref := links[len(links)-1].parent
		if ref.IsZero() {
			break
		}
		up := w.linkOf(w.resolve(ref))
		for i := range links {
			if links[i].key == up.key {
				cycle = i
				break
			}
		}
		if cycle >= 0 {
			break
		}
		links = append(links, up)
	}

	// From the top down, since a place under a parent needs the parent's run.
	runs := make([]RunID, len(links))
	for i := len(links) - 1; i >= 0; i-- {
		var under RunID
		onCycle := cycle >= 0 && i >= cycle
		if links[i].slot.Rule == fact.RulePlace && !onCycle && i+1 < len(links) {
			under = runs[i+1]
		}
		runs[i] = runID(version, &links[i], under)
		if i == 0 {
			return summarise(links, runs, under, cycle)
		}
	}
	panic("unreachable: the way up has at least its own link")
}

func summarise(links []link, runs []RunID, under RunID, cycle int) Placement {
	p := Placement{Run: runs[0], Slot: links[0].slot, Under: under, Cycle: cycle >= 0}
	last := len(links) - 1
	root := last
	if cycle >= 0 {
		for i := cycle; i <= last; i++ {
			if compareRuns(&links[i], runs[i], &links[root], runs[root]) < 0 {
				root = i
			}
		}
	}
	p.Root = runs[root]
	switch {
	case last > 0:
		p.Parent, p.ParentRun = links[1].key, runs[1]
	case cycle == 0: // its own parent
		p.Parent, p.ParentRun = links[0].key, runs[0]
	}

	top := 0
	for i := range links {
		if links[i].known && (cycle < 0 || i < cycle) {
			top = i
		}
		p.Backfill = p.Backfill || links[i].known && links[i].backfill
	}
	if cycle >= 0 {
		best := -1
		for i := cycle; i <= last; i++ {
			if links[i].known && (best < 0 || compareRuns(&links[i], runs[i], &links[best], runs[best]) < 0) {
				best = i
			}
		}
		if best >= 0 {
			top = best
		}
	}
	p.Top = runs[top]
	if cycle < 0 && len(links) > maxAncestors && !links[last].parent.IsZero() {
		// The climb was cut, so that the runs of the highest ancestors are named
		// without their own: none of them can be asked whether it ended.
		p.Top = runs[0]
	}
	p.seen = digest(links)
	return p
}

// compareRuns orders links by (job, logical run).
func compareRuns(a *link, ra RunID, b *link, rb RunID) int {
	return cmp.Or(a.attempt.Job.Compare(b.attempt.Job), cmp.Compare(string(ra[:]), string(rb[:])))
}

// runID names the logical run of a link. Without under, a place under a parent
// is named by the parent's runId, as the wire gives it.
func runID(version string, l *link, under RunID) RunID {
	name := make([]byte, 0, 256)
	name = append(name, '[')
	name = jsontree.AppendString(name, version)
	for _, s := range []string{l.attempt.Job.Namespace, l.attempt.Job.Name, l.slot.Rule.String()} {
		name = append(name, ',')
		name = jsontree.AppendString(name, s)
	}
	name = append(append(name, ','), l.slot.Value...)
	if l.slot.Rule == fact.RulePlace {
		name = append(name, ',')
		if under.IsZero() {
			for i, s := range []string{l.parent.Job.Namespace, l.parent.Job.Name, l.parent.RunID} {
				name = append(name, "[,"[min(i, 1)])
				name = jsontree.AppendString(name, s)
			}
			name = append(name, ']')
		} else {
			name = jsontree.AppendString(name, under.String())
		}
	}
	name = append(name, ']')
	return uuid5(name)
}

func uuid5(name []byte) (r RunID) {
	h := sha1.New()
	h.Write(runNamespace[:])
	h.Write(name)
	var sum [sha1.Size]byte
	copy(r[:], h.Sum(sum[:0]))
	r[6] = r[6]&0x0f | 0x50
	r[8] = r[8]&0x3f | 0x80
	return r
}

// digest identifies what place saw of a way up.
func digest(links []link) mark {
	buf := make([]byte, 0, 128*len(links))
	text := func(s string) {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	for i := range links {
		l := &links[i]
		buf = append(buf, l.key[:]...)
		buf = append(buf, byte(l.slot.Rule), flag(l.known), flag(l.backfill))
		text(l.slot.Value)
		text(l.parent.Job.Namespace)
		text(l.parent.Job.Name)
		text(l.parent.RunID)
	}
	return markOf(fact.HashBytes("way", buf))
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// unheard is the slot of an attempt without events: its runId.
func unheard(a fact.Attempt) fact.Slot {
	value := []byte{'['}
	value = jsontree.AppendString(value, a.RunID)
	return fact.Slot{Rule: fact.RuleRun, Value: string(append(value, ",null]"...))}
}

// generationKey names a generation: all logical runs of a job under one root.
func generationKey(job openlineage.Name, root RunID) fact.ID {
	return fact.Hash("generation", job.Namespace, job.Name, root.String())
}
