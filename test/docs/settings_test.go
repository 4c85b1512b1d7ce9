package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/config"
)

// The page ends with what the binary prints. Package cli's own tests hold that
// against the code.
func TestTheReferenceOfSettingsIsWhatTheBinaryPrints(t *testing.T) {
	t.Parallel()
	in := &installation{t: t, dir: t.TempDir(), env: map[string]string{"PATH": bin(t)}}
	printed := in.run("config", "docs")
	require.Contains(t, printed, "| `batchSize` |")
	page := read(t, "docs/settings.md")
	if strings.HasSuffix(page, "\n"+printed) {
		return
	}
	prose, _, found := strings.Cut(page, "## Process settings\n")
	require.True(t, found)
	fresh := filepath.Join(os.TempDir(), "linekeeper-settings.md")
	require.NoError(t, os.WriteFile(fresh, []byte(prose+printed), 0o600))
	t.Fatalf("docs/settings.md is stale: cp %s docs/settings.md", fresh)
}

// known are all variables that are read.
func known(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{
		config.ConfigVariable: true, "LINEKEEPER_X": true, // any variable
		"LINEKEEPER_TEST_REDIS_URL": true, "LINEKEEPER_TEST_DATABASE_URL": true, // of the harness
	}
	for _, s := range append(cli.Settings(config.Process{}), cli.Settings(cli.Remote{})...) {
		known[s.Variable] = true
	}
	for _, m := range regexp.MustCompile(`\$\{(LINEKEEPER_\w+)`).FindAllStringSubmatch(read(t, "docker-compose.yml"), -1) {
		known[m[1]] = true
	}
	for _, file := range []string{"test/verify/settings_test.go", "test/verify/sim_test.go", "test/fault/point/config.go"} {
		for _, m := range regexp.MustCompile(`"(LINEKEEPER_\w+)"`).FindAllStringSubmatch(read(t, file), -1) {
			known[m[1]] = true // of make verify
		}
	}
	return known
}

func TestEveryVariableThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	known := known(t)
	require.True(t, known["LINEKEEPER_ADMIN_URL"] && known["LINEKEEPER_ADMIN_TOKEN"] && known["LINEKEEPER_REDIS_URL"])
	for _, file := range documents(t) {
		for _, name := range regexp.MustCompile(`LINEKEEPER_[A-Z_]*[A-Z]`).FindAllString(read(t, file), -1) {
			require.True(t, known[strings.TrimSuffix(name, "_FILE")], "%s names %s", file, name)
		}
	}
}

// placeholders stand in addresses for what everybody has another of.
var placeholders = strings.NewReplacer("host:port", "host:1", "/master/db", "/master/1")

func TestEveryAddressOfRedisThatADocumentNamesIsAccepted(t *testing.T) {
	t.Parallel()
	address := regexp.MustCompile("(?m)(?:^|[ `=])((?:redis|rediss|redis-sentinel|rediss-sentinel)://[^\\s`|;]+[^\\s`|;.,])")
	found := 0
	for _, file := range documents(t) {
		for _, m := range address.FindAllStringSubmatch(placeholders.Replace(read(t, file)), -1) {
			address, _, _ := strings.Cut(m[1], "?sslrootcert=") // files of another machine
			_, err := config.RedisOptions(config.URL(address))
			require.NoError(t, err, "%s names %s", file, m[1])
			found++
		}
	}
	require.Greater(t, found, 3)
}

func TestTheSumOfMemoryIsTheDoctors(t *testing.T) {
	t.Parallel()
	source, page := read(t, "internal/doctor/redis.go"), read(t, "docs/operations.md")
	require.Regexp(t, `memberBytes += 260\b`, source)
	require.Regexp(t, `baseBytes += 64 << 20\b`, source)
	require.Regexp(t, `entryShare += 0\.9\b`, source)
	require.Contains(t, page, "(maxWaiting x 260 B + 64 MB) / 0.9 = maxmemory")
	for members, needs := range map[float64]string{100_000: "100,000 needs 99 MB", 1_000_000: "a million about 350 MB"} {
		require.Contains(t, page, needs)
		megabytes := (members*260 + 64<<20) / 0.9 / (1 << 20)
		said, err := strconv.ParseFloat(regexp.MustCompile(`(\d+) MB`).FindStringSubmatch(needs)[1], 64)
		require.NoError(t, err)
		require.InEpsilon(t, megabytes, said, 0.02)
	}
}

func TestEveryRoomSettingThatADocumentNamesExists(t *testing.T) {
	t.Parallel()
	settings := map[string]bool{}
	for _, name := range cli.SettingNames() {
		settings[name] = true
	}
	assignment := regexp.MustCompile("(?:^|[ `])room (?:set|create) [\\w-]+ ((?:[a-zA-Z.]+=\\S*\\s*)+)")
	found := 0
	for _, file := range documents(t) {
		for _, m := range assignment.FindAllStringSubmatch(read(t, file), -1) {
			for _, word := range regexp.MustCompile(`([a-zA-Z]+)(?:\.[a-z]+)?=`).FindAllStringSubmatch(m[1], -1) {
				require.True(t, settings[word[1]], "%s sets %s", file, word[1])
				found++
			}
		}
	}
	require.Greater(t, found, 3)
}
