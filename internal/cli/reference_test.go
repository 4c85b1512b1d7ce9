package cli_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/room"
)

func TestReferenceHasEverySettingWithItsDefaultAndRange(t *testing.T) {
	t.Parallel()
	doc, err := cli.Reference([]string{"LINEKEEPER_KEYS"})
	require.NoError(t, err)
	for _, s := range append(cli.Settings(config.Process{}), cli.Settings(cli.Remote{})...) {
		require.Contains(t, doc, "| `"+s.Variable+"` |")
	}
	require.Regexp(t, "(?m)^\\| `LINEKEEPER_KEYS` \\| not a flag \\| required \\| ", doc)
	require.Regexp(t, "(?m)^\\| `LINEKEEPER_LISTEN` \\| `--listen` \\| `:8080` \\| ", doc)
	require.Regexp(t, "(?m)^\\| `LINEKEEPER_ADMIN_TOKENS` \\| not a flag \\| none \\| ", doc)

	var defaults map[string]json.RawMessage
	text, err := json.Marshal(room.Defaults())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &defaults))
	require.Len(t, cli.SettingNames(), len(defaults))
	for _, name := range cli.SettingNames() {
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| `(.*)` \\| (.+) \\| (.+) \\|$").FindStringSubmatch(doc)
		require.Len(t, row, 4, name)
		require.Equal(t, string(defaults[name]), row[1])
		require.NotEqual(t, "0 to 0", row[2], name)
		require.NotEqual(t, ".", row[3], name)
		if low, high, found := strings.Cut(row[2], " to "); found && !strings.HasSuffix(high, "lanes") {
			_, err := room.MergePatch(room.Defaults(), []byte(`{"`+name+`":"x"}`))
			require.Regexp(t, name+" must be a (whole )?number from "+low+" to "+high+",", err, "the contract and the code differ")
		}
	}
}
