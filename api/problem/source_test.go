package problem_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/problem"
)

const importPath = "github.com/linekeeper/linekeeper/api/problem"

// TestEveryCodeInTheSourceIsInTheTable is why New may panic: each call of it
// in the module passes a literal, or takes the code from a table in its file,
// and each of those is a code.
func TestEveryCodeInTheSourceIsInTheTable(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, code := range problem.Codes() {
		known[code] = true
	}
	calls := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != "..":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, call := range newCalls(file) {
			calls++
			codes := literalCodes(call)
			if codes == nil {
				codes = tabled(file)
			}
			require.NotEmpty(t, codes, "%s: pass problem.New a literal, or a code from a table in this file", fset.Position(call.Pos()))
			for _, code := range codes {
				require.True(t, known[code], "%s: there is no problem %q", fset.Position(call.Pos()), code)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Positive(t, calls, "the walk found no call at all: it looks in the wrong place")
}

// newCalls are the calls of problem.New in a file, under whatever name it
// imports the package.
func newCalls(file *ast.File) []*ast.CallExpr {
	name := ""
	for _, imp := range file.Imports {
		if path, _ := strconv.Unquote(imp.Path.Value); path == importPath {
			name = "problem"
			if imp.Name != nil {
				name = imp.Name.Name
			}
		}
	}
	var calls []*ast.CallExpr
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "New" && name != "" {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
				calls = append(calls, call)
			}
		}
		return true
	})
	return calls
}

func literalCodes(call *ast.CallExpr) []string {
	if len(call.Args) != 1 {
		return nil
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return nil
	}
	code, _ := strconv.Unquote(lit.Value)
	return []string{code}
}

var slug = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// tabled are the strings in the composite literals of a file that could be
// codes.
func tabled(file *ast.File) []string {
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		table, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, elt := range table.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				elt = kv.Value
			}
			if lit, ok := elt.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, _ := strconv.Unquote(lit.Value); slug.MatchString(s) {
					codes = append(codes, s)
				}
			}
		}
		return true
	})
	return codes
}
