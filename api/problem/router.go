package problem

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

// methods are those that a route of ours can take.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Unrouted makes what a router says no to by itself into problems: a path that
// does not exist, and a method that the path does not take. A 405 must list
// those that it does, and chi tells its own handler only.
func Unrouted(mux *chi.Mux) {
	mux.NotFound(func(w http.ResponseWriter, r *http.Request) { Write(w, r, New("not-found")) })
	mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		for _, m := range methods {
			if mux.Match(chi.NewRouteContext(), m, r.URL.Path) {
				w.Header().Add("Allow", m)
			}
		}
		Write(w, r, New("method-not-allowed"))
	})
}
