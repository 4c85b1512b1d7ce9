package room

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth is far above what any document of ours needs, and far below what
// costs stack.
const maxDepth = 32

// DecodeObject reads one JSON object as strictly as settings are read:
// duplicate names, trailing data, broken characters and depths above 32 are
// ErrJSON. Numbers stay json.Number, so that no digit is lost before the range
// is checked.
func DecodeObject(data []byte) (map[string]any, error) {
	// The whole syntax first, trailing data included: reading token by token
	// would notice only what it comes across.
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrJSON, err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrJSON, err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: got %s", ErrJSON, got(v))
	}
	return object, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return decodeMembers(d, depth)
		}
		return decodeList(d, depth)
	case string:
		return token, checkText(token)
	default:
		return token, nil
	}
}

func decodeMembers(d *json.Decoder, depth int) (map[string]any, error) {
	object := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string) // the syntax was checked
		if err := checkText(name); err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("%s is there twice", got(name))
		}
		if object[name], err = decodeValue(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}

func decodeList(d *json.Decoder, depth int) ([]any, error) {
	list := []any{}
	for d.More() {
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

// checkText refuses what broken UTF-8 and lone surrogate escapes have become:
// two different documents would otherwise mean the same.
func checkText(s string) error {
	if strings.ContainsRune(s, utf8.RuneError) {
		return fmt.Errorf("%s has a broken character", got(s))
	}
	return nil
}

// unknown lists the names of a document that are not among the known ones, in
// alphabetical order.
func unknown(doc map[string]any, what string, known ...string) Problems {
	var wrong Problems
	for name := range doc {
		if !slices.Contains(known, name) {
			wrong = append(wrong, Problem{Field: clip(name), Detail: "is not a " + what})
		}
	}
	slices.SortFunc(wrong, func(a, b Problem) int { return strings.Compare(a.Field, b.Field) })
	return wrong
}
