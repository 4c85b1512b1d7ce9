package room

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Problem is one thing wrong with one field.
type Problem struct {
	Field  string `json:"field"`  // a path such as lanes[0].weight
	Detail string `json:"detail"` // what it must be, and what was got
}

// Problems is everything wrong with a document, in the order of the settings'
// table. It is never empty where it is returned as an error.
type Problems []Problem

// Error joins all of them into one line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Field + " " + one.Detail
	}
	return strings.Join(lines, "; ")
}

// err keeps an empty list from becoming an error that is not nil.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// under puts a name in front of the fields.
func (p Problems) under(name string) Problems {
	for i := range p {
		p[i].Field = name + p[i].Field
	}
	return p
}

// about tells whether a problem with exactly this field is known, so that a
// rule about several fields does not say again what is wrong with one.
func (p Problems) about(field string) bool {
	for _, one := range p {
		if one.Field == field {
			return true
		}
	}
	return false
}

func problem(format string, args ...any) Problems {
	return Problems{{Detail: fmt.Sprintf(format, args...)}}
}

// maxGot bounds how much of a wrong value is said back, in runes.
const maxGot = 40

// got writes a value for the end of a detail, and never a whole document.
func got(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case json.Number:
		return clip(v.String())
	case string:
		return fmt.Sprintf("%q", clip(v))
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return clip(fmt.Sprint(v))
	}
}

func clip(s string) string {
	if r := []rune(s); len(r) > maxGot {
		return string(r[:maxGot]) + "..."
	}
	return s
}
