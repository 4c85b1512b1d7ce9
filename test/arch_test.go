// Package test holds what is true of the project as a whole: which package may
// import which (arch_test.go). The directories below it hold what tests share,
// and the tests that need the whole product.
package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/linekeeper/linekeeper"

// layers says which of our packages each package may import. What is not here
// has no place yet: whoever adds a package adds its row, and so decides.
//
// A name ending in /... stands for all below it, "all" for every package of
// ours that is not under test/, and "tests" for those that are.
var layers = []struct {
	name string
	may  []string
}{
	{"queue", nil},
	{"queue/redisstore", []string{"internal/share", "queue"}},
	{"ratelimit", []string{"internal/share"}},
	{"room", []string{"queue"}},
	{"room/pgstore", []string{"draw", "room", "queue"}},
	{"credential", []string{"queue"}},
	{"identity", nil},
	{"scheduler", []string{"queue", "scheduler/controller"}},
	{"scheduler/controller", []string{"queue"}},
	{"challenge", nil},
	{"work", nil},
	{"order", []string{"queue"}},
	{"order/pgstore", []string{"order", "outbox", "queue"}},
	{"outbox", nil},
	{"api", []string{"api/jsonbody", "api/problem", "api/spec", "credential", "draw", "identity", "internal/clientip", "order", "queue", "ratelimit", "room", "work"}},
	{"api/jsonbody", []string{"api/problem"}},
	{"api/problem", nil},
	{"api/spec", []string{"queue"}},
	{"admin", []string{"api/problem", "credential", "internal/clientip", "queue", "ratelimit", "room"}},
	{"draw", nil},
	{"draw/closing", []string{"draw", "queue"}},
	{"migrations", []string{"internal/pooler"}},
	{"internal/cli", []string{"api/problem", "api/spec", "draw", "internal/config", "room"}},
	{"internal/breaker", nil},
	{"internal/child", nil},
	{"internal/clientip", nil},
	{"internal/config", []string{"ratelimit"}},
	{"internal/devstack", []string{"internal/child"}},
	{"internal/doctor", []string{"admin", "credential", "internal/config", "internal/pooler", "migrations", "outbox", "queue", "queue/redisstore", "room", "room/pgstore"}}, // looks into everything
	{"internal/load", []string{"api/spec", "queue"}},
	{"internal/pooler", nil},
	{"internal/share", nil},
	{"internal/sim", []string{"queue", "scheduler/controller"}},
	{"internal/telemetry", nil},
	{"cmd/linekeeper", []string{"all"}}, // the only wiring
	{"test/harness", []string{"internal/child", "internal/devstack", "migrations"}},
	{"test/contract", []string{"api/problem", "api/spec"}},
	{"test/...", []string{"all", "tests"}},
}

// drivers says who may import a library that talks to the outside, or that
// gives a part of the program its shape. Everybody else stays testable without
// a server, and replaceable.
var drivers = []struct {
	library string
	by      []string
}{
	{"github.com/redis/go-redis/v9", []string{"queue/redisstore", "ratelimit", "internal/breaker", "internal/config", "internal/doctor", "internal/share", "internal/telemetry", "cmd/linekeeper", "test/..."}},
	{"github.com/sony/gobreaker/v2", []string{"internal/breaker"}},
	{"github.com/go-redsync/redsync/v4", []string{"scheduler", "cmd/linekeeper"}},
	{"github.com/alicebob/miniredis/v2", []string{"cmd/linekeeper"}},
	{"github.com/jackc/pgx/v5", []string{"order/pgstore", "room/pgstore", "outbox", "migrations", "internal/devstack", "internal/doctor", "internal/pooler", "internal/telemetry", "cmd/linekeeper", "test/..."}},
	{"github.com/pressly/goose/v3", []string{"migrations"}},
	{"github.com/prometheus/client_golang", []string{"internal/telemetry"}},
	{"github.com/HdrHistogram/hdrhistogram-go", []string{"internal/load"}},
	{"github.com/alecthomas/kong", []string{"internal/config", "cmd/linekeeper"}},
	{"go.yaml.in/yaml/v3", []string{"internal/cli", "internal/config"}},
	{"github.com/go-chi/chi/v5", []string{"api", "api/problem", "admin", "internal/telemetry", "test/..."}},
	{"github.com/go-chi/cors", []string{"api"}},
	{"github.com/golang-jwt/jwt/v5", []string{"credential", "identity", "test/..."}},
	{"github.com/go-jose/go-jose/v4", []string{"identity", "test/..."}},
	{"github.com/getkin/kin-openapi", []string{"test/..."}},
	{"github.com/stretchr/testify", []string{"test/..."}},
	{"github.com/google/go-cmp", []string{"test/..."}},
	{"pgregory.net/rapid", []string{"test/..."}},
}

