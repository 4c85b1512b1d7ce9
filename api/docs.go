package api

import (
	"io/fs"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/swaggest/swgui/v5/static"
	"github.com/swaggest/swgui/v5emb"

	"github.com/linekeeper/linekeeper/api/problem"
)

// docs is the page that shows the OpenAPI document. All that it needs is in the
// binary: it works without internet.
var docs = v5emb.New("Linekeeper", "/openapi.yaml", "/docs/")

// docsFiles serves the page's files, which are kept compressed, and says of all
// others that they are not there in our own way.
var docsFiles = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "file")
	for _, suffix := range []string{"", ".gz", ".br"} {
		if f, err := fs.Stat(static.FS, name+suffix); err == nil && !f.IsDir() {
			docs.ServeHTTP(w, r)
			return
		}
	}
	problem.Write(w, r, problem.New("not-found"))
})
