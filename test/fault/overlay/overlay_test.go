package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/fault/catalog"
)

// made is the overlay of the product as it is, in a directory of its own.
func made(t *testing.T) (root, overlay string) {
	t.Helper()
	root, err := moduleRoot()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, write(root, dir, slices.Concat(failpoints, mutants)),
		"the product has changed where an edit is made: change the edit with it")
	return root, filepath.Join(dir, "overlay.json")
}

func goTool(t *testing.T, root string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The packages that are edited, what is linked with them, and what they call.
func TestTheOverlaidProductBuildsAndVets(t *testing.T) {
	root, overlay := made(t)
	packages := []string{"./cmd/linekeeper", "./test/fault/point"}
	for _, f := range files(slices.Concat(failpoints, mutants)) {
		packages = append(packages, "./"+path.Dir(f))
	}
	slices.Sort(packages)
	out, err := goTool(t, root, append([]string{"vet", "-tags", "faults", "-overlay", overlay}, slices.Compact(packages)...)...)
	require.NoError(t, err, out)
	program := filepath.Join(t.TempDir(), "linekeeper")
	out, err = goTool(t, root, "build", "-tags", "faults", "-overlay", overlay, "-o", program, "./cmd/linekeeper")
	require.NoError(t, err, out)
	for _, m := range catalog.Mutants {
		// Scripts are built at the start, and a mutant in Lua that no longer fits
		// its script ends it.
		cmd := exec.Command(program, "version")
		cmd.Env = append(os.Environ(), "LINEKEEPER_MUTANT="+m.Name)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "a script has changed where a mutant is made: change test/fault/point/mutate.go with it\n%s", out)
	}
	out, err = goTool(t, root, "list", "-deps", "-tags", "faults", "-overlay", overlay, "./cmd/linekeeper")
	require.NoError(t, err, out)
	require.Contains(t, out, pointPath, "the overlaid program has no failpoints")
}

func TestAReleaseCannotContainAnyOfIt(t *testing.T) {
	root, overlay := made(t)
	for _, args := range [][]string{{"list", "-deps", "./cmd/linekeeper"}, {"list", "-deps", "-tags", "faults", "./cmd/linekeeper"}} {
		out, err := goTool(t, root, args...)
		require.NoError(t, err, out)
		require.NotContains(t, out, "/test/", "without the overlay the program has something of the tests in it: go %v", args)
	}
	out, err := goTool(t, root, "build", "-overlay", overlay, "-o", filepath.Join(t.TempDir(), "linekeeper"), "./cmd/linekeeper")
	require.Error(t, err, "with the overlay and without the tag it must not build")
	require.Contains(t, out, "build constraints exclude all Go files")

	sources, err := filepath.Glob("../point/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, name := range sources {
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(src, []byte("//go:build faults\n")), "%s has not the tag", name)
	}
}

func TestAnEditWhosePlaceHasChangedIsNamed(t *testing.T) {
	src := []byte("package p\n\nvar a, b = 1, 1\n")
	for _, old := range []string{"var c", "1"} {
		_, err := apply("p.go", src, []edit{{file: "p.go", old: old, new: "x"}})
		require.ErrorContains(t, err, "p.go: the text of this edit stands there")
		require.ErrorContains(t, err, "\n"+old)
	}
	_, err := apply("p.go", src, []edit{{file: "p.go", old: "var a", new: "va a"}})
	require.ErrorContains(t, err, "p.go: as edited: ")
}

