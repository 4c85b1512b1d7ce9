package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/doctor"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// words splits a line as a shell would, as far as the examples need it, and
// leaves out settings in front and redirections behind.
func words(example string) []string {
	example = regexp.MustCompile(`^(\S+=\S+ )*linekeeper `).ReplaceAllString(example, "")
	example = regexp.MustCompile(` [<>] .*$`).ReplaceAllString(example, "")
	var out []string
	for _, w := range regexp.MustCompile(`(?:[^ "]|"[^"]*")+`).FindAllString(example, -1) {
		out = append(out, strings.ReplaceAll(w, `"`, ""))
	}
	return out
}

func TestEveryCommandHasAnExampleThatParses(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"LINEKEEPER_ADMIN_TOKEN": "token", "LINEKEEPER_KEYS": credential.GenerateKey(),
		"LINEKEEPER_REDIS_URL": "redis://r", "LINEKEEPER_DATABASE_URL": "postgres://p/d",
	}
	lookup := func(name string) (string, bool) { return env[name], env[name] != "" }
	s := newShell(t)
	k, err := config.Parse(&cli{}, []string{"version"}, lookup, kong.PostBuild(withExamples))
	require.NoError(t, err)
	left := len(examples)
	_ = kong.Visit(k.Model, func(v kong.Visitable, next kong.Next) error {
		if n, ok := v.(*kong.Node); ok && n.Type == kong.CommandNode && len(n.Children) == 0 {
			path := commandPath(n)
			require.NotEmpty(t, examples[path], "linekeeper %s has no example", path)
			require.Contains(t, n.Detail, examples[path])
			args := words(examples[path])
			if path == "config check" {
				args = args[:2] // the file is not here
			}
			parsed, err := config.Parse(&cli{}, args, lookup)
			require.NoError(t, err, "%s: %v", path, args)
			require.True(t, strings.HasPrefix(parsed.Command(), path), "the example of %s runs %s", path, parsed.Command())
			left--
		}
		return next(nil)
	})
	require.Zero(t, left, "there are examples of commands that do not exist")
	for path := range more {
		require.Contains(t, s.ok(append(strings.Fields(path), "--help")...), strings.Fields(more[path])[0])
	}
}

func TestTokenIsTakenFromStandardInputAlone(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	key := credential.GenerateKey()
	ring, err := credential.ParseRing(key)
	require.NoError(t, err)
	signed, err := ring.SignTicket(credential.Ticket{Room: "sale", Sale: 1, Generation: 1, Member: "bob",
		Place: queue.Place{Score: 5}, IssuedAt: time.Now()})
	require.NoError(t, err)
	ticket := signed.Reveal()

	got := s.runWith(ticket, "token", "inspect")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "NOT VERIFIED")
	require.Contains(t, s.runWith(ticket, "token", "inspect", "-", "-o", "json").out, `"verified":false`)
	got = s.run("token", "inspect", ticket)
	require.Equal(t, 2, got.code)
	require.NotContains(t, got.err, ticket)

	require.Equal(t, 2, s.runWith(ticket, "token", "verify").code, "no keys")
	s.env["LINEKEEPER_KEYS"] = key
	got = s.runWith(ticket, "token", "verify", "-o", "json")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, `"verified":true`)
	forged := ticket[:len(ticket)-2] + "AA"
	got = s.runWith(forged, "token", "verify")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "not valid")
	s.env["LINEKEEPER_KEYS"] = credential.GenerateKey()
	require.Equal(t, 1, s.runWith(ticket, "token", "verify").code, "another's key")
}

func TestKeysAreListedByTheirIdsOnly(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	first, second := credential.GenerateKey(), credential.GenerateKey()
	s.env["LINEKEEPER_KEYS"] = first + "," + second
	out := s.ok("keys", "list") + s.ok("keys", "list", "-o", "json")
	for _, key := range []string{first, second} {
		id, secret, _ := strings.Cut(key, ":")
		require.Contains(t, out, id)
		require.NotContains(t, out, secret)
	}
	id, _, _ := strings.Cut(first, ":")
	require.Regexp(t, `(?m)^`+id+` +signs and verifies$`, out)
	s.env["LINEKEEPER_KEYS"] = "k1:hunter2"
	got := s.run("keys", "list")
	require.Equal(t, 2, got.code)
	require.NotContains(t, got.err, "hunter2")
}

