package main

import (
	"encoding"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	operators "github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/config"
)

type configCmd struct {
	Print configPrint `cmd:"" help:"Show every setting, and where its value comes from. Secrets are masked."`
	Check configCheck `cmd:"" help:"Check the settings of a serving process, without connecting to anything."`
	Docs  configDocs  `cmd:"" help:"Print the reference of all settings, as markdown."`
}

type configPrint struct {
	config.Process
	output
}

// Check lets settings be seen that are missing or do not go together.
func (*configPrint) Check() error { return nil }

// shownSetting is one line of what is in force.
type shownSetting struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	Source  string `json:"source"`
}

// Run shows the settings that a process with this environment would have.
func (c *configPrint) Run(root *cli, parsed *kong.Context, env config.Env, std streams) error {
	found := foundBy(parsed)
	var all []shownSetting
	for _, s := range operators.Settings(c.Process) {
		all = append(all, shownSetting{s.Variable, text(s.Value), source(s, found, env, root.Config)})
	}
	v, err := operators.NewView(map[string]any{"settings": all}, func(w io.Writer) {
		fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
		for _, s := range all {
			value := s.Value
			if value == "" {
				value = "-"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Setting, value, s.Source)
		}
	})
	return c.shown(std, v, err)
}

// text is a value as its setting would be written, with secrets masked.
func text(v any) string {
	if m, ok := v.(encoding.TextMarshaler); ok {
		if b, err := m.MarshalText(); err == nil {
			return string(b)
		}
	}
	if list, ok := v.(config.Prefixes); ok {
		joined := ""
		for i, p := range list {
			if i > 0 {
				joined += ","
			}
			joined += p.String()
		}
		return joined
	}
	return fmt.Sprint(v)
}

// foundBy tells of each flag that has a value whether it was on the command
// line (false) or found elsewhere (true).
func foundBy(parsed *kong.Context) map[string]bool {
	found := map[string]bool{}
	for _, step := range parsed.Path {
		if step.Flag != nil {
			found[step.Flag.Name] = step.Resolved
		}
	}
	return found
}

// source goes the way that package config goes: flag, variable, file of the
// variable, YAML file, default.
func source(s operators.Setting, found map[string]bool, env config.Env, file string) string {
	elsewhere, any := found[s.Flag]
	set := func(name string) bool { v, _ := env(name); return v != "" }
	switch {
	case any && !elsewhere:
		return "--" + s.Flag
	case set(s.Variable):
		return s.Variable
	case set(s.Variable + "_FILE"):
		return s.Variable + "_FILE"
	case any:
		return file
	case s.Default != "":
		return "default"
	}
	return "not set"
}

type configCheck struct{ config.Process }

// Check is that of serve.
func (c *configCheck) Check() error { return (&serveCmd{c.Process}).Check() }

// Run prints, and connects to nothing.
func (c *configCheck) Run(std streams) error {
	_, err := fmt.Fprintln(std.out, "the settings are complete and valid; `linekeeper doctor` looks at what they name")
	return err
}

type configDocs struct{}

// Run prints, and connects to nothing.
func (configDocs) Run(std streams) error {
	doc, err := operators.Reference(required())
	if err != nil {
		return err
	}
	_, err = io.WriteString(std.out, doc)
	return err
}

// required asks the check of a process that has nothing what is missing.
func required() []string {
	var names []string
	for _, err := range leaves(config.Process{Roles: config.RoleAPI}.Check()) {
		var p config.Problem
		if errors.As(err, &p) && isRequired(p.Err) {
			names = append(names, p.Setting)
		}
	}
	return names
}

// isRequired tells what is missing from what is there and wrong.
func isRequired(err error) bool {
	const words = "is required"
	return len(err.Error()) >= len(words) && err.Error()[:len(words)] == words
}

// leaves takes apart what errors.Join has put together.
func leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}