func TestEditsOfOneFileBuildOnEachOther(t *testing.T) {
	src := []byte("package p\n\nimport (\n\t\"fmt\"\n)\n\nvar a = fmt.Sprint(1)\n")
	edits := []edit{
		{file: "p.go", old: "(1)", new: "(1, point.Mutant(\"x\"))"}, {file: "q.go", old: "none", new: ""},
		{file: "p.go", old: "(1, ", new: "(2,  "},
	}
	out, err := apply("p.go", src, edits)
	require.NoError(t, err)
	require.Equal(t, "package p\n\nimport (\n\t\"fmt\"\n\n\t\""+pointPath+"\"\n)\n\nvar a = fmt.Sprint(2, point.Mutant(\"x\"))\n", string(out))
	for _, imports := range []string{"", "import \"fmt\"\n", "import (\n\t\"fmt\"\n\t\"" + pointPath + "\"\n)\n"} {
		out, err := apply("p.go", []byte("package p // p\n"+imports+"var a = 1\n"), []edit{{file: "p.go", old: "= 1", new: "= 2"}})
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(out), pointPath), "%s", out)
	}
}

// The build cache goes by content, and overlay.json by names: what is the same
// stays.
func TestWhatIsTheSameIsNotWrittenAgain(t *testing.T) {
	root, overlay := made(t)
	var doc struct{ Replace map[string]string }
	text, err := os.ReadFile(overlay)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &doc))
	names := []string{overlay}
	for original, copied := range doc.Replace {
		require.True(t, filepath.IsAbs(original) && filepath.IsAbs(copied))
		names = append(names, copied)
	}
	require.Greater(t, len(names), 10)
	before := map[string]os.FileInfo{}
	for _, name := range names {
		before[name], err = os.Stat(name)
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(names[1], []byte("stale"), 0o600))
	require.NoError(t, write(root, filepath.Dir(overlay), slices.Concat(failpoints, mutants)))
	for _, name := range names {
		now, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, name != names[1], os.SameFile(before[name], now), name)
	}
}

var (
	atPoint  = regexp.MustCompile(`point\.At\([a-z.()A-Z]+, "([^"]+)"\)`)
	isMutant = regexp.MustCompile(`point\.(?:Mutant|Either)\("([^"]+)"|(?m)^\t\{"([a-z-]+)", "[a-z]+", `)
)

func TestTheCatalogueListsWhatThereIs(t *testing.T) {
	root, overlay := made(t)
	places, alive := map[string]string{}, map[string]bool{}
	for _, f := range files(slices.Concat(failpoints, mutants)) {
		src, err := os.ReadFile(filepath.Join(filepath.Dir(overlay), f))
		require.NoError(t, err)
		for _, m := range atPoint.FindAllStringSubmatch(string(src), -1) {
			require.Empty(t, places[m[1]], "failpoint %s stands in two places", m[1])
			places[m[1]] = f
		}
		require.Equal(t, strings.Count(string(src), "point.At("), len(atPoint.FindAllString(string(src), -1)), f)
		for _, m := range isMutant.FindAllStringSubmatch(string(src), -1) {
			alive[m[1]] = true
		}
	}
	rewrites, err := os.ReadFile(filepath.Join(root, "test/fault/point/mutate.go"))
	require.NoError(t, err)
	for _, m := range isMutant.FindAllStringSubmatch(string(rewrites), -1) {
		alive[m[2]] = true
	}
	for _, p := range catalog.Points {
		require.Equal(t, p.File, places[p.Name], "the catalogue says where failpoint %s is", p.Name)
		require.NotEmpty(t, p.Meaning)
	}
	require.Len(t, places, len(catalog.Points), "failpoints that the catalogue does not list")
	for _, m := range catalog.Mutants {
		require.True(t, alive[m.Name], "mutant %s is nowhere", m.Name)
		require.NotEmpty(t, m.Breaks)
		require.NotEmpty(t, m.Caught)
	}
	require.Len(t, alive, len(catalog.Mutants), "mutants that the catalogue does not list, or lists twice")
}

func TestTheListIsTwoTables(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run([]string{"-list"}, &out))
	require.Contains(t, out.String(), "| `O3-claimed` | ")
	require.Contains(t, out.String(), "| `consume-by-member` | ")
	require.Equal(t, len(catalog.Points)+len(catalog.Mutants)+5, strings.Count(out.String(), "\n"))
	require.ErrorContains(t, run(nil, &out), "-dir is missing")
}
