package contract

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// TestEverySchemaCompiles keeps a broken schema from showing only once an
// answer needs it.
func TestEverySchemaCompiles(t *testing.T) {
	t.Parallel()
	c := Load(t)
	compiles := func(at string, ref *openapi3.SchemaRef) {
		_, err := c.schemas.compile(ref)
		require.NoError(t, err, at)
	}
	for name, ref := range c.doc.Components.Schemas {
		compiles(name, ref)
	}
	for _, o := range c.routes {
		at := o.Method + " " + o.Pattern
		for _, p := range o.parameters {
			compiles(at, p.Value.Schema)
		}
		if body := o.op.RequestBody; body != nil {
			for _, media := range body.Value.Content {
				compiles(at, media.Schema)
			}
		}
		for status, r := range o.op.Responses.Map() {
			for _, h := range r.Value.Headers {
				compiles(at+" "+status, h.Value.Schema)
			}
			for _, media := range r.Value.Content {
				compiles(at+" "+status, media.Schema)
			}
		}
	}
}
