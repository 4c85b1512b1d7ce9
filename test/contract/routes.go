package contract

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
)

// Route is one operation of the document, or one handler of a router.
type Route struct {
	Method  string
	Pattern string // such as /v1/rooms/{room}
}

type operation struct {
	Route
	op         *openapi3.Operation
	parameters openapi3.Parameters // of the path and of the operation
}

// Public tells whether a route belongs on the public listener.
func Public(r Route) bool { return !Admin(r) && !Metrics(r) }

// Admin tells whether a route belongs to the operators' API.
func Admin(r Route) bool { return strings.HasPrefix(r.Pattern, "/admin/") }

// Metrics tells whether a route is the one for Prometheus.
func Metrics(r Route) bool { return r.Pattern == "/metrics" }

// Routes are all routes of the document, by pattern and method.
func (c *Contract) Routes() []Route {
	routes := make([]Route, len(c.routes))
	for i, o := range c.routes {
		routes[i] = o.Route
	}
	slices.SortFunc(routes, func(a, b Route) int {
		return strings.Compare(a.Pattern+" "+a.Method, b.Pattern+" "+b.Method)
	})
	return routes
}

// CompareRoutes fails the test unless the router has exactly those routes of
// the document that in selects: a route of the router that in leaves out, such
// as an operator's one on the public listener, is flagged as well.
func (c *Contract) CompareRoutes(t testing.TB, router chi.Routes, in func(Route) bool) {
	t.Helper()
	if err := c.Compare(router, in); err != nil {
		t.Errorf("the router and openapi.yaml differ:\n%v", err)
	}
}

// Compare is CompareRoutes with the differences as an error.
func (c *Contract) Compare(router chi.Routes, in func(Route) bool) error {
	documented := map[Route]bool{}
	for _, r := range c.Routes() {
		if in(r) {
			documented[r] = true
		}
	}
	var differences []error
	err := chi.Walk(router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		r := Route{method, plain(pattern)}
		if !documented[r] {
			differences = append(differences, fmt.Errorf("%s %s is served and not documented here", r.Method, r.Pattern))
		}
		delete(documented, r)
		return nil
	})
	for r := range documented {
		differences = append(differences, fmt.Errorf("%s %s is documented and not served", r.Method, r.Pattern))
	}
	return errors.Join(append(differences, err)...)
}

var expression = regexp.MustCompile(`\{([^:{}]+):[^}]*\}`)

// plain is a pattern of chi as OpenAPI writes it: without the expressions of
// its parameters, and without the slash that a sub-router's root has.
func plain(pattern string) string {
	pattern = expression.ReplaceAllString(pattern, "{$1}")
	if len(pattern) > 1 {
		pattern = strings.TrimSuffix(pattern, "/")
	}
	return pattern
}

// find is the operation that a request is meant for, and whether the path is
// documented at all. Segments are compared as they were sent, like chi does.
func (c *Contract) find(req *http.Request) (operation, map[string]string, bool) {
	known := false
	for _, o := range c.routes {
		params, ok := match(o.Pattern, req.URL.EscapedPath())
		if !ok {
			continue
		}
		known = true
		if o.Method == req.Method {
			return o, params, true
		}
	}
	return operation{}, nil, known
}

func match(pattern, path string) (params map[string]string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	params = map[string]string{}
	for i, segment := range want {
		name, isParam := strings.CutPrefix(segment, "{")
		switch {
		case isParam && got[i] != "":
			params[strings.TrimSuffix(name, "}")] = got[i]
		case segment != got[i]:
			return nil, false
		}
	}
	return params, true
}
