package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reports are the numbers of the reports about other systems that are tried
// here. They have gaps.
var reports = []int{
	1, 2, 4, 6, 8, 10, 13, 15, 18, 19, 20, 22, 24, 26, 28, 29, 30, 32, 33, 34, 36, 38,
	40, 41, 42, 44, 46, 48, 50, 52, 53, 55, 56, 58, 59, 61, 63, 64, 65, 67, 69, 71, 73, 74, 76,
}

// testIn is a test with the directory of its package, as documents name it where
// it matters which package it is.
var testIn = regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)`")

// testsWithTheirText are the tests of the tree, by directory and name, with their
// comments and their code.
func testsWithTheirText(t *testing.T) map[string]string {
	t.Helper()
	tests := map[string]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != root:
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			from := fn.Pos()
			if fn.Doc != nil {
				from = fn.Doc.Pos()
			}
			tests[filepath.ToSlash(dir)+"."+fn.Name.Name] = string(text[set.Position(from).Offset:set.Position(fn.End()).Offset])
		}
		return err
	})
	require.NoError(t, err)
	return tests
}

// namesCase tells whether a test says which report it follows: `case 28` or
// `cases 27 and 28` in a comment, or TestCase28.
func namesCase(text, n string) bool {
	return regexp.MustCompile(`(?i)\bcases? (\d+(,| and) )*` + n + `\b|TestCase` + n + `[A-Z]`).MatchString(text)
}

func TestEveryReportAboutAnotherSystemIsTriedByTestsThatNameIt(t *testing.T) {
	t.Parallel()
	tests := testsWithTheirText(t)
	rows := table(t, section(t, "docs/verification.md", "## Reports about other systems"))
	var listed []string
	for _, row := range rows {
		require.Len(t, row, 4, "%v", row)
		n, named := row[0], testIn.FindAllStringSubmatch(row[3], -1)
		listed = append(listed, n)
		require.NotEmpty(t, named, "case %s has no test", n)
		require.Len(t, testName.FindAllString(row[3], -1), len(named), "case %s: a test without its package", n)
		for _, m := range named {
			text, known := tests[m[1]+"."+m[2]]
			require.True(t, known, "case %s names %s in %s, which is no test", n, m[2], m[1])
			require.True(t, namesCase(text, n), "%s does not say that it is about case %s", m[2], n)
		}
	}
	require.Equal(t, strings.Fields(strings.Trim(fmt.Sprint(reports), "[]")), listed, "each report once, in order")
}

func TestWhatTheScriptsHaveToBearIsTried(t *testing.T) {
	t.Parallel()
	tests := testsWithTheirText(t)
	rows := table(t, section(t, "docs/verification.md", "## What the scripts have to bear"))
	require.GreaterOrEqual(t, len(rows), 19)
	for _, row := range rows {
		require.Len(t, row, 2, "%v", row)
		named := testIn.FindAllStringSubmatch(row[1], -1)
		require.NotEmpty(t, named, row[0])
		require.Len(t, testName.FindAllString(row[1], -1), len(named), "%s: a test without its package", row[0])
		for _, m := range named {
			require.Contains(t, tests, m[1]+"."+m[2], row[0])
		}
	}
}
