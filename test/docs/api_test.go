package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/test/contract"
)

// routes are those of openapi.yaml, as "GET /v1/orders/{id}".
func routes(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, r := range contract.Load(t).Routes() {
		out = append(out, r.Method+" "+r.Pattern)
	}
	return out
}

func TestTheReadmeHasEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	var named []string
	call := regexp.MustCompile("`((?:GET|POST|PUT|PATCH|DELETE) /\\S+)`")
	for _, row := range rowsOf(section(t, "README.md", "## API")) {
		for _, m := range call.FindAllStringSubmatch(row[0], -1) {
			named = append(named, m[1])
		}
	}
	require.ElementsMatch(t, routes(t), named)
}

func TestEveryPathThatADocumentNamesIsARoute(t *testing.T) {
	t.Parallel()
	var patterns []string
	for _, r := range routes(t) {
		_, path, _ := strings.Cut(r, " ")
		patterns = append(patterns, "^"+regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)+"$")
	}
	path := regexp.MustCompile(`/(?:v1|admin/v1)/[\w/{}$.-]*[\w}]`)
	for _, file := range documents(t) {
		text := read(t, file)
		if file == "docs/clients.md" || file == "docs/pace.md" {
			text = masked(text) // what is in there is run
		}
		for _, p := range path.FindAllString(text, -1) {
			known := slices.ContainsFunc(patterns, func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(p) })
			require.True(t, known, "%s names %s, which is no route", file, p)
		}
	}
}

func TestEveryProblemOfTheReadmeExists(t *testing.T) {
	t.Parallel()
	codes := problem.Codes()
	word := regexp.MustCompile("`([a-z]+(?:-[a-z]+)*)`")
	rows := rowsOf(section(t, "README.md", "## API"))
	for _, row := range rows {
		if !strings.Contains(row[0], "/v1/orders") && !strings.Contains(row[0], "/v1/rooms") || strings.Contains(row[0], "/admin/") {
			continue
		}
		require.Len(t, row, 3)
		found := word.FindAllStringSubmatch(row[2], -1)
		require.NotEmpty(t, found, "%v", row)
		for _, m := range found {
			require.Contains(t, codes, m[1], "%v", row)
		}
	}
}

func TestEveryMetricThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	metric := regexp.MustCompile(`\blinekeeper_([a-z_]+)\b`)
	var source strings.Builder
	files, err := filepath.Glob("../../internal/telemetry/*.go")
	require.NoError(t, err)
	for _, file := range files {
		source.WriteString(read(t, strings.TrimPrefix(file, "../../")))
	}
	for _, file := range documents(t) {
		text := strings.ReplaceAll(read(t, file), "__Host-linekeeper_", "")
		for _, m := range metric.FindAllStringSubmatch(text, -1) {
			// A histogram has series of its name and these.
			name := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(m[1], "")
			require.Contains(t, source.String(), `"`+name+`"`, "%s names the metric %s", file, m[0])
		}
	}
}
