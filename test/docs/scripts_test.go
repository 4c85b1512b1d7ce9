package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quoted are the texts in double quotes.
func quoted(s string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(s, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestTheKeysAreThoseOfTheStoreInTheirOrder(t *testing.T) {
	t.Parallel()
	parts := regexp.MustCompile(`(?s)var parts = \[\.\.\.\]string\{(.*?)\n\}`).FindStringSubmatch(read(t, "queue/redisstore/keys.go"))
	require.Len(t, parts, 2)
	var documented []string
	for _, row := range table(t, section(t, "docs/architecture.md", "## 5. Redis")) {
		documented = append(documented, code(row[0]))
	}
	require.Equal(t, quoted(parts[1]), documented)
}

// flags are what scripts.go calls the three kinds, and what the document does.
var flags = map[string]string{
	"refusedWhenFull": "refused when full", "allowedWhenFull": "allowed when full", "readsOnly": "reads only",
}

// scripts are the scripts that have a file of their own, with their flags.
func scripts(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{"raise": nil}
	for _, m := range regexp.MustCompile(`script\("(\w+)", (\w+)`).FindAllStringSubmatch(read(t, "queue/redisstore/scripts.go"), -1) {
		require.Contains(t, flags, m[2])
		out[m[1]] = append(out[m[1]], flags[m[2]])
	}
	require.Greater(t, len(out), 10)
	return out
}

func TestEveryScriptHasItsSectionAndNoOther(t *testing.T) {
	t.Parallel()
	text := section(t, "docs/architecture.md", "## 6. Scripts")
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(text, -1) {
		documented = append(documented, m[1])
	}
	known := scripts(t)
	require.Len(t, documented, len(known))
	for name, kinds := range known {
		require.Contains(t, documented, name)
		about := strings.ToLower(unwrapped(section(t, "docs/architecture.md", "### "+name)))
		for _, kind := range kinds {
			require.Contains(t, about, kind, "script %s", name)
		}
	}
}

// unwrapped joins the lines of a text.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// helpers are functions of the shared parts that answer.
var helpers = map[string]string{
	"unbegun()": "INIT", "other_generation(": "GEN", "stale_step(": "STALE", "standing(m": "OK", "standing(member": "OK",
}

func TestEveryReplyWordIsInTheSectionOfItsScript(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`(?:reply\(|return \{ )(?:more and )?'([A-Z_]+)'(?: or '([A-Z]+)')?`)
	for name := range scripts(t) {
		source := read(t, filepath.Join("queue/redisstore/lua", name+".lua"))
		var words []string
		for _, m := range word.FindAllStringSubmatch(source, -1) {
			words = append(words, m[1:]...)
		}
		for _, m := range regexp.MustCompile(`more and '([A-Z]+)' or '([A-Z]+)'`).FindAllStringSubmatch(source, -1) {
			words = append(words, m[1:]...)
		}
		for call, w := range helpers {
			if strings.Contains(source, call) {
				words = append(words, w)
			}
		}
		about := section(t, "docs/architecture.md", "### "+name)
		for _, w := range slices.Compact(words) {
			if w != "" {
				require.Regexp(t, `\b`+w+`\b`, about, "script %s answers %s", name, w)
			}
		}
	}
}

func TestEveryFieldOfConfAndStateIsDocumented(t *testing.T) {
	t.Parallel()
	_, text, found := strings.Cut(section(t, "docs/architecture.md", "## 5. Redis"), "`conf` has: ")
	require.True(t, found)
	conf, state, found := strings.Cut(text, "`state` has: ")
	require.True(t, found)
	state, _, _ = strings.Cut(state, "\n\n")
	named := func(text, field string) bool {
		return regexp.MustCompile("`" + field + "(?:0|_\\*)?`").MatchString(text)
	}

	written := regexp.MustCompile(`\{"(\w+)"(?:,| \+)`).FindAllStringSubmatch(read(t, "queue/redisstore/configure.go"), -1)
	require.Greater(t, len(written), 20)
	for _, m := range written {
		require.True(t, named(conf, m[1]), "conf has %s", m[1])
	}
	files, err := filepath.Glob(filepath.Join(root, "queue/redisstore/lua/*.lua"))
	require.NoError(t, err)
	seen := 0
	for _, file := range files {
		for line := range strings.Lines(read(t, strings.TrimPrefix(file, root+"/"))) {
			fields, _, _ := strings.Cut(line, "CONF,")
			_, fields, _ = strings.Cut(fields, "STATE,")
			for _, m := range regexp.MustCompile(`'([a-z][a-z_]+)\d?'`).FindAllStringSubmatch(fields, -1) {
				require.True(t, named(state, m[1]), "%s has %s: %s", file, m[1], line)
				seen++
			}
		}
	}
	require.Greater(t, seen, 30)
}

func TestEveryTableOfTheSchemaIsDocumented(t *testing.T) {
	t.Parallel()
	var made, documented []string
	files, err := filepath.Glob(filepath.Join(root, "migrations/*.sql"))
	require.NoError(t, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`CREATE TABLE (\w+)`).FindAllStringSubmatch(string(b), -1) {
			made = append(made, m[1])
		}
	}
	for _, row := range table(t, section(t, "docs/architecture.md", "## 10. Postgres")) {
		documented = append(documented, code(row[0]))
	}
	require.ElementsMatch(t, made, documented)
}

func TestEveryPackageIsOnTheMap(t *testing.T) {
	t.Parallel()
	text := section(t, "docs/architecture.md", "## 4. Packages")
	for _, dir := range regexp.MustCompile(`(?m)^\t\{"([a-z/]+)"`).FindAllStringSubmatch(read(t, "test/arch_test.go"), -1) {
		// What lies under api/ and test/ is named in the line of its parent.
		name := dir[1]
		if parent, child, nested := strings.Cut(name, "/"); nested && (parent == "test") {
			name = child
		}
		require.Contains(t, text, name)
	}
}
