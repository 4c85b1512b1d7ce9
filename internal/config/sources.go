package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// ConfigVariable names the YAML file where --config does not.
const ConfigVariable = "LINEKEEPER_CONFIG"

// maxFile bounds what is read: a path may name a device without an end.
const maxFile = 1 << 20

// Validate is there for kong, and has nothing to say: the YAML file is checked
// when the first setting is looked for.
func (p *parser) Validate(*kong.Application) error { return nil }

// Resolve finds the value of a flag that the command line does not give. A
// problem is reported, and the flag left at its default.
func (p *parser) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range p.vars[flag.Value] {
		value, from, err := p.variable(name)
		if err != nil {
			p.problems = append(p.problems, Problem{Setting: name, From: from, Err: err})
			return nil, nil
		}
		if from != "" {
			p.from[flag.Value] = from
			return value, nil
		}
	}
	if len(p.vars[flag.Value]) == 0 {
		return nil, nil
	}
	p.load(ctx)
	if value, ok := p.file.values[flag.Name]; ok {
		p.from[flag.Value] = value.from
		return value.text, nil
	}
	return nil, nil
}

// variable looks at name, and at the file that name_FILE names; from is empty
// if neither is set. Both set is an error: one of them is a mistake, and which
// one only the operator knows.
func (p *parser) variable(name string) (value, from string, err error) {
	value = p.lookup(name)
	if name == ConfigVariable {
		return value, fromIf(value, name), nil
	}
	fileVar := name + "_FILE"
	path := p.lookup(fileVar)
	switch {
	case path == "":
		return value, fromIf(value, name), nil
	case value != "":
		return "", fileVar, fmt.Errorf("is set, and %s is too", name)
	}
	value, err = ReadSecret(path)
	return value, fileVar, err
}

func (p *parser) lookup(name string) string {
	value, _ := p.env(name)
	return value
}

func fromIf(value, name string) string {
	if value == "" {
		return ""
	}
	return name
}

// ReadSecret reads the file that a LINEKEEPER_X_FILE names, without the newline
// that editors and echo put at its end. An empty file is an error.
func ReadSecret(path string) (string, error) {
	text, err := readFile(path)
	if err != nil {
		return "", err
	}
	text = strings.TrimRight(text, "\r\n")
	if text == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return text, nil
}

func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err // names the path
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxFile:
		return "", errors.New(path + " is larger than 1 MiB")
	}
	return string(text), nil
}

// load reads the YAML file, once. A command without settings never does, so
// that a broken file does not keep it from running.
func (p *parser) load(ctx *kong.Context) {
	if p.file != nil {
		return
	}
	p.file = &file{}
	path := p.lookup(ConfigVariable)
	for _, step := range ctx.Path {
		if step.Flag != nil && p.setting(step.Flag.Value) == ConfigVariable {
			path = ctx.Value(step).String()
		}
	}
	if path == "" {
		return
	}
	// Two commands may have one flag with and one without a variable: known if any has.
	known := map[string]bool{}
	for v, vars := range p.vars {
		known[v.Name] = known[v.Name] || len(vars) > 0 && p.setting(v) != ConfigVariable
	}
	loaded, err := loadFile(path, known)
	p.file = loaded
	p.problems.join(err)
}
