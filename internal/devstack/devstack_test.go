package devstack_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/devstack"
)

func skipMissing(t *testing.T, err error) {
	t.Helper()
	if err != nil && os.Getenv("CI") == "" && strings.Contains(err.Error(), devstack.ErrMissing.Error()) {
		t.Skip("missing part: " + err.Error())
	}
	require.NoError(t, err)
}

func startRedis(t *testing.T, o devstack.Options) *devstack.Proc {
	t.Helper()
	p, err := devstack.StartRedis(t.Context(), o)
	skipMissing(t, err)
	t.Cleanup(p.Close)
	return p
}

func startPostgres(t *testing.T, o devstack.Options) *devstack.Postgres {
	t.Helper()
	p, err := devstack.StartPostgres(t.Context(), o)
	skipMissing(t, err)
	t.Cleanup(p.Close)
	return p
}

// say sends one command to a Redis and returns the first line of its reply.
func say(t *testing.T, p *devstack.Proc, command string) string {
	t.Helper()
	reply, err := tell(p, command)
	require.NoError(t, err)
	return reply
}

// tell is say for a server that may be changing its role: it cuts its clients
// off then.
func tell(p *devstack.Proc, command string) (string, error) {
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	b := make([]byte, 512)
	n, err := c.Read(b)
	return strings.TrimSpace(string(b[:n])), err
}

func TestThrowAwayServerIsGoneWithItsDirectory(t *testing.T) {
	t.Parallel()
	r, pg := startRedis(t, devstack.Options{}), startPostgres(t, devstack.Options{})
	require.Equal(t, r.Addr, net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)))
	for _, p := range []*devstack.Proc{r, pg.Proc} {
		require.DirExists(t, p.Dir)
		p.Close()
		require.NoDirExists(t, p.Dir)
		<-p.Done()
	}
	require.Error(t, devstack.Ping(t.Context(), r.Addr))
}

func TestThrowAwayRedisForgetsAndKeptRedisRemembers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ dir, want string }{{"", "$-1"}, {dir, "$2\r\nme"}} {
		p := startRedis(t, devstack.Options{Dir: c.dir})
		require.Equal(t, "+OK", say(t, p, "SET who me"))
		p.Stop()
		require.NoError(t, p.Start())
		require.Equal(t, c.want, say(t, p, "GET who"), "in dir %q", c.dir)
	}
}

func TestKeptServersAreOpenedAgainByTheNextProcess(t *testing.T) {
	t.Parallel()
	redisDir := t.TempDir()
	r := startRedis(t, devstack.Options{Dir: redisDir})
	require.Equal(t, "+OK", say(t, r, "SET who me"))
	r.Close()
	require.Equal(t, "$2\r\nme", say(t, startRedis(t, devstack.Options{Dir: redisDir}), "GET who"))

	pgDir := reachable(t)
	pg := startPostgres(t, devstack.Options{Dir: pgDir})
	require.NoError(t, pg.CreateDatabase(t.Context(), "shop"))
	require.NoError(t, pg.Exec(t.Context(), "shop", "CREATE TABLE kept ()"))
	pg.Close()
	pg = startPostgres(t, devstack.Options{Dir: pgDir})
	require.NoError(t, pg.CreateDatabase(t.Context(), "shop"), "it is there already")
	require.NoError(t, pg.Exec(t.Context(), "shop", "TABLE kept"))
	require.Contains(t, pg.Log(), "database system is ready", "the log is in the directory")
}

func TestHalfAClusterIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := reachable(t)
	half := filepath.Join(dir, "data.new")
	require.NoError(t, os.MkdirAll(half, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600))
	pg := startPostgres(t, devstack.Options{Dir: dir})
	require.NoError(t, pg.Exec(t.Context(), "postgres", "SELECT 1"))
	require.NoDirExists(t, half)
}

// reachable is a directory that Postgres's user can use.
func reachable(t *testing.T) string {
	t.Helper()
	dir, moved, err := devstack.Reachable(filepath.Join(t.TempDir(), "pg"))
	require.NoError(t, err)
	if moved {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	return dir
}

func TestDurabilityOfBothKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dir, fsync string }{{"", "off"}, {reachable(t), "on"}} {
		pg := startPostgres(t, devstack.Options{Dir: c.dir, Args: []string{"-c", "work_mem=5MB"}})
		require.Equal(t, c.fsync, show(t, pg, "fsync"))
		require.Equal(t, "on", show(t, pg, "synchronous_commit"), "the product refuses anything else")
		require.Equal(t, "200", show(t, pg, "max_connections"))
		require.Equal(t, "5MB", show(t, pg, "work_mem"), "the caller's argument")
	}
}

func show(t *testing.T, pg *devstack.Postgres, setting string) (value string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), pg.DSN("postgres"))
	require.NoError(t, err)
	defer c.Close(t.Context())
	require.NoError(t, c.QueryRow(t.Context(), "SHOW "+setting).Scan(&value))
	return value
}

func TestTwoProcessesCannotUseOneDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startRedis(t, devstack.Options{Dir: dir})
	_, err := devstack.StartRedis(t.Context(), devstack.Options{Dir: dir})
	require.ErrorContains(t, err, "in use by another process")
}

func TestTakenPortIsPassedOver(t *testing.T) {
	t.Parallel()
	first := startRedis(t, devstack.Options{})
	second := startRedis(t, devstack.Options{Port: first.Port})
	require.NotEqual(t, first.Port, second.Port)
	first.Close()
	third := startRedis(t, devstack.Options{Port: first.Port})
	require.Equal(t, first.Port, third.Port, "a free port is used as asked")
}

