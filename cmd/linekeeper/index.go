package main

import (
	"fmt"
	"net/http"
)

// withIndex puts the index, if there is one, in front of the public API. It is
// for dev: in production the root belongs to whoever runs the shop.
func (s *server) withIndex(next http.Handler) http.Handler {
	if s.index == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && r.Method == http.MethodGet {
			s.index.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// links lists what there is to look at.
func links(operators string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Linekeeper</title><h1>Linekeeper</h1><ul>
<li><a href="/docs">The API, to read and to try</a>
<li><a href="/openapi.yaml">Its OpenAPI document</a>
<li><a href="/v1/rooms/default">The room <code>default</code></a>
<li><a href="/readyz">Readiness</a>
<li>Operators: <code>http://%[1]s/admin/v1</code>, <a href="http://%[1]s/metrics">metrics</a>
</ul></html>
`, operators)
	})
}
