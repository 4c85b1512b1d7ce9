package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// licences are the ones that a part of the project may have, each with words of
// its text that those before it lack.
var licences = []struct {
	name  string
	words *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`(?i)Apache License,?\s+Version 2\.0`)},
	{"MPL-2.0", regexp.MustCompile(`Mozilla Public License,? (v\. 2\.0|[Vv]ersion 2\.0)`)},
	{"BSD-3-Clause", regexp.MustCompile(`(?s)Redistribution and use in source and binary forms.*[Nn]either the name`)},
	{"BSD-2-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms`)},
	{"ISC", regexp.MustCompile(`Permission to use, copy, modify, and(/or)? distribute this software`)},
	{"MIT", regexp.MustCompile(`Permission is hereby granted, free of charge`)},
	{"Unlicense", regexp.MustCompile(`This is free and unencumbered software released into the public domain`)},
}

// shippable are those of what is in the binary. MPL is not: files under it that are
// changed would have to be published.
var shippable = []string{"Apache-2.0", "BSD-3-Clause", "BSD-2-Clause", "ISC", "MIT"}

// licenceOf is the name of a text's licence, empty for one that is not known.
func licenceOf(text string) string {
	for _, l := range licences {
		if l.words.MatchString(text) {
			return l.name
		}
	}
	return ""
}

// licenceFile is the text of a module, wherever it keeps it.
func licenceFile(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		if name := strings.ToLower(f.Name()); !f.IsDir() && (strings.HasPrefix(name, "licen") || strings.HasPrefix(name, "copying")) {
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			require.NoError(t, err)
			return string(text)
		}
	}
	return ""
}

type modulePart struct {
	Module *struct{ Path, Version, Dir string }
}

// modulesOf are the modules that packages are made of, without ours.
func modulesOf(t *testing.T, args ...string) map[string]string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, args...)...)
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go list: %s", &stderr)
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p modulePart
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return dirs
		} else {
			require.NoError(t, err)
		}
		if p.Module != nil && p.Module.Path != module {
			dirs[p.Module.Path+" "+p.Module.Version] = p.Module.Dir
		}
	}
}

// Whoever runs or passes on the binary, or works on it, may do so: every module
// has a licence that is known, and what is in the binary one that is on the list.
// With -v it lists them.
func TestEveryDependencyHasALicenceThatIsAllowed(t *testing.T) {
	t.Parallel()
	shipped := modulesOf(t, "./cmd/linekeeper")
	require.Greater(t, len(shipped), 15)
	for name, dir := range modulesOf(t, "-test", "./...") {
		licence := licenceOf(licenceFile(t, dir))
		where := "tests"
		if shipped[name] != "" {
			where = "binary"
		}
		t.Logf("%-14s %-7s %s", licence, where, name)
		if shipped[name] != "" {
			require.Contains(t, shippable, licence, "%s is in the binary", name)
		} else {
			require.NotEmpty(t, licence, "%s has no licence that is known", name)
		}
	}
}

func TestLicencesAreToldApart(t *testing.T) {
	t.Parallel()
	ours, err := os.ReadFile("../LICENSE")
	require.NoError(t, err)
	require.Equal(t, "Apache-2.0", licenceOf(string(ours)))
	for text, want := range map[string]string{
		"GNU GENERAL PUBLIC LICENSE Version 3": "", "GNU AFFERO GENERAL PUBLIC LICENSE": "", "Business Source License 1.1": "", "": "",
		"Mozilla Public License, version 2.0":                                                               "MPL-2.0",
		"Redistribution and use in source and binary forms ... Neither the name of":                         "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with or without modification":                   "BSD-2-Clause",
		"Permission is hereby granted, free of charge, to any person":                                       "MIT",
		"Permission to use, copy, modify, and distribute this software for any purpose with or without fee": "ISC",
	} {
		require.Equal(t, want, licenceOf(text), text)
	}
	require.False(t, slices.Contains(shippable, "MPL-2.0"))
}
