package admin

import (
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/room"
)

// maxBody is far above the largest settings that pass validation.
const maxBody = 16 << 10

const (
	jsonType  = "application/json"
	patchType = "application/merge-patch+json"
)

// readBody returns the whole body, which must be of one of the types.
func readBody(w http.ResponseWriter, r *http.Request, types ...string) ([]byte, error) {
	body, err := readAll(w, r)
	if err != nil {
		return nil, err
	}
	if !typed(r, types) {
		return nil, refusal{problem.New("unsupported-media-type").WithDetail(
			"The Content-Type must be " + strings.Join(types, " or ") + ", in UTF-8.")}
	}
	return body, nil
}

// readAll reads no further than the limit, whatever Content-Length claims.
func readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, refusal{problem.New("body-too-large")}
	}
	if err != nil {
		return nil, refusal{problem.New("bad-request").WithDetail("The body broke off.")}
	}
	return body, nil
}

// typed tells whether the body says that it is one of the types. Another
// charset than UTF-8 would make another text of the same bytes.
func typed(r *http.Request, types []string) bool {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, given := params["charset"]
	return err == nil && slices.Contains(types, media) && (!given || strings.EqualFold(charset, "utf-8"))
}

// noBody is for calls that take nothing: an empty body, or an empty object as
// some clients send.
func noBody(w http.ResponseWriter, r *http.Request) error {
	body, err := readAll(w, r)
	if err != nil || len(body) == 0 {
		return err
	}
	if !typed(r, []string{jsonType}) {
		return refusal{problem.New("unsupported-media-type")}
	}
	doc, err := room.DecodeObject(body)
	if err != nil {
		return err
	}
	if len(doc) > 0 {
		return refusal{problem.New("bad-request").WithDetail("This call takes no fields.")}
	}
	return nil
}

// readConfirmed is for what can't be undone: the body must be {"confirm": name},
// so that a line from the shell's history does not hit another room.
func readConfirmed(w http.ResponseWriter, r *http.Request, name string) error {
	required := refusal{problem.New("confirmation-required").WithDetail(`The body must be {"confirm":"` + name + `"}.`)}
	body, err := readAll(w, r)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return required
	}
	if !typed(r, []string{jsonType}) {
		return refusal{problem.New("unsupported-media-type")}
	}
	doc, err := room.DecodeObject(body)
	if err != nil {
		return err
	}
	if doc["confirm"] != name || len(doc) != 1 {
		return required
	}
	return nil
}

// roomName is the room in the path. A name that can't be is "not found" before
// any database is asked.
func roomName(r *http.Request) (string, error) {
	name := r.PathValue("room")
	if !room.ValidName(name) {
		return "", room.ErrNotFound
	}
	return name, nil
}

// noVersion is no version at all: it matches nothing.
const noVersion = -1

// ifMatch is the version that the client has seen, and whether it says any. "*"
// stands for whatever is there. What is not a single ETag of ours can't match.
func ifMatch(r *http.Request) (version int64, given bool) {
	tags := r.Header.Values("If-Match")
	if len(tags) == 0 {
		return 0, false
	}
	tag := strings.Join(tags, ",")
	if tag == "*" {
		return 0, true
	}
	text, ok := strings.CutPrefix(tag, `"`)
	text, closed := strings.CutSuffix(text, `"`)
	version, err := strconv.ParseInt(text, 10, 64)
	if !ok || !closed || err != nil || version < 1 || strconv.FormatInt(version, 10) != text {
		return noVersion, true
	}
	return version, true
}

// maxLimit bounds the memory of one answer; cursors reach the rest.
const defaultLimit, maxLimit = 50, 200

// parameter reads a query parameter; two of them are not a choice for us to make.
func parameter(r *http.Request, name, otherwise string) (string, error) {
	switch given := r.URL.Query()[name]; len(given) {
	case 0:
		return otherwise, nil
	case 1:
		return given[0], nil
	}
	return "", refusal{problem.New("bad-request").WithDetail("The parameter " + name + " is there more than once.")}
}

// number reads a query parameter that is a whole number in a range.
func number(r *http.Request, name string, otherwise, low, high int64) (int64, error) {
	text, err := parameter(r, name, strconv.FormatInt(otherwise, 10))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		detail := "must be a whole number from " + strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(high, 10)
		return 0, refusal{problem.New("bad-request").WithDetail("The parameter " + name + " " + detail + ".").
			WithErrors(problem.FieldError{Field: name, Detail: detail})}
	}
	return n, nil
}

// page reads the limit of a list and the id that it goes on from, 0 for its
// beginning.
func page(r *http.Request, cursor string) (limit int, from int64, err error) {
	n, err := number(r, "limit", defaultLimit, 1, maxLimit)
	if err != nil {
		return 0, 0, err
	}
	from, err = number(r, cursor, 0, 0, math.MaxInt64)
	return int(n), from, err
}

// next is the cursor of the page after this one, nil after a page that was not
// full.
func next(count, limit int, last func() int64) *int64 {
	if count < limit {
		return nil
	}
	id := last()
	return &id
}
