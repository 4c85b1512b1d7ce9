package jsonbody_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/jsonbody"
)

type item struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

type embedded struct {
	Note string `json:"note"`
}

type request struct {
	embedded
	Items   []item            `json:"items"`
	Comment *string           `json:"comment"`
	At      time.Time         `json:"at"`
	Texts   map[string]string `json:"texts"`
	Any     any               `json:"any"`
	Flag    bool              `json:"flag"`
	Hidden  string            `json:"-"`
	Plain   int
}

func TestBodiesAreRefusedForOneExactReason(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return `{"any":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	for _, c := range []struct {
		body  string
		want  error
		field string
	}{
		{`{}`, nil, ""},
		{" {\"items\":[{\"sku\":\"a\",\"quantity\":2}]}\r\n\t ", nil, ""},
		{`{"comment":null,"any":null,"texts":{"en":"x","EN":"y"},"note":"n","Plain":1}`, nil, ""},
		{`{"any":{"free":{"a":[1,null,{"b":2}]}}}`, nil, ""},
		{`{"comment":"\ud83d\ude00 \\ud800 \u00e9"}`, nil, ""},
		{deep(32), nil, ""},

		{deep(33), jsonbody.ErrDepth, ""},
		{deep(8000), jsonbody.ErrDepth, ""},
		{`null`, jsonbody.ErrNotObject, ""},
		{`[]`, jsonbody.ErrNotObject, ""},
		{`"x"`, jsonbody.ErrNotObject, ""},
		{` `, jsonbody.ErrSyntax, ""},
		{`{`, jsonbody.ErrSyntax, ""},
		{`{"items":[}`, jsonbody.ErrSyntax, ""},
		{`{"flag":true,}`, jsonbody.ErrSyntax, ""},
		{`{'flag':true}`, jsonbody.ErrSyntax, ""},
		{`{"flag":NaN}`, jsonbody.ErrSyntax, ""},
		{`{}{}`, jsonbody.ErrTrailing, ""},
		{`{} x`, jsonbody.ErrTrailing, ""},
		{"{\"comment\":\"\xff\"}", jsonbody.ErrEncoding, ""},
		{`{"comment":"\ud800"}`, jsonbody.ErrEncoding, ""},
		{`{"comment":"\ude00\ud83d"}`, jsonbody.ErrEncoding, ""},
		{`{"comment":"\ud83d\u0041"}`, jsonbody.ErrEncoding, ""},
		{`{"\udfff":1}`, jsonbody.ErrEncoding, ""},
		{`{"flag":true,"flag":true}`, jsonbody.ErrDuplicate, "flag"},
		{`{"fl\u0061g":true,"flag":true}`, jsonbody.ErrDuplicate, "flag"},
		{`{"items":[{},{"sku":"a","quantity":1,"sku":"b"}]}`, jsonbody.ErrDuplicate, "items[1].sku"},
		{`{"any":{"x":[{"a":1,"a":2}]}}`, jsonbody.ErrDuplicate, "any.x[0].a"},
		{`{"member":"ann"}`, jsonbody.ErrUnknown, "member"},
		{`{"Flag":true}`, jsonbody.ErrUnknown, "Flag"},
		{`{"items":[{"SKU":"a"}]}`, jsonbody.ErrUnknown, "items[0].SKU"},
		{`{"Hidden":"x"}`, jsonbody.ErrUnknown, "Hidden"},
		{`{"-":"x"}`, jsonbody.ErrUnknown, "-"},
		{`{"":1}`, jsonbody.ErrUnknown, ""},
		{`{"embedded":{}}`, jsonbody.ErrUnknown, "embedded"},
		{`{"x` + strings.Repeat("é", 300) + `":1}`, jsonbody.ErrUnknown, "x" + strings.Repeat("é", 49) + "..."},
		{`{"flag":null}`, jsonbody.ErrNull, "flag"},
		{`{"items":null}`, jsonbody.ErrNull, "items"},
		{`{"items":[null]}`, jsonbody.ErrNull, "items[0]"},
		{`{"texts":{"en":null}}`, jsonbody.ErrNull, "texts.en"},
		{`{"flag":"true"}`, jsonbody.ErrType, "flag"},
		{`{"flag":{"a":1}}`, jsonbody.ErrType, "flag"},
		{`{"items":{}}`, jsonbody.ErrType, "items"},
		{`{"items":[{"quantity":"1"}]}`, jsonbody.ErrType, "items.quantity"},
		{`{"items":[{"quantity":0.5}]}`, jsonbody.ErrType, "items.quantity"},
		{`{"items":[{"quantity":1e2}]}`, jsonbody.ErrType, "items.quantity"},
		{`{"items":[{"quantity":9223372036854775808}]}`, jsonbody.ErrType, "items.quantity"},
		{`{"any":1e400}`, jsonbody.ErrType, "any"},
		{`{"at":"yesterday"}`, jsonbody.ErrType, ""},
	} {
		var v request
		err := jsonbody.Decode([]byte(c.body), &v)
		name := c.body[:min(60, len(c.body))]
		if c.want == nil {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, c.want, name)
		var refused *jsonbody.Error
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, c.field, refused.Field, name)
		require.Equal(t, strings.TrimPrefix(c.field+": "+c.want.Error(), ": "), err.Error())
	}
}

func TestAcceptedValuesArriveExactly(t *testing.T) {
	t.Parallel()
	var v request
	body := `{"items":[{"sku":"\ud83d\ude00","quantity":9007199254740993},{"sku":"","quantity":-0}],"comment":"x"}`
	require.NoError(t, jsonbody.Decode([]byte(body), &v))
	require.Equal(t, []item{{"😀", 9007199254740993}, {"", 0}}, v.Items)
	require.Equal(t, "x", *v.Comment)
}

func TestAMergePatchKeepsItsNulls(t *testing.T) {
	t.Parallel()
	var patch map[string]json.RawMessage
	require.NoError(t, jsonbody.Decode([]byte(`{"opensAt":null,"lanes":[{"name":"a"}]}`), &patch))
	require.Equal(t, "null", string(patch["opensAt"]))
	var raw json.RawMessage
	require.NoError(t, jsonbody.Decode([]byte(` {"a":null} `), &raw))
	require.JSONEq(t, `{"a":null}`, string(raw))
	require.ErrorIs(t, jsonbody.Decode([]byte(`{"a":{"b":1,"b":2}}`), &raw), jsonbody.ErrDuplicate)
}

// read passes a body through Read on a real connection's terms.
func read(method, contentType string, body io.Reader) error {
	r := httptest.NewRequest(method, "/v1/orders", body)
	r.Header.Set("Content-Type", contentType)
	var v request
	return jsonbody.Read(httptest.NewRecorder(), r, &v)
}

func TestABodyMustSayThatItIsJSON(t *testing.T) {
	t.Parallel()
	for contentType, want := range map[string]error{
		"application/json": nil, "Application/JSON; charset=UTF-8": nil,
		"application/json; charset=latin1": jsonbody.ErrMediaType, "application/json;;": jsonbody.ErrMediaType,
		"application/merge-patch+json": jsonbody.ErrMediaType, "application/jsonx": jsonbody.ErrMediaType,
		"text/plain": jsonbody.ErrMediaType, "application/x-www-form-urlencoded": jsonbody.ErrMediaType, "": jsonbody.ErrMediaType,
	} {
		require.ErrorIs(t, read(http.MethodPost, contentType, strings.NewReader(`{}`)), want, "%q", contentType)
	}
	require.NoError(t, read(http.MethodPatch, "application/merge-patch+json", strings.NewReader(`{}`)))
	require.NoError(t, read(http.MethodPatch, "application/json", strings.NewReader(`{}`)))
}

func TestNoBodyNeedsNoContentType(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, read(http.MethodPost, "", nil), jsonbody.ErrEmpty)
	require.ErrorIs(t, read(http.MethodPost, "text/plain", strings.NewReader("")), jsonbody.ErrEmpty)
	require.ErrorIs(t, jsonbody.Read(nil, &http.Request{}, nil), jsonbody.ErrEmpty)
}

func TestTheLargestBodyIsReadAndNoLargerOne(t *testing.T) {
	t.Parallel()
	body := func(n int) io.Reader {
		return strings.NewReader(`{"comment":"` + strings.Repeat("x", n-14) + `"}`)
	}
	require.NoError(t, read(http.MethodPost, "application/json", body(16<<10)))
	require.ErrorIs(t, read(http.MethodPost, "application/json", body(16<<10+1)), jsonbody.ErrTooLarge)
	endless := iotest.OneByteReader(io.LimitReader(zeros{}, 1<<40))
	require.ErrorIs(t, read(http.MethodPost, "application/json", endless), jsonbody.ErrTooLarge)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestABrokenOffBodyIsNotTakenForAShortOne(t *testing.T) {
	t.Parallel()
	cause := errors.New("10.0.0.1: connection reset")
	err := read(http.MethodPost, "application/json", io.MultiReader(strings.NewReader(`{}`), iotest.ErrReader(cause)))
	require.ErrorIs(t, err, jsonbody.ErrUnreadable)
	require.ErrorIs(t, err, cause)
	require.NotContains(t, jsonbody.Problem(err).Detail, "10.0.0.1")
}

func TestEveryRefusalHasItsProblem(t *testing.T) {
	t.Parallel()
	for reason, want := range map[error]string{
		jsonbody.ErrTooLarge: "body-too-large", jsonbody.ErrMediaType: "unsupported-media-type",
		jsonbody.ErrEmpty: "bad-request", jsonbody.ErrUnreadable: "bad-request", jsonbody.ErrSyntax: "bad-request",
		jsonbody.ErrTrailing: "bad-request", jsonbody.ErrDepth: "bad-request",
	} {
		p := jsonbody.Problem(fmt.Errorf("read order: %w", &jsonbody.Error{Reason: reason}))
		require.Equal(t, want, p.Code, reason)
		require.Empty(t, p.Errors)
		require.NotContains(t, p.Detail, "read order")
	}
	p := jsonbody.Problem(&jsonbody.Error{Reason: jsonbody.ErrUnknown, Field: "items[0].x"})
	require.Equal(t, "bad-request", p.Code)
	require.Equal(t, "No such field. See errors.", p.Detail)
	require.Len(t, p.Errors, 1)
	require.Equal(t, "items[0].x", p.Errors[0].Field)
	require.Equal(t, "no such field", p.Errors[0].Detail)
	require.Equal(t, "internal", jsonbody.Problem(io.EOF).Code, "what is not the client's fault is not called so")
}

// FuzzDecode holds that what is accepted reads the same for everybody: it is
// valid JSON, and written out and read again it is the same value.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"items":[{"sku":"demo","quantity":1}]}`, `{"any":{"a":[1,2,{"b":null}]}}`, `{"comment":"\ud83d\ude00\\u"}`,
		`{"texts":{"a":"b"}}`, `{"a":1,"a":2}`, `{}{}`, `{"comment":"\ud800\u"}`, "{\"\xff\":1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v request
		if err := jsonbody.Decode(data, &v); err != nil {
			status := jsonbody.Problem(err).Status
			require.True(t, status >= 400 && status < 500, "a refusal is the client's fault, got %d", status)
			return
		}
		require.True(t, json.Valid(data), "accepted what is not JSON")
		var loose request
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&loose), "accepted what the plain decoder refuses")
		require.True(t, reflect.DeepEqual(loose, v))
		out, err := json.Marshal(v)
		require.NoError(t, err)
		var again map[string]any
		require.NoError(t, json.Unmarshal(out, &again))
	})
}
