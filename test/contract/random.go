package contract

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Maker makes random requests from the document: good ones, and ones in which
// anything may be bent, from the path to the last byte of the body. One seed
// makes the same requests. It may be used by one goroutine at a time.
type Maker struct {
	c      *Contract
	rng    *rand.Rand
	routes []operation
	// Known are values that mean something to the server, by the name of the
	// parameter, header or property they may stand in.
	Known map[string][]string
}

// NewMaker makes requests to the routes that in selects.
func (c *Contract) NewMaker(seed uint64, in func(Route) bool) *Maker {
	m := &Maker{c: c, rng: rand.New(rand.NewPCG(seed, 0)), Known: map[string][]string{}}
	for _, o := range c.routes {
		if in(o.Route) {
			m.routes = append(m.routes, o)
		}
	}
	// The document is read in no order.
	slices.SortFunc(m.routes, func(a, b operation) int { return strings.Compare(a.Pattern+a.Method, b.Pattern+b.Method) })
	return m
}

// one in n.
func (m *Maker) one(n int) bool { return m.rng.IntN(n) == 0 }

// pick is any of them.
func pick[T any](m *Maker, of []T) T { return of[m.rng.IntN(len(of))] }

// Request makes the next request to the server at base.
func (m *Maker) Request(base string) *http.Request {
	o := pick(m, m.routes)
	method, path := o.Method, m.path(o)
	if m.one(20) {
		method = pick(m, []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PURGE", "post"})
	}
	if m.one(20) {
		path = m.bentPath(path)
	}
	body, given := m.body(o)
	var content io.Reader
	switch {
	case given && (o.op.RequestBody == nil || method != o.Method): // a stream: the document does not judge what is not read
		content = io.MultiReader(bytes.NewReader(body))
	case given:
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequest(method, base+path+m.query(o), content)
	if err != nil { // bent beyond what a client can send
		return m.Request(base)
	}
	m.headers(o, req.Header)
	if given {
		m.mediaType(o, req.Header)
	}
	return req
}

func (m *Maker) path(o operation) string {
	segments := strings.Split(o.Pattern, "/")
	for i, s := range segments {
		if name, isParam := strings.CutPrefix(s, "{"); isParam {
			segments[i] = url.PathEscape(m.text(strings.TrimSuffix(name, "}")))
		}
	}
	return strings.Join(segments, "/")
}

// bentPath is a path that some router might take for the one it was.
func (m *Maker) bentPath(path string) string {
	return pick(m, []string{
		strings.ToUpper(path), path + "/", "/" + path, strings.Replace(path, "/", "//", 2), path + "/..", path + "%2f", path + "%00", path + ";a=b",
		strings.Replace(path, "/v1", "/./v1", 1), strings.Replace(path, "/v1/", "/v1%2f", 1), path + "%0d%0aX-Evil:%201", path + ".json", "/nowhere",
	})
}

func (m *Maker) query(o operation) string {
	q := url.Values{}
	for _, ref := range o.parameters {
		if p := ref.Value; p.In == openapi3.ParameterInQuery && !m.one(3) {
			q.Add(p.Name, m.parameter(p))
			if m.one(15) {
				q.Add(p.Name, m.text(p.Name))
			}
		}
	}
	if m.one(15) {
		q.Set(pick(m, nasty), pick(m, nasty))
	}
	text := "?" + q.Encode()
	if m.one(30) {
		text += pick(m, []string{"&limit=%zz", ";a", "&a=%", "&=&="})
	}
	return text
}

func (m *Maker) parameter(p *openapi3.Parameter) string {
	if m.one(4) {
		return m.text(p.Name)
	}
	b, _ := json.Marshal(m.value(p.Schema, p.Name))
	return strings.Trim(string(b), `"`)
}

func (m *Maker) headers(o operation, h http.Header) {
	for _, ref := range o.parameters {
		if p := ref.Value; p.In == openapi3.ParameterInHeader && !m.one(3) {
			m.header(h, p.Name)
		}
	}
	for _, schemes := range *o.op.Security {
		for scheme := range schemes {
			if !m.one(6) {
				m.header(h, m.c.credentialHeader(scheme))
			}
		}
	}
	for range m.rng.IntN(3) {
		m.header(h, pick(m, []string{"X-Request-Id", "X-HTTP-Method-Override", "X-Forwarded-For", "Cookie", "Accept", "Origin", "If-None-Match",
			"If-Match", "X-Member-Id", "X-Queue-Ticket", "X-Entry-Token", "Authorization", "Idempotency-Key", "X-Original-URL", "Traceparent", "Range"}))
	}
}

// header sets a header to something; sometimes twice.
func (m *Maker) header(h http.Header, name string) {
	for range 1 + m.rng.IntN(11)/10 {
		if v := m.text(name); sendable(v) {
			h.Add(name, v)
		}
	}
}

// sendable tells what the client of net/http does not refuse to send.
func sendable(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// body is one that fits the document, mostly; or none.
func (m *Maker) body(o operation) (body []byte, given bool) {
	if o.op.RequestBody == nil {
		return []byte(pick(m, nastyBodies)), m.one(10)
	}
	if m.one(15) {
		return nil, false
	}
	content := o.op.RequestBody.Value.Content
	body, _ = json.Marshal(m.value(content[mediaTypes(o)[0]].Schema, ""))
	switch m.rng.IntN(8) {
	case 0:
		return []byte(pick(m, nastyBodies)), true
	case 1:
		return m.bent(body), true
	}
	return body, true
}

// bent is a body with one thing about it changed.
func (m *Maker) bent(body []byte) []byte {
	at := m.rng.IntN(len(body) + 1)
	switch m.rng.IntN(5) {
	case 0:
		return body[:at]
	case 1:
		return append(bytes.Clone(body), pick(m, nastyBodies)...)
	case 2:
		return bytes.Replace(body, []byte("{"), []byte(`{"`+m.text("")+`":1,`), 1)
	case 3:
		return bytes.Replace(body, []byte(":"), []byte(":"+pick(m, nastyBodies)+","), 1)
	}
	return append(append(bytes.Clone(body[:at]), pick(m, nasty)...), body[at:]...)
}

// mediaTypes are those of an operation's body, in one order.
func mediaTypes(o operation) []string {
	return slices.Sorted(maps.Keys(o.op.RequestBody.Value.Content))
}

func (m *Maker) mediaType(o operation, h http.Header) {
	types := []string{"application/json"}
	if o.op.RequestBody != nil {
		types = mediaTypes(o)
	}
	if m.one(12) {
		types = []string{"", "text/plain", "application/json; charset=latin1", "application/json;", "application/JSON", "multipart/form-data; boundary=x", "*/*"}
	}
	h.Set("Content-Type", pick(m, types))
}
