package main

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// asCommand in the environment makes the test binary the command itself.
const asCommand = "LINEKEEPER_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(harness.Run(m))
}

// shell runs the command line in this process, with an environment of its own.
type shell struct {
	t   *testing.T
	env map[string]string
}

func newShell(t *testing.T) *shell { return &shell{t, map[string]string{}} }

// said is how a run ended.
type said struct {
	code     int
	out, err string
}

func (s *shell) run(args ...string) said { return s.runWith("", args...) }

func (s *shell) runWith(input string, args ...string) said {
	s.t.Helper()
	var out, err bytes.Buffer
	lookup := func(name string) (string, bool) {
		v, ok := s.env[name]
		return v, ok
	}
	code := run(s.t.Context(), args, lookup, streams{strings.NewReader(input), &out, &err})
	return said{code, out.String(), err.String()}
}

// child is the command line in a process of its own, which can be killed.
type child struct {
	*exec.Cmd
	out, err bytes.Buffer
}

func (s *shell) start(args ...string) *child {
	s.t.Helper()
	c := &child{Cmd: exec.CommandContext(s.t.Context(), os.Args[0], args...)}
	c.Env = []string{asCommand + "=1"}
	for name, value := range s.env {
		c.Env = append(c.Env, name+"="+value)
	}
	c.Stdout, c.Stderr = &c.out, &c.err
	require.NoError(s.t, c.Start())
	return c
}

// ended waits for it.
func (c *child) ended() said {
	_ = c.Wait() // the code tells
	return said{c.ProcessState.ExitCode(), c.out.String(), c.err.String()}
}

// ok is run for what must succeed; it returns what was printed.
func (s *shell) ok(args ...string) string {
	s.t.Helper()
	got := s.run(args...)
	require.Zero(s.t, got.code, "%v: %s", args, got.err)
	return got.out
}

// operated is a shell beside the real operators' API.
func operated(t *testing.T) (*shell, *roomstore.Store, *pgxpool.Pool) {
	t.Helper()
	pool := harness.Database(t)
	store := roomstore.New(pool)
	token, entry, err := admin.NewToken("ann", admin.Admin)
	require.NoError(t, err)
	tokens, err := admin.ParseTokens(entry)
	require.NoError(t, err)
	server := httptest.NewServer(admin.New(admin.Options{
		Store: store, Lines: redisstore.New(harness.Redis(t), "test-"+uuid.NewString()),
		Outbox: outboxAdmin{outbox.NewAdmin(pool)}, Tokens: tokens, Log: slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(server.Close)
	s := newShell(t)
	s.env["LINEKEEPER_ADMIN_URL"] = server.URL
	s.env["LINEKEEPER_ADMIN_TOKEN_FILE"] = written(t, token)
	return s, store, pool
}

// written makes a file and returns its path.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
