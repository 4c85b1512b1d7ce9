package api

import (
	"net/http"
)

// jwks is GET /.well-known/jwks.json. It may be kept for five minutes: a new key
// is there longer before it signs.
func (a *API) jwks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=300")
	w.Header().Set("Content-Type", "application/jwk-set+json")
	_, _ = w.Write(a.Ring.JWKS())
}
