package problem

import (
	"cmp"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// methods are those that a route of ours can take.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Unrouted makes what a router says no to by itself into problems: a path that
// does not exist, and a method that the path does not take. A 405 must list
// those that it does, and chi tells its own handler only; a method that chi does
// not know is a 405 to it on any path.
func Unrouted(mux *chi.Mux) {
	notFound := func(w http.ResponseWriter, r *http.Request) { Write(w, r, New("not-found")) }
	mux.NotFound(notFound)
	mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		path := cmp.Or(r.URL.RawPath, r.URL.Path) // as chi routes
		for _, m := range methods {
			if mux.Match(chi.NewRouteContext(), m, path) {
				w.Header().Add("Allow", m)
			}
		}
		if w.Header().Get("Allow") == "" {
			notFound(w, r)
			return
		}
		Write(w, r, New("method-not-allowed"))
	})
}
