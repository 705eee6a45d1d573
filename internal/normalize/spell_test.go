package normalize_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"
)

// speller writes a random event as JSON: each time in another spelling of the
// same, with all that identity does not see.
type speller struct {
	*rand.Rand
	strings.Builder
}

// spell writes an event; another seed is another spelling.
func spell(event any, seed uint64) string {
	s := &speller{Rand: rand.New(rand.NewPCG(seed, 2))}
	s.write(event)
	return s.String()
}

func (s *speller) chance(percent int) bool { return s.IntN(100) < percent }

func (s *speller) space() {
	for s.chance(15) {
		s.WriteByte(" \t\r\n"[s.IntN(4)])
	}
}

func (s *speller) write(v any) {
	s.space()
	switch v := v.(type) {
	case nil:
		s.WriteString([]string{"null", "NaN", "-Infinity"}[s.IntN(3)])
	case bool:
		fmt.Fprint(s, v)
	case *leaf:
		s.write(v.value)
	case object:
		s.object(v)
	case list:
		s.array(v, false, true)
	case set:
		s.array(v, true, true)
	case datasets:
		s.array(v, true, false)
	case text:
		s.text(v)
	case number:
		s.number(v)
	case instant:
		s.instant(v)
	case uuid:
		id := strings.ToLower(string(v))
		if s.chance(50) {
			id = strings.ToUpper(id)
		}
		s.text(text(id))
	default:
		panic(fmt.Sprintf("cannot spell %T", v))
	}
	s.space()
}

// nothing is a value that counts as absent.
func (s *speller) nothing(null bool) {
	switch s.IntN(4) {
	case 0:
		s.WriteString("{}")
	case 1:
		s.WriteString(`{"none":[{"at":{}}, [ ]]}`)
	case 2:
		if null {
			s.WriteString("null")
			return
		}
		s.WriteString(`{"x":null}`)
	default:
		s.WriteString("[[]]")
	}
}

func (s *speller) object(o object) {
	s.WriteByte('{')
	separator := ""
	next := func(key text) {
		s.WriteString(separator)
		separator = ","
		s.space()
		s.text(key)
		s.space()
		s.WriteByte(':')
	}
	if len(o) > 0 && s.chance(10) { // what the last of equal keys replaces
		next(o[s.IntN(len(o))].key)
		s.WriteString(`["replaced"]`)
	}
	extras := 0
	for s.chance(15) {
		extras++
	}
	for _, i := range s.Perm(len(o) + extras) {
		if i >= len(o) {
			next(text(fmt.Sprintf("zz%d", i)))
			s.nothing(true)
			continue
		}
		next(o[i].key)
		s.write(o[i].value)
	}
	s.WriteByte('}')
}

func (s *speller) array(elems []any, isSet, empties bool) {
	order := make([]int, len(elems))
	for i := range order {
		order[i] = i
	}
	if isSet {
		for range len(elems) {
			if s.chance(20) {
				order = append(order, s.IntN(len(elems)))
			}
		}
		s.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	s.WriteByte('[')
	separator := ""
	for _, i := range order {
		if empties && s.chance(10) {
			s.WriteString(separator)
			separator = ","
			s.nothing(false)
		}
		s.WriteString(separator)
		separator = ","
		s.write(elems[i])
	}
	s.WriteByte(']')
}

// text writes a string composed or decomposed, each character as itself or as
// an escape.
func (s *speller) text(t text) {
	s.WriteByte('"')
	for _, r := range s.recompose(t) {
		if short := strings.IndexRune("\"\\/\b\f\n\r\t", r); short >= 0 && s.chance(50) {
			s.WriteByte('\\')
			s.WriteByte(`"\/bfnrt`[short])
			continue
		}
		must := r < 0x20 || r == '"' || r == '\\' || utf16.IsSurrogate(r)
		if !must && s.chance(80) {
			s.WriteRune(r)
			continue
		}
		units := []uint16{uint16(r)}
		if r > 0xffff {
			units = utf16.Encode([]rune{r})
		}
		for _, u := range units {
			fmt.Fprintf(s, []string{`\u%04x`, `\u%04X`}[s.IntN(2)], u)
		}
	}
	s.WriteByte('"')
}

// recompose returns t in another form of the same; surrogates are no text.
func (s *speller) recompose(t text) (out text) {
	forms := []func(string) string{norm.NFC.String, norm.NFD.String, func(s string) string { return s }}
	form := forms[s.IntN(len(forms))]
	from := 0
	for i := 0; i <= len(t); i++ {
		if i < len(t) && !utf16.IsSurrogate(t[i]) {
			continue
		}
		out = append(out, []rune(form(string(t[from:i])))...)
		if i < len(t) {
			out = append(out, t[i])
		}
		from = i + 1
	}
	return out
}

// number writes the same value with the point anywhere.
func (s *speller) number(n number) {
	if n.negative {
		s.WriteByte('-')
	}
	if n.digits == "" {
		s.WriteString([]string{"0", "0.0", "0e7", "0.00E-3"}[s.IntN(4)])
		return
	}
	if n.exponent >= 0 && s.chance(30) {
		s.WriteString(n.digits + strings.Repeat("0", n.exponent))
		return
	}
	point := s.IntN(len(n.digits) + 1) // digits before it
	whole, fraction := n.digits[:point], n.digits[point:]
	exponent := n.exponent + len(fraction)
	if whole == "" {
		whole = "0"
	}
	s.WriteString(whole)
	fraction += strings.Repeat("0", s.IntN(3))
	if fraction != "" {
		s.WriteString("." + fraction)
	}
	if exponent != 0 || s.chance(20) {
		fmt.Fprintf(s, []string{"e%d", "E%+d", "e%+03d"}[s.IntN(3)], exponent)
	}
}

// instant writes the same moment in some zone.
func (s *speller) instant(i instant) {
	at := time.Date(2026, 1, 1, 0, 0, int(i), 0, time.UTC)
	zone := time.FixedZone("", 900*(s.IntN(96)-48))
	layouts := []string{"2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05.000Z0700", "2006-01-02t15:04:05,0Z07:00"}
	spelled := at.In(zone).Format(layouts[s.IntN(len(layouts))])
	if s.chance(20) {
		spelled = at.Format("2006-01-02T15:04:05")
	} else if s.chance(20) {
		spelled += "[Europe/London]"
	}
	s.text(text(spelled))
}
