// Package contract holds HTTP exchanges against api/spec/openapi.yaml, so that
// no test passes with an answer that the document does not have.
//
// It promises to flag a status, a header, a content type or a field that is
// not documented or is missing, a value that does not fit its schema, a problem
// that contradicts itself, a request that was accepted although the document
// forbids it, and a route that only one side knows.
//
//	c := contract.Load(t)
//	client.Transport = c.Transport(t, http.DefaultTransport)
//	c.CompareRoutes(t, router, contract.Public)
//
// It makes random requests from the document as well, good ones and bent ones.
//
// It does not judge whether an answer is the right one: the tests do.
package contract

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
)

// Contract is the document, ready to check against. It may be shared by tests
// that run in parallel.
type Contract struct {
	doc     *openapi3.T
	routes  []operation
	schemas *schemas
}

// Load reads the document that is built into package spec.
func Load(t testing.TB) *Contract {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(spec.YAML)
	require.NoError(t, err, "load openapi.yaml")
	components, err := asJSON(doc.Components.Schemas)
	require.NoError(t, err, "read the schemas")
	c := &Contract{doc: doc, schemas: &schemas{components: components, compiled: map[*openapi3.SchemaRef]*jsonschema.Schema{}}}
	for pattern, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			c.routes = append(c.routes, operation{Route{method, pattern}, op, append(item.Parameters, op.Parameters...)})
		}
	}
	return c
}

// Check fails the test if the exchange is not as documented. body is that of
// the response, read to its end. The request's own body is looked at only where
// req.GetBody has it, as with every body that is not a stream. It may be called from any goroutine while the test runs.
func (c *Contract) Check(t testing.TB, req *http.Request, resp *http.Response, body []byte) {
	t.Helper()
	if err := c.Verify(req, resp, body); err != nil {
		// Not FailNow: that is for the test's own goroutine only.
		t.Errorf("not in openapi.yaml: %s %s answered %d: %v\nbody: %.2000s", req.Method, req.URL.Path, resp.StatusCode, err, body)
	}
}

// Transport passes requests on to next and checks every answer. Answers are
// read whole before the client sees them.
func (c *Contract) Transport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		// An answer that broke off is the caller's to see, as it came.
		if err != nil {
			resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
			return resp, nil
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		c.Check(t, req, resp, body)
		return resp, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
