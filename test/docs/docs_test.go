// Package docs holds the documents against the code. What a document names (a
// test, a route, a setting, a key, a command, a file) must exist, and what has
// a list in a document must be on it.
//
// It does not judge whether a sentence is true; that is for whoever reads it.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// documents are all that a reader is given.
func documents(t *testing.T) []string {
	t.Helper()
	files := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	require.Greater(t, len(pages), 4)
	for _, page := range pages {
		files = append(files, "docs/"+filepath.Base(page))
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	return string(b)
}

// section is the text under a heading, up to the next one of its level or above.
func section(t *testing.T, file, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, file), "\n"+heading+"\n")
	require.True(t, found, "%s has no heading %q", file, heading)
	level := strings.Count(strings.Fields(heading)[0], "#")
	end := regexp.MustCompile(`(?m)^#{1,` + string(rune('0'+level)) + `} `).FindStringIndex(masked(text))
	if end != nil {
		text = text[:end[0]]
	}
	return text
}

// masked blanks fenced code out, where a comment of a shell looks like a heading.
func masked(text string) string {
	return fence.ReplaceAllStringFunc(text, func(code string) string { return strings.Repeat(" ", len(code)) })
}

// table reads the rows of the first table in a text, without its head.
func table(t *testing.T, text string) [][]string {
	t.Helper()
	rows := rowsOf(text)
	require.NotEmpty(t, rows, "no table in: %.200s", text)
	return rows
}

// rowsOf are the rows of all tables in a text: what follows a line of dashes.
func rowsOf(text string) [][]string {
	var rows [][]string
	inTable := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.HasPrefix(line, "|---"):
			inTable = true
		case inTable:
			var row []string
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
				row = append(row, strings.TrimSpace(cell))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// code takes the back quotes off.
func code(cell string) string { return strings.Trim(cell, "`") }

var testName = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`)

// allTests are the names of every test function in the tree.
func allTests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != root:
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && testName.MatchString(fn.Name.Name) {
				names[fn.Name.Name] = true
			}
		}
		return nil
	})
	require.NoError(t, err)
	return names
}

// exampleNames are there to show how tests are named.
var exampleNames = map[string]bool{"TestLateReleaseDoesNotFreeAnotherClaim": true, "TestMain": true}

func TestEveryTestThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	known := allTests(t)
	for _, file := range documents(t) {
		for _, name := range testName.FindAllString(read(t, file), -1) {
			require.True(t, known[name] || exampleNames[name], "%s names %s, which is no test", file, name)
		}
	}
}

func TestEveryFeatureHasATestOrSaysNotYet(t *testing.T) {
	t.Parallel()
	rows := table(t, read(t, "docs/features.md"))
	require.Greater(t, len(rows), 50)
	for _, row := range rows {
		require.Len(t, row, 2, "%v", row)
		require.True(t, testName.MatchString(row[1]) || strings.HasPrefix(row[1], "not yet"), "%s: %s", row[0], row[1])
	}
}

func TestEveryPromiseIsInTheReadmeWithATestOrNotYet(t *testing.T) {
	t.Parallel()
	shown := map[string]string{}
	for _, row := range rowsOf(section(t, "README.md", "## Promises")) {
		require.Len(t, row, 3, "%v", row)
		for id := range strings.SplitSeq(row[0], ", ") {
			shown[id] = row[2]
		}
	}
	ids := regexp.MustCompile(`(?m)^- (I\d+) `).FindAllStringSubmatch(section(t, "docs/architecture.md", "## 3. Promises"), -1)
	require.Len(t, shown, len(ids), "as many promises in README.md as in docs/architecture.md")
	for _, m := range ids {
		require.True(t, testName.MatchString(shown[m[1]]) || strings.HasPrefix(shown[m[1]], "not yet"), "promise %s: %q", m[1], shown[m[1]])
	}
}

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInSlug = regexp.MustCompile(`[^a-z0-9 _-]`)
	fence     = regexp.MustCompile("(?ms)^```.*?^```$")
)

// anchors are what links into a document can name.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(masked(text), -1) {
		out[strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return out
}

func TestRelativeLinksResolve(t *testing.T) {
	t.Parallel()
	for _, file := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			_, err := os.Stat(filepath.Join(root, target))
			require.NoError(t, err, "%s links to %s", file, m[1])
			if anchor != "" {
				require.True(t, anchors(read(t, target))[anchor], "%s links to %s, which has no such heading", file, m[1])
			}
		}
	}
}

// block finds fenced code of one language.
func block(language string) *regexp.Regexp {
	return regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$")
}

var (
	makeCall = regexp.MustCompile("(?m)(?:^|`)(?:\\w+=\\S+ )*make ([a-z0-9]+)\\b")
	target   = regexp.MustCompile(`(?m)^([a-z0-9]+):`)
)

func TestEveryMakeTargetExists(t *testing.T) {
	t.Parallel()
	targets := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	named := map[string]bool{}
	for _, file := range documents(t) {
		text := strings.ReplaceAll(read(t, file), "\n    ", "\n")
		for _, m := range makeCall.FindAllStringSubmatch(text, -1) {
			require.True(t, targets[m[1]], "%s says make %s", file, m[1])
			named[m[1]] = true
		}
	}
	require.Subset(t, named, map[string]bool{"run": true, "test": true, "check": true})
}

// sorted are the keys of a map in their order.
func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
