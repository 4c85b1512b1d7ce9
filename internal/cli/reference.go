package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/room"
)

// Setting is one setting of a process, from the tags of its field.
type Setting struct {
	Variable string
	Flag     string // without the dashes
	Default  string // "" for none
	Help     string
	Secret   bool
	Value    any // of the struct given to Settings
}

// Settings walks a struct of settings and what it embeds, in order.
func Settings(of any) []Setting { return settingsOf(reflect.ValueOf(of)) }

func settingsOf(v reflect.Value) []Setting {
	var out []Setting
	for i := range v.NumField() {
		f := v.Type().Field(i)
		variable := f.Tag.Get("env")
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			out = append(out, settingsOf(v.Field(i))...)
		case variable != "":
			// The name of a flag is that of its variable: one thing to remember.
			flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, "LINEKEEPER_")), "_", "-")
			out = append(out, Setting{
				Variable: variable, Flag: flag, Default: f.Tag.Get("default"), Help: f.Tag.Get("help"),
				Secret: f.Type == reflect.TypeFor[config.Secret](), Value: v.Field(i).Interface(),
			})
		}
	}
	return out
}

// Reference is the markdown of all settings: of a process, of this command
// line, and of a room. required are the variables without which a process does
// not start.
func Reference(required []string) (string, error) {
	rooms, err := roomReference()
	if err != nil {
		return "", err
	}
	needed := append([]string{"LINEKEEPER_ADMIN_TOKEN"}, required...)
	return "## Process settings\n\n" + processTable(Settings(config.Process{}), needed) +
		"\n## Command line settings\n\n" + processTable(Settings(Remote{}), needed) +
		"\n## Room settings\n\n" + rooms, nil
}

func processTable(settings []Setting, required []string) string {
	var b strings.Builder
	b.WriteString("| variable | flag | default | what |\n|---|---|---|---|\n")
	for _, s := range settings {
		flag, fallback := "`--"+s.Flag+"`", "none"
		if s.Secret {
			flag = "not a flag"
		}
		switch {
		case s.Default != "":
			fallback = "`" + s.Default + "`"
		case slices.Contains(required, s.Variable):
			fallback = "required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Variable, flag, fallback, cell(s.Help))
	}
	return b.String()
}

// cell keeps a text inside its column.
func cell(s string) string { return strings.ReplaceAll(plain(s), "|", `\|`) }

// property is a setting as the contract of the API has it.
type property struct {
	Description   string   `yaml:"description"`
	Type          any      `yaml:"type"`
	Format        string   `yaml:"format"`
	Minimum       int      `yaml:"minimum"`
	Maximum       int      `yaml:"maximum"`
	MinItems      int      `yaml:"minItems"`
	MaxItems      int      `yaml:"maxItems"`
	MaxProperties int      `yaml:"maxProperties"`
	Enum          []string `yaml:"enum"`
	Pattern       string   `yaml:"pattern"`
}

// roomReference takes names and defaults from package room, and the rest from
// the contract, which tests hold against package room.
func roomReference() (string, error) {
	var doc struct {
		Components struct {
			Schemas struct {
				RoomSettings struct {
					Properties map[string]property `yaml:"properties"`
				} `yaml:"RoomSettings"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(spec.YAML, &doc); err != nil {
		return "", fmt.Errorf("read the contract: %w", err)
	}
	defaults, err := fieldsOf(room.Defaults())
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| setting | default | range | what |\n|---|---|---|---|\n")
	for _, name := range SettingNames() {
		p := doc.Components.Schemas.RoomSettings.Properties[name]
		what := strings.TrimSuffix(p.Description, ".") + "."
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", name, defaults[name], p.values(), cell(what))
	}
	return b.String(), nil
}

// values are the values that a setting can have, in a few words.
func (p property) values() string {
	switch {
	case len(p.Enum) > 0:
		return strings.Join(p.Enum, ", ")
	case p.Type == "boolean":
		return "true, false"
	case p.Format == "date-time":
		return "a time"
	case p.Pattern != "":
		return "a product's sku"
	case p.Type == "number":
		return fmt.Sprintf("%d to %d with at most 3 decimals", p.Minimum, p.Maximum)
	case p.Type == "string":
		return "the name of a time zone"
	case p.MinItems > 0:
		return fmt.Sprintf("%d to %d lanes", p.MinItems, p.MaxItems)
	case p.MaxItems > 0:
		return fmt.Sprintf("at most %d https addresses", p.MaxItems)
	case p.MaxProperties > 0:
		return fmt.Sprintf("at most %d languages", p.MaxProperties)
	default:
		return fmt.Sprintf("%d to %d", p.Minimum, p.Maximum)
	}
}
