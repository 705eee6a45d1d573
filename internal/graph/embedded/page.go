package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/klauspost/compress/s2"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
)

// cluster is a set of tables whose keys begin with the same owner.
type cluster struct {
	id    byte
	owner int // bytes
}

// Owners are IDs of 24 bytes, but runs have 16.
var (
	noCluster   = cluster{}
	eventPage   = cluster{'e', 24}
	subjectPage = cluster{'s', 24}
	runPage     = cluster{'r', 16}
	genPage     = cluster{'g', 24}
	datasetPage = cluster{'d', 24}
	jobPage     = cluster{'j', 24}
	facetsPage  = cluster{'f', 24}
	choicePage  = cluster{'c', 24}
)

// clusters says where the rows of a table lie.
var clusters = [lineage.LastTable + 1]cluster{
	lineage.EventsTable:      eventPage,
	lineage.EventBodiesTable: eventPage,

	lineage.ObservationsTable: subjectPage,
	lineage.DetailsTable:      subjectPage,
	lineage.AttemptsTable:     subjectPage,
	lineage.DeclarationsTable: subjectPage,

	// Those under a run lie with its attempt without a map index.
	lineage.GroupsTable:          subjectPage,
	lineage.ChildrenTable:        subjectPage,
	lineage.RunningChildrenTable: subjectPage,

	lineage.RunsTable:        runPage,
	lineage.TalliesTable:     runPage,
	lineage.MembersTable:     runPage,
	lineage.MemberFirstTable: runPage,
	lineage.MemberLastTable:  runPage,
	lineage.TopsTable:        runPage,

	lineage.GenerationsTable: genPage,
	lineage.GenFirstTable:    genPage,
	lineage.GenLastTable:     genPage,
	lineage.OpenTopsTable:    genPage,
	lineage.WordsTable:       genPage,
	lineage.SupportsTable:    genPage,
	lineage.GenOutputsTable:  genPage,

	lineage.DatasetsTable:   datasetPage,
	lineage.DegreesTable:    datasetPage,
	lineage.UpstreamTable:   datasetPage,
	lineage.DownstreamTable: datasetPage,
	lineage.LinksTable:      datasetPage,

	lineage.JobsTable:           jobPage,
	lineage.JobDerivationsTable: jobPage,
	lineage.CurrentTable:        jobPage,

	// What is chosen changes with every run, what follows from it seldom.
	lineage.SelectedTable: choicePage,
	lineage.RefsTable:     choicePage,

	lineage.FacetsTable:    facetsPage,
	lineage.FacetsNowTable: facetsPage,
}

// A page holds at most pageBytes of rows. One that would hold more keeps its
// shortest rows, keptBytes of them; the others, and those that come later, lie as
// rows of their own. While it is changed it may hold fullBytes: an owner with a
// hundred thousand rows must not have each put in its place among all others.
const (
	pageBytes = 4096
	fullBytes = 4 * pageBytes
	keptBytes = 1024
	// compressed is the size from which a page is compressed.
	compressed = 128
)

// row is a row within a page: its table, and its key behind the owner.
type row struct {
	table  lineage.TableID
	suffix string
	value  []byte
}

func (r *row) compare(table lineage.TableID, suffix string) int {
	switch {
	case r.table != table:
		return int(r.table) - int(table)
	case r.suffix < suffix:
		return -1
	case r.suffix > suffix:
		return 1
	}
	return 0
}

func (r *row) bytes() int { return 4 + len(r.suffix) + len(r.value) }

// page is the rows of one owner, by table and suffix.
type page struct {
	rows []row
	// more says that there are, or were, rows of the owner outside of the page.
	more  bool
	size  int
	dirty bool
	had   bool // it is on disk
}

const (
	pageMore = 1 << iota
	pageCompressed
)

var errPage = fmt.Errorf("%w: a page is not what was written", graph.ErrCorrupt)

