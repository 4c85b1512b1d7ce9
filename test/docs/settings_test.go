package docs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/room"
)

// setting is one field of config.Process.
type setting struct {
	variable, flag, fallback string
	secret                   bool
}

// settings walks the struct and what it embeds, in order.
func settings(v reflect.Type) []setting {
	var out []setting
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Anonymous {
			out = append(out, settings(f.Type)...)
			continue
		}
		variable := f.Tag.Get("env")
		flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, "LINEKEEPER_")), "_", "-")
		out = append(out, setting{variable, flag, f.Tag.Get("default"), f.Type == reflect.TypeFor[config.Secret]()})
	}
	return out
}

// noDefault is what the table says where there is none.
var noDefault = []string{"required", "none"}

func TestProcessSettingsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	rows := table(t, section(t, "docs/settings.md", "## Process settings"))
	want := settings(reflect.TypeFor[config.Process]())
	require.Len(t, rows, len(want))
	for i, s := range want {
		row := rows[i]
		require.Len(t, row, 4, "%v", row)
		require.Equal(t, s.variable, code(row[0]))
		if s.secret {
			require.Equal(t, "not a flag", row[1], s.variable)
		} else {
			require.Equal(t, "--"+s.flag, code(row[1]), s.variable)
		}
		if s.fallback == "" {
			require.Contains(t, noDefault, row[2], s.variable)
		} else {
			require.Equal(t, s.fallback, code(row[2]), s.variable)
		}
	}
}

func TestEveryVariableThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	known := map[string]bool{
		config.ConfigVariable: true, "LINEKEEPER_X": true, // any variable
		"LINEKEEPER_TEST_REDIS_URL": true, "LINEKEEPER_TEST_DATABASE_URL": true, // of the harness
	}
	for _, s := range settings(reflect.TypeFor[config.Process]()) {
		known[s.variable] = true
	}
	for _, file := range documents {
		for _, name := range regexp.MustCompile(`LINEKEEPER_[A-Z_]*[A-Z]`).FindAllString(read(t, file), -1) {
			require.True(t, known[strings.TrimSuffix(name, "_FILE")], "%s names %s", file, name)
		}
	}
}

// names are the settings of a room in the order of their JSON.
func names(t *testing.T) []string {
	t.Helper()
	v := reflect.TypeFor[room.Settings]()
	out := make([]string, v.NumField())
	for i := range out {
		out[i] = v.Field(i).Tag.Get("json")
	}
	return out
}

func TestRoomSettingsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	var defaults map[string]json.RawMessage
	b, err := json.Marshal(room.Defaults())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &defaults))

	rows := table(t, section(t, "docs/settings.md", "## Room settings"))
	want := names(t)
	require.Len(t, rows, len(want))
	for i, name := range want {
		row := rows[i]
		require.Len(t, row, 4, "%v", row)
		require.Equal(t, name, code(row[0]))
		require.JSONEq(t, string(defaults[name]), code(row[1]), name)
		checkRange(t, name, row[2])
		require.Equal(t, unbuilt(name), strings.Contains(row[3], "Not yet"), "%s is built, or not: %s", name, row[3])
	}
}

// objection is what is wrong with a setting of that value; empty if nothing is.
func objection(name, value string) string {
	_, err := room.MergePatch(room.Defaults(), fmt.Appendf(nil, `{%q:%s}`, name, value))
	problems, _ := err.(room.Problems)
	for _, p := range problems {
		if p.Field == name {
			return p.Detail
		}
	}
	return ""
}

// checkRange compares what the table says with what a nonsensical value is
// told.
func checkRange(t *testing.T, name, documented string) {
	t.Helper()
	told := objection(name, `"nonsense"`)
	switch {
	case regexp.MustCompile(`^\d+ to \d+$`).MatchString(documented):
		require.Contains(t, told, "must be a whole number from "+documented+",", name)
	case documented == "true, false":
		require.Contains(t, told, "must be true or false", name)
	case documented == "a product's sku":
		require.Contains(t, objection(name, `"no sku"`), "a product's sku", name)
	case documented == "a time":
		require.Contains(t, told, "RFC 3339 time", name)
	case strings.HasPrefix(documented, "at most"):
		require.Contains(t, told+objection(name, many(name)), strings.Join(strings.Fields(documented)[:3], " "), name)
	case strings.HasSuffix(documented, "lanes"):
		require.Contains(t, objection(name, `[]`), documented, name)
	default:
		require.Contains(t, told, fmt.Sprintf("must be one of %q", strings.Split(documented, ", ")), name)
	}
}

// many is a value with more entries than any setting takes.
func many(name string) string {
	if name == "message" {
		var texts []string
		for i := range 21 {
			texts = append(texts, fmt.Sprintf(`"a%c":"x"`, 'a'+i))
		}
		return "{" + strings.Join(texts, ",") + "}"
	}
	return "[" + strings.Repeat(`"https://example.com",`, 20) + `"https://example.com"]`
}

// unbuilt tells whether this version refuses every value but one.
func unbuilt(name string) bool {
	for _, value := range []string{
		"true", "1", `"boost"`, `"open"`, `"strict"`, `[{"name":"a","weight":1},{"name":"b","weight":1}]`,
	} {
		if strings.Contains(objection(name, value), "in this version") {
			return true
		}
	}
	return false
}
