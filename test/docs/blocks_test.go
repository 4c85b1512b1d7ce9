package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// The first lines of blocks that are run.
const (
	pasteLine   = "API=http://127.0.0.1:8080 ADMIN=http://127.0.0.1:8081 ADMIN_TOKEN=$(sed 1q .linekeeper/admin-token)"
	operateLine = "export LINEKEEPER_ADMIN_TOKEN_FILE=secrets/admin-token"
	loadLine    = "export LINEKEEPER_ADMIN_TOKEN_FILE=.linekeeper/admin-token"
	applyLine   = "cat > rooms.yaml <<'YAML'"
	rotateLine  = "# 1. The new key comes last: every process has to know it before one signs with it."
	dumpLine    = `pg_dump --format=custom --file=linekeeper.dump "$LINEKEEPER_DATABASE_URL"`
	realLine    = "go test ./test/pace -count 1 -timeout 30m -v -run Real -args -crowd 50000 -for 5m"
	marksLine   = "go test ./test/pace -count 1 -v -run Marks -args -crowd 1000000"
	restoreLine = "# All processes are stopped. Room by room, what is in Redis will be replaced."
)

// blocks are all blocks of sh in the documents, by their first lines, each with
// the test that runs it or the reason why none does.
var blocks = []struct{ file, first, runBy, notRun string }{
	{"README.md", "make run", "", "runs until it is stopped; the tests of `linekeeper dev` in test/e2e run what it starts"},
	{"README.md", pasteLine, "TestTheBlockToPasteOrders", ""},
	{"README.md", "make up", "", "needs a container engine; test/stack brings the same up where there is one"},
	{"README.md", buildLine, "TestTheReadmeBringsUpAServer", ""},
	{"README.md", operateLine, "TestTheReadmeBringsUpAServer", ""},
	{"README.md", "make test", "", "it is what runs this"},
	{"CONTRIBUTING.md", "make test", "", "it is what runs this"},
	{"docs/clients.md", "#!/bin/sh", "TestEveryClientBuysOnceThroughAllThatGoesWrongAndLeavesWhenStopped", ""},
	{"docs/draw.md", verifyLine, "TestADrawIsVerifiedAsWritten", ""},
	{"docs/draw.md", byHandLine, "TestADrawIsCheckedByHandAsWritten", ""},
	{"docs/pace.md", realLine, "", "keeps both cores busy for minutes; a small one runs with the tests of test/pace"},
	{"docs/pace.md", marksLine, "", "takes a million members; of 100,000 each it runs with the tests of test/pace"},
	{"docs/load.md", loadLine, "TestALoadIsReportedAsWritten", ""},
	{"docs/operations.md", applyLine, "TestRoomsOfAFileAreAppliedOnce", ""},
	{"docs/operations.md", rotateLine, "TestKeysAreRotatedAsWritten", ""},
	{"docs/operations.md", tokenLine, "TestMembersAreKeptOutAsWritten", ""},
	{"docs/operations.md", keepOutLine, "TestMembersAreKeptOutAsWritten", ""},
	{"docs/operations.md", dumpLine, "TestRestoreOfAnOlderPostgresIsAsWritten", ""},
	{"docs/operations.md", restoreLine, "TestRestoreOfAnOlderPostgresIsAsWritten", ""},
}

func TestEveryShellBlockIsRunOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	left := map[string]int{}
	for _, b := range blocks {
		require.True(t, (b.runBy == "") != (b.notRun == ""), "%s: %s", b.file, b.first)
		left[b.file+"\n"+b.first]++
	}
	for _, file := range documents(t) {
		for _, m := range block("sh").FindAllStringSubmatch(read(t, file), -1) {
			first, _, _ := strings.Cut(m[1], "\n")
			left[file+"\n"+first]--
			require.Zero(t, left[file+"\n"+first], "the block of %s that begins with %q is not in the table, or another one begins so", file, first)
		}
	}
	for key, n := range left {
		require.Zero(t, n, "no document has this block: %s", key)
	}
	known := allTests(t)
	for _, b := range blocks {
		require.True(t, b.runBy == "" || known[b.runBy], b.runBy)
	}
}