func TestConfigPrintShowsWhereEachSettingComesFrom(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := written(t, "leader-ttl: 7s\nlisten: :9\nkey-prefix: yaml\n")
	s.env["LINEKEEPER_KEY_PREFIX"] = "env"
	s.env["LINEKEEPER_KEYS_FILE"] = written(t, "k1:hunter2")
	s.env["LINEKEEPER_DATABASE_URL"] = "postgres://me:hunter2@p/d"
	s.env["LINEKEEPER_TRUSTED_PROXIES"] = "10.0.0.0/8,10.1.0.0/16"
	out := s.ok("config", "print", "--config", file, "--listen", ":1", "-o", "json")
	require.NotContains(t, out, "hunter2")
	var got struct {
		Settings []shownSetting `json:"settings"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	of := map[string]shownSetting{}
	for _, v := range got.Settings {
		of[v.Setting] = v
	}
	for _, want := range []shownSetting{
		{"LINEKEEPER_LISTEN", ":1", "--listen"},
		{"LINEKEEPER_KEY_PREFIX", "env", "LINEKEEPER_KEY_PREFIX"},
		{"LINEKEEPER_KEYS", "REDACTED", "LINEKEEPER_KEYS_FILE"},
		{"LINEKEEPER_LEADER_TTL", "7s", file},
		{"LINEKEEPER_DATABASE_URL", "postgres://me:REDACTED@p/d", "LINEKEEPER_DATABASE_URL"},
		{"LINEKEEPER_TRUSTED_PROXIES", "10.0.0.0/8,10.1.0.0/16", "LINEKEEPER_TRUSTED_PROXIES"},
		{"LINEKEEPER_IDENTITY", "ticket", "default"},
		{"LINEKEEPER_ROLES", "api,scheduler,relay", "default"},
		{"LINEKEEPER_REDIS_URL", "", "not set"},
	} {
		require.Equal(t, want, of[want.Setting])
	}
	require.Regexp(t, `(?m)^LINEKEEPER_REDIS_URL +- +not set$`, s.ok("config", "print"))
}

func TestConfigCheckTellsAllThatServeWould(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env["LINEKEEPER_KEYS"] = "k1:short"
	got := s.run("config", "check")
	require.Equal(t, 2, got.code)
	require.Equal(t, s.run("serve").err, got.err)
	for _, name := range []string{"LINEKEEPER_REDIS_URL: is required", "LINEKEEPER_DATABASE_URL: is required", "LINEKEEPER_KEYS: key 1"} {
		require.Contains(t, got.err, name)
	}
	s.env["LINEKEEPER_KEYS"] = credential.GenerateKey()
	s.env["LINEKEEPER_REDIS_URL"], s.env["LINEKEEPER_DATABASE_URL"] = "redis://r", "postgres://p/d"
	require.Contains(t, s.ok("config", "check"), "complete and valid")
}

func TestConfigDocsKnowWhatIsRequired(t *testing.T) {
	t.Parallel()
	out := newShell(t).ok("config", "docs")
	require.Equal(t, []string{"LINEKEEPER_REDIS_URL", "LINEKEEPER_DATABASE_URL", "LINEKEEPER_KEYS"}, required())
	require.Equal(t, 4, strings.Count(out, "| required |"), "those, and the operator's token")
}

func TestHealthcheckAsksTheProcessOnThisMachine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	ready := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready {
			problem.Write(w, r, problem.New("unavailable").WithDetail("Missing: redis."))
		}
	}))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	s.env["HTTP_PROXY"] = "http://127.0.0.1:1"
	for _, listen := range []string{":" + port, "0.0.0.0:" + port, "127.0.0.1:" + port} {
		s.env["LINEKEEPER_LISTEN"] = listen
		require.Equal(t, "ready\n", s.ok("healthcheck"), listen)
	}
	ready = false
	got := s.run("healthcheck")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "not ready: http://127.0.0.1:"+port+"/readyz answers 503 Missing: redis.")
	require.Equal(t, 1, strings.Count(got.err, "\n"), "one line")
	server.Close()
	got = s.run("healthcheck")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "not ready: ")
	s.env["LINEKEEPER_LISTEN"] = "127.0.0.1:0"
	require.Equal(t, 2, s.run("healthcheck").code)
	require.Equal(t, "[::1]:80", loopback("[::]:80"))
}

// completed asks bash what it would offer behind these words.
func completed(t *testing.T, script string, words ...string) []string {
	t.Helper()
	line := `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _linekeeper; printf '%s\n' "${COMPREPLY[@]}"`
	out, err := exec.Command("bash", append([]string{"-c", line, "bash", script}, words...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.Fields(string(out))
}

func TestBashCompletesCommandsFlagsAndValues(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(harness.MissingPart + "bash")
	}
	script := written(t, newShell(t).ok("completion", "bash"))
	require.Subset(t, completed(t, script, "linekeeper", ""), []string{"serve", "room", "doctor", "--config"})
	require.Equal(t, []string{"doctor"}, completed(t, script, "linekeeper", "doc"))
	require.Equal(t, []string{"get"}, completed(t, script, "linekeeper", "room", "g"))
	require.Equal(t, []string{"table", "json"}, completed(t, script, "linekeeper", "room", "list", "-o", ""))
	require.Equal(t, []string{"dead", "pending", "done"}, completed(t, script, "linekeeper", "outbox", "list", "--status", ""))
	require.Equal(t, []string{"--if-version"}, completed(t, script, "linekeeper", "room", "set", "tickets", "--if"))
	require.Equal(t, []string{"--dry-run"}, completed(t, script, "linekeeper", "--config", "x", "room", "apply", "--dry"))
}

func TestEveryShellGetsTheWholeCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := s.ok("completion", shell)
		for path := range examples {
			require.Contains(t, script, "'"+path+"'", "%s does not know %s", shell, path)
		}
		if _, err := exec.LookPath(shell); err == nil {
			out, err := exec.Command(shell, "-n", written(t, script)).CombinedOutput()
			require.NoError(t, err, "%s: %s", shell, out)
		}
	}
}

func TestSetupMakesWhatIsMissingAndKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	db, dir := harness.Database(t), filepath.Join(t.TempDir(), "secrets")
	s.env["LINEKEEPER_DATABASE_URL"] = harness.DSN(t)
	_, err := db.Exec(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
	require.NoError(t, err)

	out := s.ok("setup", "--secrets", dir)
	require.Contains(t, out, "applied 00001_init.sql")
	require.Contains(t, out, "linekeeper admin-token show "+dir)
	store := roomstore.New(db)
	_, err = store.Get(t.Context(), "default")
	require.NoError(t, err)
	p, err := store.Product(t.Context(), "demo")
	require.NoError(t, err)

	before := map[string]string{}
	for _, name := range []string{keysFile, adminTokenFile, adminEntryFile} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		before[name] = string(b)
		st, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.EqualValues(t, 0o600, st.Mode().Perm())
		if os.Geteuid() == 0 {
			require.EqualValues(t, 65532, st.Sys().(*syscall.Stat_t).Uid, "the image's user must be able to read %s", name)
		}
	}
	_, err = credential.ParseRing(strings.TrimSpace(before[keysFile]))
	require.NoError(t, err)
	_, err = admin.ParseTokens(strings.TrimSpace(before[adminEntryFile]))
	require.NoError(t, err)
	require.Equal(t, before[adminTokenFile], s.ok("admin-token", "show", dir))

	p.Stock = 3
	_, _, err = store.PutProduct(t.Context(), p, 0, room.Actor{Name: "ann"})
	require.NoError(t, err)
	require.NotContains(t, s.ok("setup", "--secrets", dir), "applied")
	for name, text := range before {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, text, string(b), name)
	}
	p, err = store.Product(t.Context(), "demo")
	require.NoError(t, err)
	require.EqualValues(t, 3, p.Stock, "what is sold is not put back")
}

func TestSetupWaitsForPostgresOnlySoLong(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env["LINEKEEPER_DATABASE_URL"] = "postgres://me:hunter2@127.0.0.1:1/d"
	got := s.run("setup", "--secrets", t.TempDir(), "--within", "10ms")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "postgres does not answer within 10ms")
	require.NotContains(t, got.err, "hunter2")
}

func TestDoctorFailsWhereACheckDoes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env["LINEKEEPER_DATABASE_URL"] = harness.DSN(t)
	s.env["LINEKEEPER_REDIS_URL"] = "redis://" + harness.RedisServer(t).Addr
	s.env["LINEKEEPER_KEYS"] = credential.GenerateKey()
	got := s.run("doctor")
	require.Equal(t, 1, got.code)
	require.Regexp(t, `(?m)^FAIL  leader  .* -> start a process with the role scheduler`, got.out)
	require.Regexp(t, `(?m)^ok    redis version `, got.out)
	require.Contains(t, got.err, "1 of 22 checks failed")

	s.env["LINEKEEPER_LEADER_TTL"] = "0"
	var report doctor.Report
	require.NoError(t, json.Unmarshal([]byte(s.ok("doctor", "-o", "json")), &report))
	require.Zero(t, report.Count(doctor.Fail))
	require.Len(t, report.Checks, 22)

	delete(s.env, "LINEKEEPER_REDIS_URL")
	got = s.run("doctor")
	require.Equal(t, 1, got.code, "missing settings are findings, not wrong use")
	require.Contains(t, got.out, "LINEKEEPER_REDIS_URL: is required")
}

func TestMigrationsAreListed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env["LINEKEEPER_DATABASE_URL"] = harness.DSN(t)
	require.Regexp(t, `(?m)^00001_init\.sql +applied `, s.ok("migrate", "status"))
	require.Contains(t, s.ok("migrate", "status", "-o", "json"), `"name":"00001_init.sql"`)
}