// driverFree packages reach none of these, by whatever way.
var (
	driverFree = []string{"queue", "room", "order", "scheduler/controller", "internal/sim"}
	kept       = []string{
		"github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4", "github.com/jackc/pgx/v5",
		"github.com/prometheus/client_golang", "github.com/go-chi/chi/v5", "net/http",
	}
)

// standardOnly packages import nothing but the standard library.
var standardOnly = []string{"queue", "draw", "work"}

// pkg is a package as `go list` has it. Tests are not held to the rules: they
// may bring up whatever they need.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// name is the package's path in this module.
func name(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

func ours(importPath string) bool { return strings.HasPrefix(importPath, module+"/") }

func listed(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go list: %s", &stderr)
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, p)
	}
}

// violations are all edges that the tables forbid, one a line.
func violations(all []pkg) []string {
	var wrong []string
	flag := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, p := range all {
		from := name(p.ImportPath)
		may, known := allowed(from)
		if !known {
			flag("%s has no row in layers", from)
		}
		for _, to := range p.Imports {
			switch {
			case ours(to) && known && !covers(may, name(to)):
				flag("%s imports %s; it may import %v", from, name(to), may)
			case slices.Contains(standardOnly, from) && !standard(to):
				flag("%s imports %s; it may import the standard library alone", from, to)
			}
			for _, d := range drivers {
				if within(to, d.library) && !covers(d.by, from) {
					flag("%s imports %s; only %v may", from, d.library, d.by)
				}
			}
		}
		for _, k := range kept {
			if slices.Contains(driverFree, from) && slices.ContainsFunc(p.Deps, func(dep string) bool { return within(dep, k) }) {
				flag("%s reaches %s", from, k)
			}
		}
	}
	return wrong
}

// allowed is the row of a package: its own, or that of the tests.
func allowed(from string) (may []string, known bool) {
	for _, l := range layers {
		if covers([]string{l.name}, from) {
			return l.may, true
		}
	}
	return nil, false
}

func covers(patterns []string, name string) bool {
	isTest := within(name, "test")
	return slices.ContainsFunc(patterns, func(p string) bool {
		parent, below := strings.CutSuffix(p, "/...")
		return p == name || below && within(name, parent) || p == "all" && !isTest || p == "tests" && isTest
	})
}

// within tells whether an import path is a library or a part of it.
func within(importPath, library string) bool {
	return importPath == library || strings.HasPrefix(importPath, library+"/")
}

// standard tells a path of the standard library: its first part has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	all := listed(t)
	require.NotEmpty(t, all)
	require.Empty(t, violations(all))

	have := map[string]bool{}
	for _, p := range all {
		have[name(p.ImportPath)] = true
	}
	for _, l := range layers {
		require.True(t, have[l.name] || strings.HasSuffix(l.name, "/..."), "layers has a row for %s, which is not there", l.name)
	}
}

