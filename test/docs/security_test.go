package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestEveryThreatHasATestOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	rows := table(t, section(t, "docs/security.md", "## Threats, answers, tests"))
	require.Len(t, rows, 35)
	for i, row := range rows {
		require.Len(t, row, 4, "%v", row)
		require.Equal(t, fmt.Sprint("S", i+1), row[0], "each threat once, in order")
		require.True(t, testName.MatchString(row[3]) || strings.HasPrefix(row[3], "no test: "), "%s: %s", row[0], row[3])
		require.True(t, testName.MatchString(row[3]) || len(row[3]) > len("no test: ")+10, "%s does not say why it has no test", row[0])
	}
}

// Whoever gets into a process of ours in the stack finds nothing to go on with.
func TestTheStackTakesEveryRightAwayFromItsProcesses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	require.NoError(t, err)
	var stack struct {
		Services map[string]struct {
			Image       string   `yaml:"image"`
			Privileged  bool     `yaml:"privileged"`
			User        string   `yaml:"user"`
			ReadOnly    bool     `yaml:"read_only"`
			CapDrop     []string `yaml:"cap_drop"`
			CapAdd      []string `yaml:"cap_add"`
			SecurityOpt []string `yaml:"security_opt"`
		} `yaml:"services"`
	}
	require.NoError(t, yaml.Unmarshal(text, &stack))
	ours := 0
	for name, s := range stack.Services {
		require.False(t, s.Privileged, name)
		require.Empty(t, s.CapAdd, name)
		if s.Image != "linekeeper:local" {
			continue
		}
		ours++
		require.True(t, s.ReadOnly, "%s may write", name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Equal(t, []string{"no-new-privileges:true"}, s.SecurityOpt, name)
		require.Empty(t, s.User, "%s: the image says who", name)
	}
	require.Equal(t, 3, ours)
	require.Regexp(t, `(?m)^FROM scratch$`, read(t, "Dockerfile"))
	require.Regexp(t, `(?m)^USER 65532:65532$`, read(t, "Dockerfile"))
}
