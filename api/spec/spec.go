// Package spec is the contract of the HTTP API: openapi.yaml, which is written
// by hand and decides, and the types made from it.
//
// It promises that a field which the contract lists as required is in the JSON
// of its type, as null where it is unknown: such fields are pointers, slices or
// maps without omitempty. (A slice that must not be null has to be made.)
//
// It does not check anything at run time; test/contract holds every answer of
// every test against the document.
package spec

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strings"
)

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config oapi-codegen.yaml openapi.yaml

// YAML is the document as it is served. Do not write to it.
//
//go:embed openapi.yaml
var YAML []byte

// Handler serves the document, with an ETag that changes when it does.
func Handler() http.Handler {
	sum := sha256.Sum256(YAML)
	etag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("ETag", etag)
		h.Set("Cache-Control", "public, max-age=300")
		if matches(r.Header.Values("If-None-Match"), etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.Set("Content-Type", "application/yaml")
		_, _ = w.Write(YAML) // the client may be gone
	})
}

// matches compares as If-None-Match asks for: weakly, and with a list.
func matches(headers []string, etag string) bool {
	for _, tag := range strings.Split(strings.Join(headers, ","), ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == "*" || tag == etag {
			return true
		}
	}
	return false
}
