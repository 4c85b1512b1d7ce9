package contract

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// nasty are texts that have broken something somewhere.
var nasty = []string{
	"", " ", ".", "..", "*", "}", "a}{b", "x:wait", "{room}", "%", "%2e%2e", "../../etc/passwd", "a\r\nSet-Cookie: x=1", "\x00", "\u2028", "\x1b[31m", "é", "\xff\xfe", "\U0001f600",
	"-1", "0", "-0", "1e400", "9007199254740993", "9223372036854775808", "NaN", "null", "true", "[]", "{}", `"`, `\`, "'; DROP TABLE orders; --", "<script>alert(1)</script>",
	"__proto__", "me", "draw", strings.Repeat("a", 300), strings.Repeat("é", 100), strings.Repeat("9", 400), "//evil.example", "javascript:alert(1)", "eyJhbGciOiJub25lIn0.e30.", "a.b.c", "Bearer ", "W/\"1\"", "\"1\"",
}

// nastyBodies are bodies, or parts of them, that have.
var nastyBodies = []string{
	"", "{}", "[]", "null", "1e400", "-0", `"\ud800"`, "{}{}", `{"a":1,"a":2}`, `{"items":null}`, `{"items":[{"sku":"a","quantity":9007199254740993}]}`, "\xef\xbb\xbf{}",
	`{"count":1e1}`, `{"count":9223372036854775807}`, `{"count":-1}`, strings.Repeat("[", 10_000), strings.Repeat(`{"a":`, 3_000), `{"a":"` + strings.Repeat("x", 17<<10) + `"}`,
	`{"confirm":"lab"}`, `{"batchSize":1e2}`, `{"message":{"en":"\u0000"}}`, `{"returnUrls":["//evil.example"]}`, `{"opensAt":"9999-12-31T23:59:60Z"}`, "\x00", "{\"a\":\"\xff\"}",
}

// text is a value for a name: mostly a known one.
func (m *Maker) text(name string) string {
	known := m.Known[name]
	switch {
	case len(known) > 0 && !m.one(4):
		return pick(m, known)
	case len(known) > 0 && m.one(2): // nearly a known one
		v := []byte(pick(m, known))
		if len(v) > 0 {
			v[m.rng.IntN(len(v))] ^= byte(1 + m.rng.IntN(15))
		}
		return string(v)
	}
	return pick(m, nasty)
}

// value is one that fits a schema, as far as a schema is followed here; now and
// then one that does not.
func (m *Maker) value(ref *openapi3.SchemaRef, name string) any {
	s := ref.Value
	switch {
	case m.one(40):
		return pick(m, []any{nil, true, -1, 1 << 60, 0.5, json.Number("1e400"), "", []any{}, map[string]any{"": 1}, pick(m, nasty)})
	case len(s.Enum) > 0:
		return pick(m, s.Enum)
	case s.Const != nil:
		return s.Const
	}
	for _, choices := range []openapi3.SchemaRefs{s.AnyOf, s.OneOf, s.AllOf} {
		if len(choices) > 0 {
			return m.value(pick(m, choices), name)
		}
	}
	return m.typed(s, name)
}

func (m *Maker) typed(s *openapi3.Schema, name string) any {
	if s.Type == nil {
		return pick(m, nasty)
	}
	switch pick(m, s.Type.Slice()) {
	case "object":
		return m.object(s)
	case "array":
		list := []any{}
		for range m.rng.IntN(4) {
			list = append(list, m.value(s.Items, name))
		}
		return list
	case "integer":
		return m.integer(s)
	case "number":
		return float64(m.integer(s)) + pick(m, []float64{0, 0, .5, .001})
	case "boolean":
		return m.one(2)
	case "null":
		return nil
	}
	if s.Format == "date-time" {
		return pick(m, []string{"2030-01-01T00:00:00Z", "2001-01-01T00:00:00+14:00", "1999-12-31T23:59:59Z", "tomorrow", "2030-01-01T00:00:00.123456789Z"})
	}
	return m.text(name)
}

func (m *Maker) object(s *openapi3.Schema) any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		// Of many settings few at a time: one wrong one would hide the rest.
		if slices.Contains(s.Required, name) || m.one(min(len(s.Properties), 12)) {
			out[name] = m.value(s.Properties[name], name)
		}
	}
	if s.AdditionalProperties.Schema != nil {
		out[pick(m, []string{"en", "de", "pt-BR", "", "x\ny"})] = m.value(s.AdditionalProperties.Schema, "")
	}
	return out
}

// integer prefers the ends of the range, and what lies just beyond.
func (m *Maker) integer(s *openapi3.Schema) int64 {
	low, high := int64(0), int64(1<<53)
	if s.Min != nil {
		low = int64(*s.Min)
	}
	if s.Max != nil {
		high = int64(*s.Max)
	}
	return pick(m, []int64{low, high, low + m.rng.Int64N(high-low+1), low + m.rng.Int64N(min(high-low, 20)+1), low - 1, high + 1})
}