func TestForbiddenEdgesAreFlagged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"order", "queue", ""},
		{"order/pgstore", "github.com/jackc/pgx/v5/pgconn", ""},
		{"cmd/linekeeper", "order/pgstore", ""},
		{"test/anything", "cmd/linekeeper", ""},
		{"test/anything", "test/harness", ""},
		{"test/harness", "test/contract", "test/harness imports test/contract"},
		{"queue", "room", "queue imports room"},
		{"order", "queue/redisstore", "order imports queue/redisstore"},
		{"order", "order/pgstore", "order imports order/pgstore"},
		{"scheduler", "order", "scheduler imports order"},
		{"outbox", "order", "outbox imports order"},
		{"api", "queue/redisstore", "api imports queue/redisstore"},
		{"api", "test/harness", "api imports test/harness"},
		{"cmd/linekeeper", "test/harness", "cmd/linekeeper imports test/harness"},
		{"newcomer", "queue", "newcomer has no row in layers"},
		{"queue", "github.com/google/uuid", "the standard library alone"},
		{"api", "github.com/redis/go-redis/v9", "api imports github.com/redis/go-redis/v9"},
		{"room", "github.com/jackc/pgx/v5/pgxpool", "room imports github.com/jackc/pgx/v5"},
		{"admin", "github.com/stretchr/testify/require", "admin imports github.com/stretchr/testify"},
	} {
		t.Run(c.from+" "+c.to, func(t *testing.T) {
			t.Parallel()
			to := c.to
			if standard(to) {
				to = path.Join(module, to)
			}
			got := violations([]pkg{{ImportPath: path.Join(module, c.from), Imports: []string{to}}})
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0], c.want)
		})
	}
	t.Run("a driver behind another package", func(t *testing.T) {
		t.Parallel()
		got := violations([]pkg{{ImportPath: module + "/order", Deps: []string{"fmt", "github.com/jackc/pgx/v5/pgconn"}}})
		require.Equal(t, []string{"order reaches github.com/jackc/pgx/v5"}, got)
	})
}

// forTestsAlone are the exported names that only tests may use.
var forTestsAlone = []string{"WithClock"}

// source is what the Go files outside of tests declare and use.
type source struct {
	setters map[string]string // exported Set... and With... functions -> where
	uses    map[string]string // names used -> where
}

// add takes a file in. What is under test/ uses things for tests, whatever its
// files are called: of it only the names for tests alone are looked at.
func (s *source) add(file *ast.File, where string) {
	shared := strings.HasPrefix(where, "../test/")
	declared := map[*ast.Ident]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		declared[f.Name] = true
		if n := f.Name.Name; !shared && (strings.HasPrefix(n, "Set") || strings.HasPrefix(n, "With")) {
			s.setters[n] = where
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !declared[id] && (!shared || slices.Contains(forTestsAlone, id.Name)) {
			s.uses[id.Name] = where
		}
		return true
	})
}

// problems are the setters that nothing but tests uses, and the uses of those
// that only tests may use.
func (s *source) problems() []string {
	var wrong []string
	for _, n := range forTestsAlone {
		if where := s.uses[n]; where != "" {
			wrong = append(wrong, fmt.Sprintf("%s uses %s, which is for tests alone", where, n))
		}
	}
	for n, where := range s.setters {
		if s.uses[n] == "" && !slices.Contains(forTestsAlone, n) {
			wrong = append(wrong, fmt.Sprintf("%s has %s, which only tests use", where, n))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func newSource() *source { return &source{setters: map[string]string{}, uses: map[string]string{}} }

func parsed(t *testing.T, where string, src any) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), where, src, parser.SkipObjectResolution)
	require.NoError(t, err)
	return f
}

func TestNoSetterIsThereForTests(t *testing.T) {
	t.Parallel()
	s := newSource()
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != "..":
			return fs.SkipDir // data of make run, and the version control
		case strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go"):
			s.add(parsed(t, file, nil), file)
		}
		return nil
	})
	require.NoError(t, err)
	require.Contains(t, s.setters, "WithClock")
	require.Empty(t, s.problems())
}

func TestSettersForTestsAreFlagged(t *testing.T) {
	t.Parallel()
	s := newSource()
	s.add(parsed(t, "a.go", "package a\nfunc WithClock() {}\nfunc SetNow() {}\nfunc SetUsed() {}\n"), "a.go")
	s.add(parsed(t, "b.go", "package b\nfunc f() { a.SetUsed(); a.WithClock() }\n"), "b.go")
	s.add(parsed(t, "../test/c.go", "package c\nfunc f() { a.SetNow() }\n"), "../test/c.go")
	require.Equal(t, []string{"a.go has SetNow, which only tests use", "b.go uses WithClock, which is for tests alone"}, s.problems())
}
