package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// Source is the flag that names the YAML file. A command line embeds it at its
// root, once.
type Source struct {
	Config string `env:"LINEKEEPER_CONFIG" placeholder:"FILE" help:"YAML file with settings, by the names of the flags."`
}

// Env looks an environment variable up, as os.LookupEnv does. A variable that
// is set to nothing counts as not set: that is how container tools pass on what
// nobody gave them.
type Env func(name string) (string, bool)

// Parse fills cli, a pointer to a kong command line, from args and the other
// sources, and checks the selected command. It returns all problems joined, as
// Problem where a setting is to blame; the caller prints them and exits with
// code 2. No error holds the value of a secret.
func Parse(cli any, args []string, env Env, opts ...kong.Option) (*kong.Context, error) {
	p := &parser{env: env, vars: map[*kong.Value][]string{}, from: map[*kong.Value]string{}}
	// Options of the caller come last, so that they can replace ours.
	own := []kong.Option{kong.Resolvers(p), kong.ValueFormatter(p.help)}
	k, err := kong.New(cli, append(own, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("build the command line: %w", err)
	}
	p.adopt(k)
	ctx, err := k.Parse(args)
	if err != nil {
		ctx = p.despite(err)
	}
	p.check(ctx)
	if err := p.problems.err(); err != nil {
		return nil, err
	}
	return ctx, nil
}

// parser stands between kong and the sources. kong would read the environment
// by itself, below any resolver, would stop at the first value that does not
// parse, and would print that value: so it is shown no variables, and mappers
// that never fail.
type parser struct {
	env      Env
	vars     map[*kong.Value][]string // the variables of each flag
	from     map[*kong.Value]string   // where the value that is being parsed was found
	file     *file                    // nil until a setting was looked for
	problems problems
}

// adopt takes the variables away from kong, and wraps the mappers. Flags of
// every command are adopted, because the YAML file may name any of them.
func (p *parser) adopt(k *kong.Kong) {
	_ = kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			p.vars[flag.Value] = flag.Envs
			flag.Envs, flag.Value.Tag.Envs = nil, nil
			flag.Value.Mapper = mapper{inner: flag.Value.Mapper, parser: p}
		}
		return next(nil)
	})
}

// despite reports err, and still looks at the settings of the command, as far
// as it is known, so that one wrong flag does not hide a wrong variable. It
// returns what there is to check.
func (p *parser) despite(err error) *kong.Context {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		p.problems.join(err)
		return nil
	}
	p.problems.join(parse.Unwrap())
	if parse.Context.Error != nil {
		_ = parse.Context.Resolve() // mapper reports what there is
	}
	return parse.Context
}

// check runs the checks of the selected command. It does not where some flags
// or the file could not be read: what those hold would be called missing.
func (p *parser) check(ctx *kong.Context) {
	if ctx == nil || ctx.Error != nil || p.file != nil && p.file.broken {
		return
	}
	for _, step := range ctx.Path {
		if node := step.Node(); node != nil {
			p.problems.join(check(node.Target))
		}
	}
}

// help adds the variables to a flag's line, which kong no longer can.
func (p *parser) help(v *kong.Value) string {
	vars := p.vars[v]
	if len(vars) == 0 {
		return v.Help
	}
	return fmt.Sprintf("%s ($%s)", v.Help, strings.Join(vars, ", $"))
}

// setting names a flag in a Problem.
func (p *parser) setting(v *kong.Value) string {
	if vars := p.vars[v]; len(vars) > 0 {
		return vars[0]
	}
	return "--" + v.Name
}

// mapper reports instead of failing.
type mapper struct {
	inner  kong.Mapper
	parser *parser
}

// Decode never fails, so that kong goes on to the next flag.
func (m mapper) Decode(dc *kong.DecodeContext, target reflect.Value) error {
	p := m.parser
	// Defaults are parsed as well, and look like flags here. No secret has one.
	from, resolved := p.from[dc.Value]
	if !resolved {
		from = "--" + dc.Value.Name
	}
	err := m.inner.Decode(dc, target)
	if _, secret := target.Interface().(Secret); err == nil && secret && !resolved {
		err = fmt.Errorf("is a secret, and everybody on the machine can read command lines; use %s_FILE", p.setting(dc.Value))
	}
	if err != nil {
		p.problems = append(p.problems, Problem{Setting: p.setting(dc.Value), From: from, Err: err})
	}
	return nil
}

// check calls Check of v, or else of what v embeds: a struct that embeds two
// parts with a Check each has none itself.
func check(v reflect.Value) error {
	if c, ok := v.Addr().Interface().(interface{ Check() error }); ok {
		return c.Check()
	}
	var ps problems
	for i := range v.NumField() {
		field := v.Type().Field(i)
		_, embedded := field.Tag.Lookup("embed")
		if field.IsExported() && (embedded || field.Anonymous) && field.Type.Kind() == reflect.Struct {
			ps.join(check(v.Field(i)))
		}
	}
	return ps.err()
}
