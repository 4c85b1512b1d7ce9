package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/linekeeper/linekeeper/api/problem"
)

// Verify is Check with what is wrong as an error.
func (c *Contract) Verify(req *http.Request, resp *http.Response, body []byte) error {
	o, params, known := c.find(req)
	if o.op == nil {
		return c.verifyNoRoute(known, req, resp, body)
	}
	documented := o.op.Responses.Status(resp.StatusCode)
	if documented == nil {
		return errors.New("the status is not documented")
	}
	errs := []error{c.verifyHeaders(documented.Value.Headers, resp.Header), c.verifyBody(documented.Value.Content, req, resp, body)}
	if resp.StatusCode < http.StatusMultipleChoices {
		errs = append(errs, c.verifyRequest(o, params, req))
	}
	return errors.Join(errs...)
}

// verifyNoRoute allows what a server may say to a request that the document
// has no operation for.
func (c *Contract) verifyNoRoute(known bool, req *http.Request, resp *http.Response, body []byte) error {
	if req.Method == http.MethodHead {
		return nil // its answers have no body that could say anything
	}
	allowed := []int{http.StatusNotFound, http.StatusInternalServerError}
	if known {
		allowed = []int{http.StatusMethodNotAllowed, http.StatusInternalServerError}
	}
	if strings.Contains(req.URL.Path, "//") { // it has the route of something without a name, which is refused anyhow
		allowed = append(allowed, http.StatusBadRequest, http.StatusUnauthorized, http.StatusMethodNotAllowed,
			http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	}
	if strings.HasPrefix(req.URL.Path, "/admin/") { // strangers are not told what exists
		allowed = append(allowed, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
	}
	if req.Header.Get("Origin") != "" { // operators' pages are of the same origin
		allowed = append(allowed, http.StatusForbidden)
	}
	if !slices.Contains(allowed, resp.StatusCode) {
		return fmt.Errorf("no such route is documented, so the status must be one of %v", allowed)
	}
	if resp.StatusCode == http.StatusMethodNotAllowed && resp.Header.Get("Allow") == "" {
		return errors.New("a 405 must list the methods in Allow")
	}
	if resp.Header.Get(problem.RequestIDHeader) == "" {
		return errors.New("the header X-Request-Id is missing")
	}
	schema := c.doc.Components.Schemas["Problem"]
	content := openapi3.Content{problem.ContentType: openapi3.NewMediaType().WithSchemaRef(schema)}
	return c.verifyBody(content, req, resp, body)
}

func (c *Contract) verifyHeaders(documented openapi3.Headers, got http.Header) error {
	var errs []error
	for name, ref := range documented {
		h := ref.Value
		if err := c.verifyText(h.Schema, h.Required, got.Values(name)); err != nil {
			errs = append(errs, fmt.Errorf("the header %s %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// verifyText is for headers and parameters, which may be there once.
func (c *Contract) verifyText(schema *openapi3.SchemaRef, required bool, values []string) error {
	switch {
	case len(values) == 0 && required:
		return errors.New("is missing")
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return errors.New("is there more than once")
	}
	var v any = values[0]
	if schema.Value.Type.Is("integer") {
		if n, err := strconv.ParseInt(values[0], 10, 64); err == nil {
			v = json.Number(strconv.FormatInt(n, 10))
		}
	}
	if err := c.schemas.verify(schema, v); err != nil {
		return fmt.Errorf("is %q: %w", values[0], err)
	}
	return nil
}

func (c *Contract) verifyBody(content openapi3.Content, req *http.Request, resp *http.Response, body []byte) error {
	if req.Method == http.MethodHead {
		return nil
	}
	if len(content) == 0 {
		if len(body) > 0 {
			return errors.New("a body is not documented")
		}
		return nil
	}
	media, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	documented := content[media]
	if err != nil || documented == nil {
		return fmt.Errorf("the Content-Type %q is not documented", resp.Header.Get("Content-Type"))
	}
	if charset, given := params["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return fmt.Errorf("the charset is %s", charset)
	}
	if !isJSON(media) {
		return nil
	}
	if err := c.verifyJSON(documented.Schema, body); err != nil {
		return fmt.Errorf("the body does not fit: %w", err)
	}
	if media == problem.ContentType {
		return verifyProblem(req, resp, body)
	}
	return nil
}

func isJSON(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

func (c *Contract) verifyJSON(schema *openapi3.SchemaRef, data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after the JSON value")
	}
	return c.schemas.verify(schema, v)
}

// verifyProblem holds a problem against the rest of the exchange: a schema
// can't compare one thing with another.
func verifyProblem(req *http.Request, resp *http.Response, body []byte) error {
	var p problem.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	defined, ok := problem.Lookup(p.Code)
	if !ok {
		return fmt.Errorf("there is no problem %q", p.Code)
	}
	var errs []error
	same := func(what, got, want string) {
		if got != want {
			errs = append(errs, fmt.Errorf("the problem's %s is %q, want %q", what, got, want))
		}
	}
	same("type", p.Type, defined.Type)
	same("title", p.Title, defined.Title)
	same("status", strconv.Itoa(p.Status), strconv.Itoa(defined.Status))
	same("status", strconv.Itoa(p.Status), strconv.Itoa(resp.StatusCode))
	same("instance", p.Instance, req.URL.EscapedPath())
	same("requestId", p.RequestID, resp.Header.Get(problem.RequestIDHeader))
	retryAfter := ""
	if p.RetryAfterSeconds != nil {
		retryAfter = strconv.Itoa(*p.RetryAfterSeconds)
	}
	same("retryAfterSeconds", retryAfter, resp.Header.Get("Retry-After"))
	return errors.Join(errs...)
}

// verifyRequest is for requests that were granted: the document must not
// forbid what the server takes.
func (c *Contract) verifyRequest(o operation, inPath map[string]string, req *http.Request) error {
	for _, ref := range o.parameters {
		p := ref.Value
		var values []string
		switch p.In {
		case openapi3.ParameterInPath:
			values = []string{inPath[p.Name]}
		case openapi3.ParameterInQuery:
			values = req.URL.Query()[p.Name]
		case openapi3.ParameterInHeader:
			values = req.Header.Values(p.Name)
		}
		if p.Extensions["x-read"] != nil { // some rooms do not read it
			continue
		}
		if err := c.verifyText(p.Schema, p.Required, values); err != nil {
			return fmt.Errorf("the request was granted, but its parameter %s %w", p.Name, err)
		}
	}
	if err := c.verifyRequestBody(o.op.RequestBody, req); err != nil {
		return fmt.Errorf("the request was granted, but its body is not as documented: %w", err)
	}
	return nil
}

func (c *Contract) verifyRequestBody(documented *openapi3.RequestBodyRef, req *http.Request) error {
	data, known, err := sent(req)
	switch {
	case err != nil:
		return err
	case !known:
		return nil
	case len(data) == 0 && (documented == nil || !documented.Value.Required):
		return nil
	case documented == nil:
		return errors.New("none is documented")
	}
	media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	content := documented.Value.Content[media]
	if err != nil || content == nil {
		return fmt.Errorf("the Content-Type %q is not documented", req.Header.Get("Content-Type"))
	}
	return c.verifyJSON(content.Schema, data)
}

// sent is the body of a request once more, unless it was a stream.
func sent(req *http.Request) (data []byte, known bool, err error) {
	if req.GetBody == nil {
		return nil, req.Body == nil || req.Body == http.NoBody, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = body.Close() }()
	data, err = io.ReadAll(body)
	return data, true, err
}