// shell is the block of a document that begins with a line.
func shell(t *testing.T, file, first string) string {
	t.Helper()
	for _, m := range block("sh").FindAllStringSubmatch(read(t, file), -1) {
		if strings.HasPrefix(m[1], first+"\n") {
			return m[1]
		}
	}
	t.Fatalf("%s has no block that begins with %s", file, first)
	return ""
}

// needs skips a test where one of the programs is missing.
func (in *installation) needs(programs ...string) {
	in.t.Helper()
	for _, p := range programs {
		if lookPath(in.env["PATH"], p) == p {
			in.t.Skip(harness.MissingPart + p)
		}
	}
}

func TestTheBlockToPasteIsTheOneThatDevPrints(t *testing.T) {
	t.Parallel()
	printed := regexp.MustCompile("(?s)var block = .*?Parse\\(`(.*?)`\\)").FindStringSubmatch(read(t, "cmd/linekeeper/welcome.go"))
	require.Len(t, printed, 2, "welcome.go has its block")
	var want strings.Builder
	err := template.Must(template.New("").Parse(printed[1])).Execute(&want, map[string]string{
		"Public": "http://127.0.0.1:8080", "Admin": "http://127.0.0.1:8081", "Token": "$(sed 1q .linekeeper/admin-token)",
	})
	require.NoError(t, err)
	require.Equal(t, want.String(), shell(t, "README.md", pasteLine))
}

func TestTheBlockToPasteOrders(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.needs("curl")
	in.run("setup", "--secrets", ".linekeeper")
	in.env["LINEKEEPER_KEYS_FILE"], in.env["LINEKEEPER_ADMIN_TOKENS_FILE"] = ".linekeeper/keys", ".linekeeper/admin-tokens"
	in.env["LINEKEEPER_ADMIN_TOKEN_FILE"] = ".linekeeper/admin-token"
	in.serve()
	in.awaitRoom("default")
	block := shell(t, "README.md", pasteLine)
	block = strings.NewReplacer("API=http://127.0.0.1:8080", "API="+in.api, "ADMIN=http://127.0.0.1:8081", "ADMIN="+in.admin).Replace(block)
	said := strings.Split(strings.TrimSpace(in.script(block)), "\n")
	shown := strings.Split(strings.TrimSpace(afterwards(t)), "\n")
	require.Len(t, said, len(shown))
	for i, status := range []string{`"status":"WAITING"`, `"status":"READY"`, `"totalCents":1990`, `"batchSize":100`} {
		require.Contains(t, said[i], status)
		require.Contains(t, shown[i], status)
		require.Equal(t, fieldsIn(t, said[i]), fieldsIn(t, strings.Replace(shown[i], `"intervalMs":1000,...`, `"intervalMs":1000`, 1)), "the README shows other fields")
	}
}

func TestALoadIsReportedAsWritten(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run("setup", "--secrets", ".linekeeper")
	in.env["LINEKEEPER_KEYS_FILE"], in.env["LINEKEEPER_ADMIN_TOKENS_FILE"] = ".linekeeper/keys", ".linekeeper/admin-tokens"
	in.env["LINEKEEPER_ADMIN_TOKEN_FILE"] = ".linekeeper/admin-token"
	in.env["LINEKEEPER_TRUSTED_PROXIES"] = "127.0.0.1/32" // as dev has it
	in.serve()
	in.awaitRoom("default")
	said := in.script(strings.Replace(shell(t, "docs/load.md", loadLine), "linekeeper load", "linekeeper load --url "+in.api, 1))
	for _, row := range table(t, section(t, "docs/load.md", "## What is judged")) {
		require.Regexp(t, regexp.QuoteMeta(row[0])+` +\d+ +(kept|not judged: nothing happened)`, said)
	}
	require.Contains(t, said, "200 of 200")
	require.FileExists(t, filepath.Join(in.dir, "load.json"))
	require.FileExists(t, filepath.Join(in.dir, "load.html"))
}

