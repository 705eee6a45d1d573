package lineage_test

import (
	"testing"

	"github.com/graphd/graphd/internal/lineage"
)

func TestMergeTellsWhatIsNew(t *testing.T) {
	cases := readCases(t, "testdata/collision.txt")
	events := decode(t, cases[0].bodies...)
	st := lineage.NewMemory(events[0].Version)
	for i, want := range []lineage.Merged{
		{NewEvent: true},   // an event
		{},                 // the same again
		{},                 // another try: equivalent
		{},                 // another owner: redescribed
		{NewContent: true}, // another data source: a collision
		{},                 // the same again
		{NewEvent: true},   // another parameter
	} {
		if got := st.Merge(events[i]); got != want {
			t.Errorf("event %d: %+v, want %+v", i, got, want)
		}
	}
}