func TestPausedServerAnswersAgainAfterResume(t *testing.T) {
	t.Parallel()
	r, pg := startRedis(t, devstack.Options{}), startPostgres(t, devstack.Options{})
	c, err := pgx.Connect(t.Context(), pg.DSN("postgres"))
	require.NoError(t, err)
	defer c.Close(context.WithoutCancel(t.Context()))

	r.Pause()
	pg.Pause()
	require.Error(t, devstack.Ping(t.Context(), r.Addr), "a paused server answers")
	answered := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.WithoutCancel(t.Context()), "SELECT 1")
		answered <- err
	}()
	select {
	case <-answered:
		require.Fail(t, "a connection made before the pause is served")
	case <-time.After(200 * time.Millisecond):
	}
	r.Resume()
	pg.Resume()
	require.NoError(t, devstack.Ping(t.Context(), r.Addr))
	require.NoError(t, <-answered)
}

func TestDoneTellsOfADeathNobodyAskedFor(t *testing.T) {
	t.Parallel()
	r := startRedis(t, devstack.Options{})
	before := r.Done()
	proc, err := os.FindProcess(r.Pid())
	require.NoError(t, err)
	require.NoError(t, proc.Kill())
	<-before
	require.NoError(t, r.Start())
	select {
	case <-r.Done():
		require.Fail(t, "the new run has not ended")
	default:
	}
	require.NoError(t, r.Start(), "it runs: nothing to do")
}

func TestManyServersStartAtOnce(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	procs, errs := make([]*devstack.Proc, 12), make([]error, 12)
	for i := range procs {
		// All want the same port: those who lose the race for it try another.
		wg.Go(func() {
			procs[i], errs[i] = devstack.StartRedis(context.WithoutCancel(t.Context()), devstack.Options{Port: 11987})
		})
	}
	wg.Wait()
	ports := map[int]bool{}
	for i, p := range procs {
		skipMissing(t, errs[i])
		t.Cleanup(p.Close)
		require.False(t, ports[p.Port], "two servers on port %d", p.Port)
		ports[p.Port] = true
	}
}

func TestServerThatRefusesItsArgumentsSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := devstack.Find(devstack.RedisServer)
	skipMissing(t, err)
	begun := time.Now()
	_, err = devstack.StartRedis(t.Context(), devstack.Options{Args: []string{"--no-such-setting", "1"}})
	require.ErrorContains(t, err, "no-such-setting")
	require.Less(t, time.Since(begun), 10*time.Second, "nothing to wait for once it ended")
}

func TestCloneIsACopyAndIndependent(t *testing.T) {
	t.Parallel()
	pg := startPostgres(t, devstack.Options{})
	ctx := t.Context()
	require.NoError(t, pg.Template(ctx, "tmpl", func(ctx context.Context, _ string) error {
		return pg.Exec(ctx, "tmpl", "CREATE TABLE seats AS SELECT 1 AS n")
	}))
	require.NoError(t, pg.Clone(ctx, "tmpl", "a"))
	require.NoError(t, pg.Clone(ctx, "tmpl", "b"))
	require.NoError(t, pg.Exec(ctx, "a", "DROP TABLE seats"))
	require.NoError(t, pg.Exec(ctx, "b", "TABLE seats"))
	require.NoError(t, pg.DropDatabase(ctx, "b"))
	require.Error(t, pg.Exec(ctx, "b", "SELECT 1"))
	require.NoError(t, pg.DropDatabase(ctx, "b"), "dropping it twice is fine")
}

func TestReachableKeepsADirectoryThatAnybodyCanPass(t *testing.T) {
	t.Parallel()
	open, err := os.MkdirTemp("/var/tmp", "linekeeper-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(open) })
	dir := filepath.Join(open, "data")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, errors.Join(os.Chmod(open, 0o755), os.Chmod(dir, 0o755))) // whatever the umask says
	used, moved, err := devstack.Reachable(dir)
	require.NoError(t, err)
	require.False(t, moved)
	require.Equal(t, dir, used)
}

func TestReachableMovesOutOfAPrivateDirectory(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root runs Postgres as somebody else")
	}
	private := filepath.Join(t.TempDir(), "private")
	require.NoError(t, os.Mkdir(private, 0o700))
	want := filepath.Join(private, "data")
	used, moved, err := devstack.Reachable(want)
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(used) })
	require.True(t, moved)
	require.True(t, strings.HasPrefix(used, "/var/tmp/linekeeper-"), used)
	again, _, err := devstack.Reachable(want)
	require.NoError(t, err)
	require.Equal(t, used, again, "the data must be found again")

	origin, err := os.ReadFile(filepath.Join(used, "origin"))
	require.NoError(t, err)
	require.Equal(t, want+"\n", string(origin), "make clean finds it by this")

	require.NoError(t, os.RemoveAll(used))
	require.NoError(t, os.Symlink("/tmp", used))
	_, _, err = devstack.Reachable(want)
	require.Error(t, err, "somebody else put a link there")
}

func TestPostgresRefusesADirectoryItsUserCannotReach(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root runs Postgres as somebody else")
	}
	_, err := devstack.Find(devstack.PostgresServer)
	skipMissing(t, err)
	private := filepath.Join(t.TempDir(), "private")
	require.NoError(t, os.Mkdir(private, 0o700))
	_, err = devstack.StartPostgres(t.Context(), devstack.Options{Dir: private})
	require.ErrorContains(t, err, private)
}

func TestReachableFollowsLinksIntoPrivateDirectories(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root runs Postgres as somebody else")
	}
	open, err := os.MkdirTemp("/var/tmp", "linekeeper-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(open) })
	require.NoError(t, os.Chmod(open, 0o755))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(open, "link")))
	used, moved, err := devstack.Reachable(filepath.Join(open, "link", "data"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(used) })
	require.True(t, moved, "%s leads into a directory of root's", used)
}
