package httpapi

import (
	"bytes"
	"encoding/json"

	"github.com/graphd/graphd/internal/fact"
	"github.com/graphd/graphd/internal/jsontree"
	"github.com/graphd/graphd/internal/openlineage"
)

// Text is a string that came from a producer. In an event a lone surrogate
// escape stands for what no valid UTF-8 can hold; it is written as the escape
// that it was, so that an answer is valid UTF-8 and two names stay two.
type Text string

type text = Text

// MarshalJSON implements json.Marshaler.
func (s Text) MarshalJSON() ([]byte, error) { return jsontree.AppendString(nil, string(s)), nil }

// pair is one member of an object.
type pair struct {
	key   string
	value any
}

// object is a JSON object whose keys came from a producer, in their order.
type object []pair

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	buf := []byte{'{'}
	for i, p := range o {
		if i > 0 {
			buf = append(buf, ',')
		}
		value, err := Encode(p.value)
		if err != nil {
			return nil, err
		}
		buf = append(jsontree.AppendString(buf, p.key), ':')
		buf = append(buf, value...)
	}
	return append(buf, '}'), nil
}

// Encode writes JSON with a line break behind it. It escapes nothing for HTML:
// no answer with JSON is ever taken for that.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// Named is what has a key and a name.
type Named struct {
	ID        fact.ID `json:"id"`
	Namespace text    `json:"namespace"`
	Name      text    `json:"name"`
}

type named = Named

func newNamed(id fact.ID, n openlineage.Name) named {
	return named{id, text(n.Namespace), text(n.Name)}
}

func jobNamed(n openlineage.Name) named { return newNamed(fact.JobKey(n), n) }

// when writes an instant, and none as an absent member.
func when(i openlineage.Instant) string { return i.String() }
