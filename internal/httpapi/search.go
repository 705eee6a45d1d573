package httpapi

import (
	"fmt"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/graph"
)

// searchParameters are those of getSearch. There is no cursor: who does not find
// it among the best hits asks for more of its name.
var searchParameters = []string{"q", "type", "namespace", "limit"}

// Bounds of a search: of its text, in bytes and in words, and of its hits. More
// words are not looked for, so that they must not be taken.
const (
	maxSearchText = 1024
	maxWords      = 16
	defaultHits   = 20
	maxHits       = 100
)

type searchAnswer struct {
	Items []hit      `json:"items"`
	Meta  searchMeta `json:"meta"`
}

// hit is an entity found by its name.
type hit struct {
	Type fact.EntityKind `json:"type"`
	named
	// Match says what of the name fits the text.
	Match string `json:"match"`
}

type searchMeta struct {
	// More says that there may be more hits than these.
	More bool `json:"more"`
	// Indexing says that hits may be missing, since not all names are indexed yet.
	Indexing bool `json:"indexing"`
}

// getSearch finds datasets and jobs by what their names contain.
func (s *Server) getSearch(c echo.Context, q *query) error {
	sq := graph.SearchQuery{
		Text: q.text("q"), Kind: choice(q, "type", "", fact.DatasetEntity, fact.JobEntity), Namespace: q.text("namespace"),
		Limit: q.number("limit", defaultHits, 1, maxHits),
	}
	switch words := len(strings.Fields(sq.Text)); {
	case !q.has("q"):
		q.wrong("q", "it is missing: want a part of a name")
	case len(sq.Text) > maxSearchText:
		q.wrong("q", fmt.Sprintf("it is longer than %d bytes", maxSearchText))
	case words > maxWords:
		q.wrong("q", fmt.Sprintf("it has more than %d words", maxWords))
	case words == 0 && sq.Text != "":
		q.wrong("q", "it has no word")
	}
	if err := q.err(); err != nil {
		return err
	}
	found, err := s.opt.Node.Store.Search(c.Request().Context(), sq)
	if err != nil {
		return err
	}
	out := searchAnswer{Items: make([]hit, len(found.Hits)), Meta: searchMeta{More: found.More, Indexing: found.Indexing}}
	for i, h := range found.Hits {
		out.Items[i] = hit{h.Kind, newNamed(h.ID, h.Name), h.Match}
	}
	return writeRead(c, out)
}
