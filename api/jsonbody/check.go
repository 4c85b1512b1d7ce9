package jsonbody

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// checker walks one JSON value beside the Go type that it is meant for. The
// value is known to be well-formed.
type checker struct{ dec *json.Decoder }

// value checks the next value. t is nil where any shape goes.
func (c *checker) value(t reflect.Type, path string, depth int) error {
	tok, err := c.dec.Token()
	if err != nil {
		return &Error{Reason: ErrSyntax}
	}
	if tok == nil && !nullable(t) {
		return &Error{Reason: ErrNull, Field: shortened(path)}
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil // the type of a plain value is json.Unmarshal's business
	}
	if depth++; depth > MaxDepth {
		return &Error{Reason: ErrDepth}
	}
	if delim == '{' {
		err = c.object(shape(t), path, depth)
	} else {
		err = c.array(shape(t), path, depth)
	}
	if err != nil {
		return err
	}
	if _, err = c.dec.Token(); err != nil { // the closing bracket
		return &Error{Reason: ErrSyntax}
	}
	return nil
}

func (c *checker) object(t reflect.Type, path string, depth int) error {
	seen := map[string]bool{}
	for c.dec.More() {
		tok, err := c.dec.Token()
		if err != nil {
			return &Error{Reason: ErrSyntax}
		}
		name, _ := tok.(string)
		at := strings.TrimPrefix(path+"."+name, ".")
		if seen[name] {
			return &Error{Reason: ErrDuplicate, Field: shortened(at)}
		}
		seen[name] = true
		field, known := member(t, name)
		if !known {
			return &Error{Reason: ErrUnknown, Field: shortened(at)}
		}
		if err := c.value(field, at, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) array(t reflect.Type, path string, depth int) error {
	var elem reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		elem = t.Elem()
	}
	for i := 0; c.dec.More(); i++ {
		if err := c.value(elem, path+"["+strconv.Itoa(i)+"]", depth); err != nil {
			return err
		}
	}
	return nil
}

var decodesItself = reflect.TypeFor[json.Unmarshaler]()

// shape is the type whose members a JSON object or array fills: without its
// pointers, and nil where a type decodes itself or an interface takes all.
func shape(t reflect.Type) reflect.Type {
	for t != nil {
		switch {
		case t.Kind() == reflect.Interface, t.Implements(decodesItself), reflect.PointerTo(t).Implements(decodesItself):
			return nil
		case t.Kind() != reflect.Pointer:
			return t
		}
		t = t.Elem()
	}
	return nil
}

// nullable tells whether null has a meaning of its own there: where it would
// leave the field as it was, it is refused.
func nullable(t reflect.Type) bool {
	return t == nil || t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || shape(t) == nil
}

// member is the type of an object's member, nil for any, and whether the object
// may have it. A scalar's member passes: json.Unmarshal refuses the object.
func member(t reflect.Type, name string) (reflect.Type, bool) {
	if t == nil {
		return nil, true
	}
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), true
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if name != "" && fieldName(f) == name {
				return f.Type, true
			}
		}
		return nil, false
	default:
		return nil, true
	}
}

// fieldName is what a field is called in JSON, or "" for one that JSON lacks.
func fieldName(f reflect.StructField) string {
	tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case !f.IsExported(), tag == "-", f.Anonymous && tag == "":
		return ""
	case tag != "":
		return tag
	default:
		return f.Name
	}
}

// shortened is a path fit for an answer: a client can make names of any length.
func shortened(path string) string {
	const most = 100
	if len(path) <= most {
		return path
	}
	cut := most
	for !utf8.RuneStart(path[cut]) {
		cut--
	}
	return fmt.Sprintf("%s...", path[:cut])
}

// loneSurrogate finds an escape like \ud800 without its other half, which
// encoding/json would silently replace. In valid JSON a backslash stands only
// in strings.
func loneSurrogate(data []byte) bool {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++ // now at the letter
		if data[i] != 'u' || !utf16.IsSurrogate(unit(data, i)) {
			continue
		}
		// DecodeRune refuses the low half in front as well.
		if i+6 >= len(data) || data[i+5] != '\\' || data[i+6] != 'u' ||
			utf16.DecodeRune(unit(data, i), unit(data, i+6)) == utf8.RuneError {
			return true
		}
		i += 10
	}
	return false
}

// unit is the number of the escape whose `u` stands at i.
func unit(data []byte, i int) rune {
	n, err := strconv.ParseUint(string(data[i+1:min(i+5, len(data))]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
