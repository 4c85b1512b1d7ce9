// Command overlay makes the product that can fail: it writes copies of product
// files, edited to call package test/fault/point, and the file that tells the go
// command to read them instead.
//
//	go run ./test/fault/overlay -dir bin/.overlay
//	go build -tags faults -overlay bin/.overlay/overlay.json ./cmd/linekeeper
//
// The product's own files stay as they are: without both, tag and overlay, no
// program can contain any of it. Each edit names a text that stands exactly once
// in its file; where it does not, the command fails and says which.
//
// A file is written only where its content changes, so that building again costs
// nothing. With -list it prints what there is to set off, and writes nothing.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/linekeeper/linekeeper/test/fault/catalog"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "overlay:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("overlay", flag.ContinueOnError)
	dir := flags.String("dir", "", "where to write `DIR`/overlay.json and the edited files")
	list := flags.Bool("list", false, "list failpoints and mutants, as Markdown tables")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *list:
		return tables(out)
	case *dir == "":
		return errors.New("-dir is missing")
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	return write(root, *dir, slices.Concat(failpoints, mutants))
}

// moduleRoot is where go.mod is.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", errors.New("not inside the module")
	}
	return filepath.Dir(mod), nil
}

// write makes the copies below dir, and overlay.json last: it names only files
// that are complete.
func write(root, dir string, edits []edit) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for _, file := range files(edits) {
		original := filepath.Join(root, filepath.FromSlash(file))
		src, err := os.ReadFile(original)
		if err != nil {
			return err
		}
		edited, err := apply(file, src, edits)
		if err != nil {
			return err
		}
		replace[original] = filepath.Join(dir, filepath.FromSlash(file))
		if err := update(replace[original], edited); err != nil {
			return err
		}
	}
	doc, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "  ")
	if err != nil {
		return err
	}
	return update(filepath.Join(dir, "overlay.json"), append(doc, '\n'))
}

// update writes a file whose content differs, whole or not at all: two builds
// may share the directory.
func update(name string, content []byte) error {
	old, err := os.ReadFile(name)
	if err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // it is of no use
	}
	return err
}

// tables prints the catalogue.
func tables(out io.Writer) error {
	var b strings.Builder
	b.WriteString("| failpoint | what has happened by then | file |\n|---|---|---|\n")
	for _, p := range catalog.Points {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", p.Name, p.Meaning, p.File)
	}
	b.WriteString("\n| mutant | what it does | the promise that catches it |\n|---|---|---|\n")
	for _, m := range catalog.Mutants {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Name, m.Breaks, m.Caught)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
