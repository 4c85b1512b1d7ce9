package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// buys lets somebody go through a room with the client of docs/clients.md, and
// returns the id of the order.
func (in *installation) buys(t *testing.T, room string) string {
	t.Helper()
	c := in.client(t, "## sh and curl", "sh", "buy.sh")
	c.env = map[string]string{"PATH": in.env["PATH"], "API": in.api, "ROOM": room}
	p := c.start("sh", "buy.sh")
	require.Zero(t, p.ended(), "%s%s", p.out, p.err)
	return strings.TrimSpace(p.out.String())
}

// What docs/operations.md says of a Postgres that is restored to an older state.
func TestRestoreOfAnOlderPostgresIsAsWritten(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.needs("pg_dump", "pg_restore", "psql", "curl")
	in.run("setup", "--secrets", "secrets")
	serving := in.serve()
	before := in.buys(t, "default")
	in.script(shell(t, "docs/operations.md", dumpLine))

	after := in.buys(t, "default")
	require.NotEqual(t, before, after)
	in.run("room", "flush", "default", "--confirm", "default")
	harness.Eventually(t, patience, "the new sale has begun", func() bool {
		return regexp.MustCompile(`(?m)^sale +2 `).MatchString(in.run("room", "stats", "default"))
	})
	serving.stop()
	restore := shell(t, "docs/operations.md", restoreLine)
	dump, raise, found := strings.Cut(restore, "# The next generation must be")
	require.True(t, found)
	in.script(dump)

	serving = in.serve()
	d := in.start("linekeeper", "doctor")
	require.Equal(t, 1, d.ended())
	require.Regexp(t, `(?m)^FAIL +room in redis default +Redis is at generation \d+, Postgres at 1 `, d.out.String())
	harness.Eventually(t, patience, "the log says that ticks fail", func() bool { return strings.Contains(serving.err.String(), `"tick failed"`) })
	serving.stop()

	in.script("# The next generation must be" + raise)
	in.serve()
	in.run("room", "flush", "default", "--confirm", "default")
	harness.Eventually(t, patience, "the new sale has begun", func() bool {
		return regexp.MustCompile(`generation \d{7},`).MatchString(in.run("room", "stats", "default"))
	})
	require.NotEmpty(t, in.buys(t, "default"), "people get through again")
	have := in.script(`psql -At "$LINEKEEPER_DATABASE_URL" -c "SELECT id FROM orders"`)
	require.Contains(t, have, before)
	require.NotContains(t, have, after, "an order of after the backup is gone, as the document says")
}