// parsePage reads a page. It holds nothing of text.
func parsePage(text []byte) (*page, error) {
	p := &page{had: true}
	if len(text) == 0 || text[0] > pageMore|pageCompressed {
		return nil, errPage
	}
	p.more = text[0]&pageMore != 0
	rest := text[1:]
	if text[0]&pageCompressed != 0 {
		var err error
		if rest, err = s2.Decode(nil, rest); err != nil {
			return nil, errPage
		}
	} else {
		rest = bytes.Clone(rest)
	}
	p.rows = make([]row, 0, 16)
	take := func() []byte {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			return nil
		}
		b := rest[size : size+int(n) : size+int(n)]
		rest = rest[size+int(n):]
		return b
	}
	for len(rest) > 0 {
		r := row{table: lineage.TableID(rest[0])}
		rest = rest[1:]
		suffix := take()
		if suffix == nil {
			return nil, errPage
		}
		r.suffix = string(suffix)
		if r.value = take(); r.value == nil {
			return nil, errPage
		}
		p.rows = append(p.rows, r)
		p.size += r.bytes()
	}
	return p, nil
}

// append writes the page behind dst.
func (p *page) append(dst []byte, scratch *[]byte) []byte {
	text := (*scratch)[:0]
	for i := range p.rows {
		r := &p.rows[i]
		text = append(text, byte(r.table))
		text = binary.AppendUvarint(text, uint64(len(r.suffix)))
		text = append(text, r.suffix...)
		text = binary.AppendUvarint(text, uint64(len(r.value)))
		text = append(text, r.value...)
	}
	*scratch = text
	var head byte
	if p.more {
		head |= pageMore
	}
	if len(text) >= compressed {
		if packed := s2.Encode(nil, text); len(packed) < len(text) {
			return append(append(dst, head|pageCompressed), packed...)
		}
	}
	return append(append(dst, head), text...)
}

// find returns where a row is, or would be.
func (p *page) find(table lineage.TableID, suffix string) (i int, ok bool) {
	return sort.Find(len(p.rows), func(i int) int { return -p.rows[i].compare(table, suffix) })
}

// between returns the rows of a table with from <= suffix < to, "" for no end.
func (p *page) between(table lineage.TableID, from, to string) []row {
	low, _ := p.find(table, from)
	if to == "" {
		table++ // which begins behind
	}
	high, _ := p.find(table, to)
	return p.rows[low:max(low, high)]
}

// set changes a row, nil deletes it. It reports false where the row does not
// belong into the page, and how many rows more its table has.
func (p *page) set(table lineage.TableID, suffix string, value []byte) (here bool, more int) {
	i, ok := p.find(table, suffix)
	switch {
	case ok && value == nil:
		p.size -= p.rows[i].bytes()
		p.rows = slices.Delete(p.rows, i, i+1)
		more = -1
	case ok:
		if bytes.Equal(p.rows[i].value, value) {
			return true, 0
		}
		p.size += len(value) - len(p.rows[i].value)
		p.rows[i].value = bytes.Clone(value)
	case p.more:
		return false, 0
	case value == nil:
		return true, 0
	default:
		if p.rows == nil {
			p.rows = make([]row, 0, 8)
		}
		r := row{table, suffix, bytes.Clone(value)}
		p.rows = slices.Insert(p.rows, i, r)
		p.size += r.bytes()
		more = 1
	}
	p.dirty = true
	return true, more
}

// overflow takes the longest rows out of a page that has become too long.
func (p *page) overflow() (out []row) {
	if p.size <= pageBytes {
		return nil
	}
	p.more = true
	sizes := make([]int, len(p.rows))
	for i := range p.rows {
		sizes[i] = p.rows[i].bytes()
	}
	slices.Sort(sizes)
	longest, total := 0, 0 // what is kept is shorter than longest
	for _, size := range sizes {
		if total += size; total > keptBytes {
			longest = size
			break
		}
	}
	kept := p.rows[:0:0]
	p.size = 0
	for _, r := range p.rows {
		if r.bytes() < longest {
			kept = append(kept, r)
			p.size += r.bytes()
		} else {
			out = append(out, r)
		}
	}
	p.rows = kept
	return out
}
