package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// commands are all commands of the binary, as "room set".
func commands(t *testing.T) map[string]bool {
	t.Helper()
	in := &installation{t: t, dir: t.TempDir(), env: map[string]string{"PATH": bin(t)}}
	_, list, found := strings.Cut(in.run("--help"), "\nCommands:\n")
	require.True(t, found)
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]\S*(?: [a-z]\S*)*)`).FindAllStringSubmatch(list, -1) {
		names[m[1]] = true
	}
	return names
}

var commandCall = regexp.MustCompile("(?m)(?:^(?:    |bin/)?|`)linekeeper ([a-z-]+)(?: ([a-z]+))?")

func TestEveryCommandThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	known := commands(t)
	require.True(t, known["serve"] && known["admin-token new"] && known["room set"] && known["completion fish"])
	groups := map[string]bool{}
	for name := range known {
		if group, _, nested := strings.Cut(name, " "); nested {
			groups[group] = true
		}
	}
	for _, file := range documents(t) {
		for _, m := range commandCall.FindAllStringSubmatch(read(t, file), -1) {
			alone := !groups[m[1]] && known[m[1]]
			require.True(t, alone || known[m[1]+" "+m[2]], "%s names %s", file, m[0])
		}
	}
}

func TestTheReadmeHasEveryCommandAndNoOther(t *testing.T) {
	t.Parallel()
	var named []string
	for _, row := range table(t, section(t, "README.md", "## Commands")) {
		for _, m := range regexp.MustCompile("`([a-z][a-z -]*)`").FindAllStringSubmatch(row[0], -1) {
			named = append(named, m[1])
		}
	}
	require.ElementsMatch(t, sorted(commands(t)), named)
}
