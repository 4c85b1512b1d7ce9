package contract

import (
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// RequestHeaders are the headers of ours that a request to r may have, by the
// document: its parameters, and those that carry credentials.
func (c *Contract) RequestHeaders(r Route) []string {
	var names []string
	for _, o := range c.routes {
		if o.Route != r {
			continue
		}
		for _, p := range o.parameters {
			if p.Value.In == openapi3.ParameterInHeader {
				names = append(names, p.Value.Name)
			}
		}
		for _, one := range *o.op.Security {
			for scheme := range one {
				names = append(names, c.credentialHeader(scheme))
			}
		}
	}
	return unique(names)
}

func (c *Contract) credentialHeader(scheme string) string {
	s := c.doc.Components.SecuritySchemes[scheme].Value
	switch {
	case s.Type == "http":
		return "Authorization"
	case s.In == openapi3.ParameterInHeader:
		return s.Name
	}
	return ""
}

// ResponseHeaders are the headers that an answer of r may have, by the document.
func (c *Contract) ResponseHeaders(r Route) []string {
	var names []string
	for _, o := range c.routes {
		if o.Route != r {
			continue
		}
		for _, response := range o.op.Responses.Map() {
			for name := range response.Value.Headers {
				names = append(names, name)
			}
		}
	}
	return unique(names)
}

// unique sorts the names, in the spelling of net/http and each once, without
// empty ones.
func unique(names []string) []string {
	for i, name := range names {
		names[i] = http.CanonicalHeaderKey(name)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return slices.Compact(names)
}
