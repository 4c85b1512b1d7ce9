package config

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file is a YAML file of settings: one flat map, by the names of the flags.
//
//	listen: :8080
//	roles: [api, relay]
//	leader-ttl: 5s
type file struct {
	values map[string]fileValue
	broken bool // could not be read at all: nobody knows what it would have set
}

// fileValue is one setting as text, as a flag would give it.
type fileValue struct {
	text string
	from string // path, line and key, for messages
}

// loadFile reads a file and reports all that is wrong with it. The settings of
// any command are known, so that one file serves them all.
func loadFile(path string, known map[string]bool) (*file, error) {
	text, err := readFile(path)
	if err != nil {
		return &file{broken: true}, Problem{From: ConfigVariable, Err: err}
	}
	root, err := parseYAML(text)
	if err != nil {
		return &file{broken: true}, Problem{From: path, Err: err}
	}
	f := &file{values: map[string]fileValue{}}
	var ps problems
	for i := 0; i+1 < len(root); i += 2 {
		key, from := root[i].Value, fmt.Sprintf("%s:%d: %s", path, root[i].Line, root[i].Value)
		text, err := scalar(root[i+1])
		_, twice := f.values[key]
		switch {
		case !known[key]:
			err = errors.New("is not a setting")
		case twice:
			err = errors.New("is there twice")
		}
		if err != nil {
			ps = append(ps, Problem{From: from, Err: err})
			continue
		}
		f.values[key] = fileValue{text: text, from: from}
	}
	return f, ps.err()
}

// parseYAML gives keys and values in turn; none for an empty file.
func parseYAML(text string) ([]*yaml.Node, error) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, errors.New("is not YAML: " + unquoted(err))
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("holds more than one document")
	}
	root := doc.Content[0]
	if root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("is not a map of settings")
	}
	return root.Content, nil
}

// unquoted keeps an error of the YAML package only if it quotes nothing: what
// it quotes may be a secret that lacked its own quotes.
func unquoted(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.ContainsAny(text, "'`\"") {
		if line, _, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(line, "line ") {
			return line + ": a value needs quotes"
		}
		return "a value needs quotes"
	}
	return text
}

// scalar gives the text of a value, and of a list with commas between.
func scalar(node *yaml.Node) (string, error) {
	// One step is enough: YAML has no alias of an alias.
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node.Tag == "!!null":
		return "", errors.New("has no value; leave the line out")
	case node.Kind == yaml.ScalarNode:
		return node.Value, nil
	case node.Kind != yaml.SequenceNode:
		return "", errors.New("is a map, not a value")
	}
	items := make([]string, len(node.Content))
	for i, item := range node.Content {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return "", errors.New("is a list of something else than values")
		}
		items[i] = item.Value
	}
	return strings.Join(items, ","), nil
}
