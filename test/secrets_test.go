package test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// secretName is what holds a secret, or what is derived from one: an == on it tells,
// by the time that it takes, how much of a guess was right. Names of settings and
// of files are no secrets, and neither are ids.
var secretName = regexp.MustCompile(`(?i)^(.*(secret|password|passwd|hash|mac|signature|sig|digest|bearer)|(entry|admin|queue|bearer|access)?token(text)?)$`)

// compared are the comparisons in a file by which a secret could be guessed.
func compared(file *ast.File) []string {
	var wrong []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				for _, pair := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
					if isSecret(pair[0]) && !isFixed(pair[1]) {
						wrong = append(wrong, fmt.Sprintf("%s with %s", named(n.X), n.Op))
						return true
					}
				}
			}
		case *ast.CallExpr:
			if f := named(n.Fun); (f == "bytes.Equal" || f == "bytes.Compare" || f == "strings.Compare" || f == "strings.EqualFold") &&
				(isSecret(n.Args[0]) || isSecret(n.Args[1])) {
				wrong = append(wrong, fmt.Sprintf("%s with %s", named(n.Args[0]), f))
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isSecret(n.Tag) {
				wrong = append(wrong, named(n.Tag)+" with switch")
			}
		}
		return true
	})
	return wrong
}

// isSecret goes by the last name of an expression: x.hash[:], s.Reveal().
func isSecret(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SliceExpr:
		return isSecret(e.X)
	case *ast.IndexExpr:
		return isSecret(e.X)
	case *ast.ParenExpr:
		return isSecret(e.X)
	case *ast.StarExpr:
		return isSecret(e.X)
	case *ast.CallExpr:
		name := named(e.Fun)
		return strings.HasSuffix(name, ".Reveal") || (name == "string" || name == "[]byte") && len(e.Args) == 1 && isSecret(e.Args[0])
	case *ast.SelectorExpr:
		return named(e) != "ratelimit.Token" && secretName.MatchString(e.Sel.Name)
	case *ast.Ident:
		return e.Name != "Token" && secretName.MatchString(e.Name) // a type, or the algorithm
	}
	return false
}

// isFixed is what anybody may know: nil, true, a number, a text in the source, a
// length.
func isFixed(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return e.Name == "nil" || e.Name == "true" || e.Name == "false"
	}
	return false
}

// named is the text of a name, with what it stands in.
func named(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return named(e.X) + "." + e.Sel.Name
	case *ast.ArrayType:
		return "[]" + named(e.Elt)
	case *ast.SliceExpr:
		return named(e.X)
	case *ast.CallExpr:
		return named(e.Fun)
	}
	return "?"
}

func TestNoSecretIsComparedByteByByte(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != ".." || file == "../test"):
			return fs.SkipDir
		case strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go"):
			files++
			for _, what := range compared(parsed(t, file, nil)) {
				t.Errorf("%s compares %s: use subtle.ConstantTimeCompare or hmac.Equal", file, what)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, files, 100)
}

func TestAByteByByteComparisonIsFlagged(t *testing.T) {
	t.Parallel()
	for code, flagged := range map[string]bool{
		`if e.hash == hash {}`:                                            true,
		`if token != e.token {}`:                                          true,
		`if "x" == s.Reveal() {}`:                                         false,
		`if other == s.Reveal() {}`:                                       true,
		`if bytes.Equal(e.hash[:], sum) {}`:                               true,
		`if strings.EqualFold(bearer, want) {}`:                           true,
		`if string(mac) == want {}`:                                       true,
		`switch token { case want: }`:                                     true,
		`if token == "" {}`:                                               false,
		`if secret == nil {}`:                                             false,
		`if len(hash) != sha256.Size {}`:                                  false,
		`if subtle.ConstantTimeCompare(e.hash[:], hash) == 1 {}`:          false,
		`if e.name == name {}`:                                            false,
		`if hmac.Equal(mac, want) {}`:                                     false,
		`if tokenHeader == name || keyID == k {}`:                         false,
		`if a.signature == b.signature && a.Password != other.Password{}`: true,
	} {
		got := compared(parsed(t, "x.go", "package x\nfunc f() { "+code+" }\n"))
		require.Equal(t, flagged, len(got) > 0, "%s: %v", code, got)
	}
}
