package main

import (
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Bash completionBash `cmd:"" help:"For bash."`
	Zsh  completionZsh  `cmd:"" help:"For zsh."`
	Fish completionFish `cmd:"" help:"For fish."`
}

type completionBash struct{}

// Run writes the script.
func (completionBash) Run(k *kong.Context, std streams) error {
	return bashScript.Execute(std.out, levels(k))
}

type completionZsh struct{}

// Run writes the script.
func (completionZsh) Run(k *kong.Context, std streams) error {
	return zshScript.Execute(std.out, levels(k))
}

type completionFish struct{}

// Run writes the script.
func (completionFish) Run(k *kong.Context, std streams) error {
	return fishScript.Execute(std.out, levels(k))
}

// level is what can be typed behind one command.
type level struct {
	Path  string // "" for the program itself
	Words []word // commands, then flags
}

// word is one thing to type. Values are what may follow a flag; Of is the
// command's own, as opposed to its values.
type word struct {
	Text, Help string
	Values     []string
}

// levels walks the command line. Scripts hold all of it: completing must not
// start a process per key press.
func levels(k *kong.Context) []level {
	var all []level
	_ = kong.Visit(k.Model, func(v kong.Visitable, next kong.Next) error {
		if n, ok := v.(*kong.Application); ok {
			all = append(all, levelOf(n.Node))
		}
		if n, ok := v.(*kong.Node); ok && n.Type == kong.CommandNode {
			all = append(all, levelOf(n))
		}
		return next(nil)
	})
	return all
}

func levelOf(n *kong.Node) level {
	l := level{Path: commandPath(n)}
	for _, c := range n.Children {
		if c.Type == kong.CommandNode && !c.Hidden {
			l.Words = append(l.Words, word{Text: c.Name, Help: c.Help})
		}
	}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			w := word{Text: "--" + f.Name, Help: f.Help}
			if f.Enum != "" {
				w.Values = strings.Split(f.Enum, ",")
			}
			l.Words = append(l.Words, w)
			if f.Short != 0 {
				w.Text = "-" + string(f.Short)
				l.Words = append(l.Words, w)
			}
		}
	}
	return l
}

// Texts are all words of the level.
func (l level) Texts() string {
	texts := make([]string, len(l.Words))
	for i, w := range l.Words {
		texts[i] = w.Text
	}
	return strings.Join(texts, " ")
}

// Parent and Name take the path apart.
func (l level) Parent() string { return strings.Join(l.steps()[:max(0, len(l.steps())-1)], " ") }

// Name is the last word of the path.
func (l level) Name() string {
	if l.Path == "" {
		return ""
	}
	return l.steps()[len(l.steps())-1]
}

func (l level) steps() []string { return strings.Fields(l.Path) }

// Valued are the flags of the level that take one of a few values.
func (l level) Valued() []word {
	return slices.DeleteFunc(slices.Clone(l.Words), func(w word) bool { return len(w.Values) == 0 })
}

// IsFlag tells a flag from a command.
func (w word) IsFlag() bool { return strings.HasPrefix(w.Text, "-") }

// Bare is the flag without its dashes.
func (w word) Bare() string { return strings.TrimLeft(w.Text, "-") }

// IsShort tells -o from --output.
func (w word) IsShort() bool { return w.IsFlag() && !strings.HasPrefix(w.Text, "--") }

// Choices are the values with spaces between.
func (w word) Choices() string { return strings.Join(w.Values, " ") }

// shellQuoted puts a text into single quotes, as all three shells read it.
func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func script(text string) *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"q": shellQuoted}).Parse(strings.TrimPrefix(text, "\n")))
}