// afterwards is what the README says that the block answers.
func afterwards(t *testing.T) string {
	t.Helper()
	_, text, found := strings.Cut(section(t, "README.md", "## Try it in 60 seconds"), "It answers (")
	require.True(t, found)
	return block("").FindStringSubmatch(text)[1]
}

// fieldsIn are the names of an object's fields, in their order of the alphabet.
func fieldsIn(t *testing.T, text string) []string {
	t.Helper()
	var v map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &v), "%s", text)
	return sorted(v)
}

func TestTheReadmeBringsUpAServer(t *testing.T) {
	t.Parallel()
	in := install(t)
	require.NoError(t, os.Symlink(bin(t), filepath.Join(in.dir, "bin")))
	for _, name := range []string{"LINEKEEPER_KEYS_FILE", "LINEKEEPER_ADMIN_TOKENS_FILE", "LINEKEEPER_ADMIN_TOKEN_FILE"} {
		delete(in.env, name) // the blocks set them
	}
	up := shell(t, "README.md", buildLine)
	up = strings.NewReplacer(
		buildLine, "test -x bin/linekeeper", // built so already, once for all tests
		"postgres://linekeeper:secret@db:5432/linekeeper", "'"+in.env["LINEKEEPER_DATABASE_URL"]+"'",
		"redis://redis:6379", "'"+in.env["LINEKEEPER_REDIS_URL"]+"'",
	).Replace(up)
	require.NotContains(t, up, "secret@db")
	in.opening(in.start("sh", "-e", "-c", up))
	settings, _, _ := strings.Cut(up[strings.Index(up, "export LINEKEEPER_DATABASE"):], "linekeeper serve")
	in.env["LINEKEEPER_ADMIN_TOKEN_FILE"] = "secrets/admin-token"
	in.awaitRoom("default")
	said := in.script(settings + shell(t, "README.md", operateLine))
	for _, line := range []string{
		`(?m)^ok +redis rights `, `(?m)^stock +500$`, `(?m)^room tickets is at version 1, sale 1: 20 per 1s`,
		`(?m)^room tickets is at version 2, sale 1: 40 per 1s`, `(?m)^oneOrderPerMember +true `, `batchSize 20 -> 40`,
	} {
		require.Regexp(t, line, said)
	}
}

// awaitRoom waits until the room has begun.
func (in *installation) awaitRoom(name string) {
	in.t.Helper()
	harness.Eventually(in.t, patience, "the room has begun", func() bool {
		c := in.start("linekeeper", "room", "stats", name)
		return c.ended() == 0
	})
}

func TestRoomsOfAFileAreAppliedOnce(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run("setup", "--secrets", "secrets")
	in.serve()
	said := in.script(shell(t, "docs/operations.md", applyLine))
	require.Equal(t, 2, strings.Count(said, "create room tickets"), "planned, and done: %s", said)
	require.Equal(t, 1, strings.Count(said, "unchanged room tickets"), "%s", said)
	require.Regexp(t, `(?m)^maxWaiting +200000 `, in.run("room", "get", "tickets"))
}

func TestKeysAreRotatedAsWritten(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.run("setup", "--secrets", "secrets")
	old, _, _ := strings.Cut(in.run("keys", "list", "-o", "json"), "]")
	said := in.script(shell(t, "docs/operations.md", rotateLine))
	rings := regexp.MustCompile(`keys (\w+(?:,\w+)*); the first signs`).FindAllStringSubmatch(said, -1)
	require.Len(t, rings, 3, "%s", said)
	first, second, _ := strings.Cut(rings[0][1], ",")
	require.Contains(t, old, first)
	require.NotEmpty(t, second)
	require.Equal(t, second+","+first, rings[1][1])
	require.Equal(t, second, rings[2][1])
	require.Contains(t, in.run("keys", "list", "-o", "json"), second)
}
