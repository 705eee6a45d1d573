package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/graphd/graphd/internal/graph"
	"github.com/graphd/graphd/internal/lineage"
)

// details is the table of observations' details. Of an event in the log it keeps
// the place, and no copy.
type details struct {
	lineage.Table[string]
	rows    *rows
	archive graph.Archive
	w       *writer // nil for a reader
}

const (
	detailHere  = "\x00" // the text follows
	detailInLog = "\x01" // its place in the log follows
)

// Put implements lineage.Table.
func (d *details) Put(key, detail string) {
	if d.w.sequence == 0 {
		d.Table.Put(key, detailHere+detail)
		return
	}
	d.Table.Put(key, detailInLog+string(binary.AppendUvarint(nil, d.w.sequence)))
}

// Get implements lineage.Table.
func (d *details) Get(key string) (string, bool) {
	text, ok := d.Table.Get(key)
	if !ok || text == "" {
		return "", ok
	}
	if text[:1] == detailHere {
		return text[1:], true
	}
	sequence, _ := binary.Uvarint([]byte(text[1:]))
	e, err := d.archive.Event(sequence)
	if errors.Is(err, graph.ErrNotFound) {
		err = errors.New(err.Error()) // what was asked for is there
	}
	if err != nil {
		d.rows.abort(fmt.Errorf("reading the detail of an observation: %w", err))
	}
	return e.Detail, true
}
