package problem

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// style is inlined, so that the page needs nothing else; the policy names it by
// hash, so that nothing else can be slipped in.
const style = `body{font:1.1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem;color:#222;background:#fff}code{color:#666}`

var page = template.Must(template.New("problem").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>{{.Title}}</title><style>` + style + `</style></head>
<body><main><p><code>{{.Status}} {{.Code}}</code></p><h1>{{.Title}}</h1><p>{{.Explanation}}</p></main></body>
</html>
`))

// explanation is what the page of one code says, in its JSON form.
type explanation struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Status      int    `json:"status"`
	Code        string `json:"code"`
	Explanation string `json:"explanation"`
}

// Handler serves TypePrefix{slug}: what a code means, as a page for browsers
// (whoever lists text/html) and as JSON for everybody else.
func Handler() http.Handler {
	sum := sha256.Sum256([]byte(style))
	policy := "default-src 'none'; frame-ancestors 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, ok := lookUp(strings.TrimPrefix(r.URL.Path, TypePrefix))
		if !ok {
			Write(w, r, New("not-found").WithDetail("There is no problem of this name."))
			return
		}
		h := w.Header()
		h.Add("Vary", "Accept") // beside what others have said it varies by
		h.Set("Cache-Control", "public, max-age=3600")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		contentType, body := render(e, wantsPage(r.Header.Values("Accept")))
		h.Set("Content-Type", contentType)
		_, _ = w.Write(body)
	})
}

func render(e entry, asPage bool) (contentType string, body []byte) {
	x := explanation{Type: TypePrefix + e.code, Title: e.title, Status: e.status, Code: e.code, Explanation: e.about}
	var b bytes.Buffer
	// Neither can fail: the data are strings and a number, and the writer is memory.
	if asPage {
		_ = page.Execute(&b, x)
		return "text/html; charset=utf-8", b.Bytes()
	}
	_ = json.NewEncoder(&b).Encode(x)
	return "application/json", b.Bytes()
}

// wantsPage tells whether text/html is asked for by name and no JSON is liked
// better. Browsers do name it; curl and HTTP libraries say */* or nothing.
func wantsPage(accept []string) bool {
	html, data := 0.0, 0.0
	for _, part := range strings.Split(strings.Join(accept, ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if s, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(s, 64); err != nil {
				continue
			}
		}
		switch media {
		case "text/html", "application/xhtml+xml":
			html = max(html, q)
		case "application/json", ContentType:
			data = max(data, q)
		}
	}
	return html > 0 && html >= data
}
