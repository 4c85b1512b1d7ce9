package api

import (
	"net/http"
	"slices"

	"github.com/go-chi/cors"
)

// preflightSeconds is how long a browser may keep an answer to its question
// whether it may ask.
const preflightSeconds = 600

// What a page of another origin may send, and may read, beside what browsers let
// every page send and read. X-Member-Id and X-Member-Lane are not for pages: a
// proxy sets them.
var (
	pageSends = []string{
		"Authorization", "Content-Type", ticketHeader, tokenHeader, codeHeader, workHeader, challengeHeader, "Idempotency-Key", "X-Request-Id", "If-None-Match",
	}
	pageReads = []string{"ETag", "Idempotency-Replayed", "Location", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id"}
)

// crossOrigin lets pages of exactly these origins call the API, with cookies.
// Without any it does nothing: browsers then keep all other origins out. An
// origin that is not listed is never repeated, and all are never allowed.
func crossOrigin(origins []string) func(http.Handler) http.Handler {
	if len(origins) == 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	return cors.Handler(cors.Options{
		// The library's own list ignores case and has wildcards.
		AllowOriginFunc:  func(_ *http.Request, origin string) bool { return slices.Contains(origins, origin) },
		AllowedMethods:   []string{http.MethodGet, http.MethodPost, http.MethodDelete},
		AllowedHeaders:   pageSends,
		ExposedHeaders:   pageReads,
		AllowCredentials: true,
		MaxAge:           preflightSeconds,
	})
}
