package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linekeeper/linekeeper/test/harness"
)

// event is what go test -json writes, one a line: see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build, which has no Package
	Test       string
	Output     string
}

// report turns events into the few lines worth reading.
type report struct {
	out     io.Writer
	said    map[[2]string][]string // package and test -> what it printed
	skipped []string
	missing int
}

func newReport(out io.Writer) *report {
	return &report{out: out, said: map[[2]string][]string{}}
}

// read consumes events until the end. A line that is none (a panic of the tool,
// a linker's warning) is passed on as it is.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			r.print(line)
		default:
			r.take(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read go test's events: %w", err)
		}
	}
}

func (r *report) take(e event) {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		r.print(e.Output)
	case "output":
		r.said[key] = append(r.said[key], e.Output)
	case "pass":
		r.end(key, false)
	case "fail":
		r.end(key, true)
	case "skip":
		r.skip(key)
	}
}

// end closes a test or, with no test named, a package. What a test that passed
// has printed is dropped.
func (r *report) end(key [2]string, failed bool) {
	if key[1] == "" {
		r.endPackage(key, failed)
	} else if failed {
		r.print(r.said[key]...)
	}
	delete(r.said, key)
}

// endPackage prints the package's own line. In one that failed it also prints
// what is not a test's: a panic, and the tests that it cut short.
func (r *report) endPackage(key [2]string, failed bool) {
	if failed {
		for other := range r.said {
			if other[0] == key[0] && other[1] != "" {
				r.print(r.said[other]...)
				delete(r.said, other)
			}
		}
	}
	for _, line := range r.said[key] {
		if failed && line != "FAIL\n" || strings.HasPrefix(line, "ok ") {
			r.print(line)
		}
	}
}

// skip notes a test and its reason: the last thing it printed before the line
// that says it was skipped. A package without tests is no skip.
func (r *report) skip(key [2]string) {
	defer delete(r.said, key)
	if key[1] == "" {
		return
	}
	reason := "no reason given"
	for _, line := range r.said[key] {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			reason = line
		}
	}
	if strings.Contains(reason, harness.MissingPart) {
		r.missing++
	}
	r.skipped = append(r.skipped, fmt.Sprintf("%s %s: %s", key[0], key[1], reason))
}

// summary lists the skipped tests and returns how many of them missed a program.
func (r *report) summary() (missing int) {
	if len(r.skipped) == 0 {
		r.print("no test was skipped\n")
		return 0
	}
	slices.Sort(r.skipped)
	r.print(fmt.Sprintf("skipped: %d\n", len(r.skipped)))
	for _, s := range r.skipped {
		r.print("  " + s + "\n")
	}
	return r.missing
}

// print ignores the error of a reader that has gone away: the exit status still
// says how it went.
func (r *report) print(lines ...string) {
	for _, line := range lines {
		_, _ = io.WriteString(r.out, line)
	}
}
