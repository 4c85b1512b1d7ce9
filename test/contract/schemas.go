package contract

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas keeps what it has compiled: kin-openapi compiles a 3.1 schema at each
// use, which took 7 ms a response and would slow the tests with crowds down to
// nothing. OpenAPI 3.1 is JSON Schema 2020-12, so no translation is needed.
type schemas struct {
	components any // all named schemas, as JSON

	mu       sync.Mutex
	compiled map[*openapi3.SchemaRef]*jsonschema.Schema
}

// verify holds v, as encoding/json decodes it with UseNumber, against a schema.
func (s *schemas) verify(ref *openapi3.SchemaRef, v any) error {
	schema, err := s.compile(ref)
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

func (s *schemas) compile(ref *openapi3.SchemaRef) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := s.compiled[ref]; done != nil {
		return done, nil
	}
	schema, err := asJSON(ref)
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat() // a date-time has to be one
	// The schema stands beside the components, where its references point to.
	const name = "openapi.json"
	root := map[string]any{"components": map[string]any{"schemas": s.components}, "allOf": []any{schema}}
	if err := compiler.AddResource(name, root); err != nil {
		return nil, fmt.Errorf("add schema: %w", err)
	}
	done, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	s.compiled[ref] = done
	return done, nil
}

// asJSON is v as encoding/json decodes what it encodes.
func asJSON(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(data, &out)
	return out, err
}
