package spec_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/room"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(spec.YAML)
	require.NoError(t, err)
	return doc
}

func TestTheDocumentIsValidOpenAPI31(t *testing.T) {
	t.Parallel()
	doc := load(t)
	require.True(t, doc.IsOpenAPI31OrLater())
	require.NoError(t, doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater(), openapi3.EnableSchemaFormatValidation()))
}

func TestEveryObjectOfOursIsClosedAndNamesEveryField(t *testing.T) {
	t.Parallel()
	optional := map[string]bool{"Problem.errors": true, "NewRoom.settings": true, "Lane.boostSeconds": true,
		"NewCodes.lane": true, "NewCodes.uses": true, "NewCodes.count": true, "Revocation.id": true, "Revocation.batch": true}
	for name, ref := range load(t).Components.Schemas {
		s := ref.Value
		if !s.Type.Is("object") || len(s.Properties) == 0 || name == "CoherentPosition" {
			continue
		}
		require.NotNil(t, s.AdditionalProperties.Has, "%s: additionalProperties", name)
		require.False(t, *s.AdditionalProperties.Has, "%s: additionalProperties", name)
		if name == "RoomSettingsPatch" {
			continue
		}
		for field := range s.Properties {
			if !optional[name+"."+field] {
				require.Contains(t, s.Required, field, "%s: a field that is not required vanishes from JSON", name)
			}
		}
	}
}

// TestAnEmptyValueHasEveryRequiredField is the trap that the types are made to
// avoid: an optional field that is null must be written as null.
func TestAnEmptyValueHasEveryRequiredField(t *testing.T) {
	t.Parallel()
	doc := load(t)
	for name, v := range map[string]any{
		"Position": spec.Position{}, "RoomStatus": spec.RoomStatus{}, "LaneStatus": spec.LaneStatus{},
		"Order": spec.Order{}, "Item": spec.Item{}, "Health": spec.Health{}, "OrderRequest": spec.OrderRequest{},
	} {
		require.ElementsMatch(t, doc.Components.Schemas[name].Value.Required, fieldsOf(t, v), name)
	}
}

func TestTheTypesMadeByHandFitTheDocument(t *testing.T) {
	t.Parallel()
	doc := load(t)
	for name, v := range map[string]any{
		"Problem": problem.Problem{}, "FieldError": problem.FieldError{},
		"Room": room.Room{}, "RoomSettings": room.Settings{}, "Lane": room.Lane{},
		"Product": room.Product{}, "Change": room.Change{},
	} {
		require.ElementsMatch(t, doc.Components.Schemas[name].Value.Required, fieldsOf(t, v), name)
	}
}

// TestTheEnumsAreTheWordsOfThePackage keeps the document from missing a word
// that package queue gets later.
func TestTheEnumsAreTheWordsOfThePackage(t *testing.T) {
	t.Parallel()
	words := map[string][]any{}
	for _, file := range []string{"../../queue/queue.go", "../../queue/rules.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
				name, named := v.Type.(*ast.Ident)
				if lit, ok := v.Values[0].(*ast.BasicLit); ok && named && lit.Kind == token.STRING {
					word, err := strconv.Unquote(lit.Value)
					require.NoError(t, err)
					words[name.Name] = append(words[name.Name], word)
				}
			}
			return true
		})
	}
	doc := load(t)
	for _, name := range []string{"Status", "Outcome", "RoomState"} {
		require.ElementsMatch(t, words[name], doc.Components.Schemas[name].Value.Enum, name)
	}
}

func TestTheDefaultsOfTheDocumentAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	var defaults map[string]any
	data, err := json.Marshal(room.Defaults())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &defaults))
	for name, ref := range load(t).Components.Schemas["RoomSettings"].Value.Properties {
		documented, err := json.Marshal(ref.Value.Default)
		require.NoError(t, err)
		actual, err := json.Marshal(defaults[name])
		require.NoError(t, err)
		require.JSONEq(t, string(actual), string(documented), name)
	}
}

func TestEveryCodeIsDocumentedAtItsStatus(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{"method-not-allowed": true} // the answer of no operation
	for name, ref := range load(t).Components.Responses {
		media := ref.Value.Content.Get("application/problem+json")
		if media == nil || name == "Healthy" {
			continue
		}
		for _, code := range codesOf(media.Schema) {
			documented[code] = true
		}
	}
	for _, code := range problem.Codes() {
		require.True(t, documented[code], "%s is answered and not documented", code)
		delete(documented, code)
	}
	require.Empty(t, documented, "documented and never answered")
}

func TestEveryProblemStandsUnderItsOwnStatus(t *testing.T) {
	t.Parallel()
	for path, item := range load(t).Paths.Map() {
		for method, op := range item.Operations() {
			for status, ref := range op.Responses.Map() {
				media := ref.Value.Content["application/problem+json"]
				require.Equal(t, status >= "400", media != nil, "%s %s %s", method, path, status)
				if media == nil {
					continue
				}
				codes := codesOf(media.Schema)
				require.NotEmpty(t, codes)
				for _, code := range codes {
					require.Equal(t, status, strconv.Itoa(problem.New(code).Status), "%s %s: %s", method, path, code)
				}
			}
		}
	}
}

// codesOf finds the codes of a problem response, wherever the loader keeps
// what stands beside a $ref.
func codesOf(ref *openapi3.SchemaRef) []string {
	var codes []string
	for _, s := range append(openapi3.SchemaRefs{ref}, ref.Value.AllOf...) {
		if code := s.Value.Properties["code"]; code != nil {
			for _, v := range code.Value.Enum {
				codes = append(codes, v.(string))
			}
		}
	}
	return codes
}

// fieldsOf are the names that v has in JSON when all of it is empty.
func fieldsOf(t *testing.T, v any) []string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &fields))
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	return names
}

func TestTheDocumentIsServedAsItIs(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	rec := httptest.NewRecorder()
	spec.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/openapi.yaml", nil))
	require.Equal(t, 200, rec.Code)
	require.Equal(t, "application/yaml", rec.Header().Get("Content-Type"))
	require.Equal(t, string(file), rec.Body.String())
	etag := rec.Header().Get("ETag")
	require.Regexp(t, `^"[0-9a-f]{32}"$`, etag)

	for match, status := range map[string]int{
		etag: 304, "W/" + etag: 304, `"x", ` + etag: 304, "*": 304, `"x"`: 200, "": 200,
	} {
		rec, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/openapi.yaml", nil)
		r.Header.Set("If-None-Match", match)
		spec.Handler().ServeHTTP(rec, r)
		require.Equal(t, status, rec.Code, match)
		require.Equal(t, etag, rec.Header().Get("ETag"))
		if status == http.StatusNotModified {
			require.Empty(t, rec.Body.String())
			require.Empty(t, rec.Header().Get("Content-Type"))
		}
	}
}
