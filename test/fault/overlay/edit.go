package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// pointPath is the package that edited code calls.
const pointPath = "github.com/linekeeper/linekeeper/test/fault/point"

// edit is one replacement in a product file. old stands there exactly once when
// the edits before it have been made, so that an edit whose place has changed
// is noticed, and is never made in the wrong one.
type edit struct {
	file string // from the root of the module
	old  string
	new  string
}

// apply returns src, which is file, with the edits that are for it.
func apply(file string, src []byte, edits []edit) ([]byte, error) {
	text, made := string(src), 0
	for _, e := range edits {
		if e.file != file {
			continue
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s: the text of this edit stands there %d times, not once:\n%s", file, n, e.old)
		}
		text = strings.Replace(text, e.old, e.new, 1)
		made++
	}
	if made == 0 {
		return nil, fmt.Errorf("%s: no edit", file)
	}
	out, err := withImport(text)
	if err != nil {
		return nil, fmt.Errorf("%s: as edited: %w", file, err)
	}
	return out, nil
}

// withImport is Go source with the import of package point, formatted.
func withImport(text string) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	quoted := strconv.Quote(pointPath)
	at, line := fset.Position(f.Name.End()).Offset, "\n\nimport "+quoted+"\n"
	for _, d := range f.Decls {
		// Behind the last import there is: the linter's groups are not for copies.
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.IMPORT {
			continue
		}
		at = fset.Position(gen.End()).Offset
		if gen.Rparen.IsValid() {
			at, line = fset.Position(gen.Rparen).Offset, "\n"+quoted+"\n"
		}
	}
	if slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == quoted }) {
		line = ""
	}
	return format.Source([]byte(text[:at] + line + text[at:]))
}

// files are the files that edits are for, each once.
func files(edits []edit) []string {
	var out []string
	for _, e := range edits {
		out = append(out, e.file)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
