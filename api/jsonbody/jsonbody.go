// Package jsonbody reads the JSON body of a request strictly, the same way for
// shoppers and operators.
//
// It promises that a body that is accepted means one thing only: one object of
// at most MaxBytes, in valid UTF-8, nested at most MaxDepth deep, in which each
// field exists under exactly that name, appears once, and has a value of its
// type. Everything else is refused with an *Error, which has one of the reasons
// below and, where one is at fault, the path of the field. (encoding/json alone takes fields in any case,
// the last of two duplicates, and null for anything.)
//
// It does not judge values: ranges and whole sentences are the caller's.
package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/linekeeper/linekeeper/api/problem"
)

// MaxBytes is the largest body that is read.
const MaxBytes = 16 << 10

// MaxDepth is how deep objects and arrays may be nested, the outermost counted.
const MaxDepth = 32

// Why a body is refused. Match them with errors.Is.
var (
	// ErrEmpty means that there is no body. A caller that needs none may go on.
	ErrEmpty     = errors.New("the request has no body")
	ErrTooLarge  = fmt.Errorf("the body is larger than %d bytes", MaxBytes)
	ErrMediaType = errors.New("the Content-Type is not application/json in UTF-8")
	// ErrUnreadable means that the body broke off or timed out on its way.
	ErrUnreadable = errors.New("the body could not be read to its end")
	ErrSyntax     = errors.New("the body is not valid JSON")
	ErrEncoding   = errors.New("the body is not valid UTF-8, or has half of a surrogate pair")
	ErrNotObject  = errors.New("the body is not a JSON object")
	ErrTrailing   = errors.New("there is something after the JSON object")
	ErrDepth      = fmt.Errorf("the body is nested deeper than %d levels", MaxDepth)
	ErrUnknown    = errors.New("no such field")
	ErrDuplicate  = errors.New("the field appears twice")
	ErrNull       = errors.New("the field must not be null")
	ErrType       = errors.New("the value has the wrong type or is out of range")
)

// Error is a refused body. All errors of this package are of this type.
type Error struct {
	Reason error  // one of the above, or wraps it
	Field  string // like `items[0].quantity`, cut to a sane length; empty: the body as a whole
}

// Error says what is wrong, and in which field.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Reason.Error()
	}
	return fmt.Sprintf("%s: %v", e.Field, e.Reason)
}

// Unwrap makes errors.Is find the reason.
func (e *Error) Unwrap() error { return e.Reason }

// Read decodes the body of r into v, a pointer to a struct, a map or a
// json.RawMessage. Any body must be declared as application/json; a PATCH may
// say application/merge-patch+json as well. The error is an *Error: hand it to
// Problem. After ErrTooLarge the connection is closed, by way of w.
func Read(w http.ResponseWriter, r *http.Request, v any) error {
	data, err := read(w, r)
	if err != nil {
		return &Error{Reason: err}
	}
	return Decode(data, v)
}

func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, ErrEmpty
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, ErrTooLarge
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	case len(data) == 0:
		return nil, ErrEmpty
	case !isJSON(r):
		return nil, ErrMediaType
	}
	return data, nil
}

func isJSON(r *http.Request) bool {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return false
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return false
	}
	return media == "application/json" ||
		r.Method == http.MethodPatch && media == "application/merge-patch+json"
}

// Decode is Read for bytes that are at hand, such as settings after a merge.
// MaxBytes is not applied. On an error v is in no known state.
func Decode(data []byte, v any) error {
	object, err := onlyObject(data)
	if err != nil {
		return &Error{Reason: err}
	}
	c := checker{dec: json.NewDecoder(bytes.NewReader(object))}
	c.dec.UseNumber()
	if err := c.value(reflect.TypeOf(v), "", 0); err != nil {
		return err
	}
	return unmarshal(object, v)
}

// onlyObject is the one JSON object that data has to be.
func onlyObject(data []byte) ([]byte, error) {
	if !utf8.Valid(data) {
		return nil, ErrEncoding
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	if err := dec.Decode(&first); err != nil {
		return nil, ErrSyntax
	}
	if first[0] != '{' {
		return nil, ErrNotObject
	}
	if len(bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n")) > 0 {
		return nil, ErrTrailing
	}
	if loneSurrogate(first) {
		return nil, ErrEncoding
	}
	return first, nil
}

func unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType):
		return &Error{Reason: ErrType, Field: shortened(wrongType.Field)}
	default: // a type that decodes itself has refused its text
		return &Error{Reason: ErrType}
	}
}

// Problem is the answer to an error of Read or Decode.
func Problem(err error) problem.Problem {
	var refused *Error
	switch {
	case !errors.As(err, &refused):
		return problem.New("internal")
	case errors.Is(err, ErrTooLarge):
		return problem.New("body-too-large")
	case errors.Is(err, ErrMediaType):
		return problem.New("unsupported-media-type")
	case errors.Is(err, ErrUnreadable): // the cause is about our connection: not for the client
		return problem.New("bad-request").WithDetail(sentence(ErrUnreadable))
	case refused.Field == "":
		return problem.New("bad-request").WithDetail(sentence(refused.Reason))
	default:
		return problem.New("bad-request").WithDetail(sentence(refused.Reason) + " See errors.").
			WithErrors(problem.FieldError{Field: refused.Field, Detail: refused.Reason.Error()})
	}
}

func sentence(err error) string {
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
