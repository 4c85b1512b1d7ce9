package problem

import (
	"context"
	"crypto/rand"
	"net/http"
)

// RequestIDHeader carries the id of a request, both ways.
const RequestIDHeader = "X-Request-Id"

type requestIDKey struct{}

// RequestIDs gives each request an id: the client's own, if it is one to 64
// letters, digits, dots, dashes or underscores, or else a new one of 128 random
// bits or more. Anything else is not taken over, because the id goes into logs
// and the audit.
func RequestIDs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(RequestIDHeader)
		if !sane(id) {
			id = rand.Text()
		}
		w.Header().Set(RequestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

// RequestID is the id that RequestIDs gave r, or nothing outside of it.
func RequestID(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

func sane(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
