package docs

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// patience is for what has no promised time but must come.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests that run something wait most of the time.
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "20")
	}
	code := harness.Run(m)
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}

// built is the binary that the documents speak of. Tests have no other way to
// share it; those that only read build nothing.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// buildLine is how the README has it built.
const buildLine = "go build -o bin/linekeeper ./cmd/linekeeper"

// bin is the directory of the binary.
func bin(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		noteSources()
		if built.dir, built.err = os.MkdirTemp("", "linekeeper-docs-"); built.err != nil {
			return
		}
		line := strings.Fields(buildLine)
		cmd := exec.Command(line[0], "build", "-buildvcs=false", "-o", filepath.Join(built.dir, line[3]), line[4])
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%s: %w\n%s", buildLine, err, out)
		}
	})
	require.NoError(t, built.err)
	return filepath.Join(built.dir, "bin")
}

// noteSources looks at all that the binary is built from: go test remembers
// what a test looked at, and would repeat a result of an older binary.
func noteSources() {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && len(d.Name()) > 2 && d.Name()[0] == '.' {
			return fs.SkipDir
		}
		if err == nil && slices.Contains([]string{".go", ".lua", ".sql", ".yaml", ".mod"}, filepath.Ext(path)) {
			_, _ = os.Stat(path)
		}
		return nil
	})
}

// installation is a Linekeeper that is brought up as the documents say.
type installation struct {
	t     *testing.T
	dir   string            // where its commands run; secrets are in it
	env   map[string]string // for its processes and commands
	api   string            // base URLs of the process started last
	admin string
}

// install prepares an installation on the servers of the test binary.
func install(t *testing.T) *installation {
	t.Helper()
	o := harness.Redis(t).Options()
	in := installOn(t, redisURL(o), harness.DSN(t))
	in.env["LINEKEEPER_KEY_PREFIX"] = fmt.Sprintf("docs-%x", time.Now().UnixNano())
	return in
}

func redisURL(o *redis.Options) string {
	login := ""
	if o.Password != "" {
		login = o.Username + ":" + o.Password + "@"
	}
	return fmt.Sprintf("redis://%s%s/%d", login, o.Addr, o.DB)
}

// installOn prepares an installation on these servers.
func installOn(t *testing.T, redis, database string) *installation {
	t.Helper()
	in := &installation{t: t, dir: t.TempDir(), env: map[string]string{
		"PATH":                         bin(t) + ":" + os.Getenv("PATH"),
		"HOME":                         os.Getenv("HOME"),
		"LINEKEEPER_REDIS_URL":         redis,
		"LINEKEEPER_DATABASE_URL":      database,
		"LINEKEEPER_LISTEN":            "127.0.0.1:0",
		"LINEKEEPER_ADMIN_LISTEN":      "127.0.0.1:0",
		"LINEKEEPER_LEADER_TTL":        "2s",
		"LINEKEEPER_SHUTDOWN_DELAY":    "0s",
		"LINEKEEPER_KEYS_FILE":         "secrets/keys",
		"LINEKEEPER_ADMIN_TOKENS_FILE": "secrets/admin-tokens",
		"LINEKEEPER_ADMIN_TOKEN_FILE":  "secrets/admin-token",
	}}
	return in
}

// child is one run of a program.
type child struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err *harness.Output
	done     chan struct{} // closed when it has ended and all output is here
}

// start runs a program of the installation. What is left of it at the end of the
// test is ended.
func (in *installation) start(name string, args ...string) *child {
	in.t.Helper()
	c := &child{t: in.t, cmd: exec.Command(name, args...), out: &harness.Output{}, err: &harness.Output{}, done: make(chan struct{})}
	if !strings.Contains(name, "/") {
		c.cmd.Path, c.cmd.Err = lookPath(in.env["PATH"], name), nil
	}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr, c.cmd.SysProcAttr = in.dir, c.out, c.err, attributes()
	c.cmd.WaitDelay = 5 * time.Second
	for name, value := range in.env {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Linux ends a child with the thread that forked it
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // code tells how it ended
		}
		close(c.done)
	}()
	require.NoError(in.t, <-started)
	in.t.Cleanup(c.stop)
	return c
}

func lookPath(path, name string) string {
	for dir := range strings.SplitSeq(path, ":") {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil && st.Mode()&0o111 != 0 {
			return filepath.Join(dir, name)
		}
	}
	return name
}

// signal reaches the program and all that it runs, as Ctrl-C does.
func (c *child) signal(s syscall.Signal) { _ = syscall.Kill(-c.cmd.Process.Pid, s) }

// stop asks the program to end, and sees that it does.
func (c *child) stop() {
	c.signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(patience):
		c.signal(syscall.SIGKILL)
		c.t.Errorf("%v does not end on SIGTERM:\n%s", c.cmd.Args, c.err)
	}
	if c.t.Failed() && slices.Contains(c.cmd.Args, "serve") {
		c.t.Logf("%v has said:\n%s%.6000s", c.cmd.Args, c.out, c.err.String()[max(0, len(c.err.String())-6000):])
	}
}

// ended waits for the end and returns the exit code.
func (c *child) ended() int {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatalf("%v has not ended:\n%s%s", c.cmd.Args, c.out, c.err)
	}
	return c.cmd.ProcessState.ExitCode()
}

// run runs linekeeper to its end, which must be a good one.
func (in *installation) run(args ...string) string {
	in.t.Helper()
	c := in.start("linekeeper", args...)
	require.Zero(in.t, c.ended(), "linekeeper %v: %s%s", args, c.out, c.err)
	return c.out.String()
}

// script runs a block of sh to its end, which must be a good one.
func (in *installation) script(block string) string {
	in.t.Helper()
	c := in.start("sh", "-e", "-c", block)
	require.Zero(in.t, c.ended(), "%s\n%s%s", block, c.out, c.err)
	return c.out.String()
}

// serve starts a serving process; opening waits until one serves.
func (in *installation) serve() *child {
	in.t.Helper()
	c := in.start("linekeeper", "serve")
	in.opening(c)
	return c
}

// opening waits until the process that c is, or runs, serves and is ready, and
// notes where.
func (in *installation) opening(c *child) {
	in.t.Helper()
	in.api = ""
	harness.Eventually(in.t, patience, "the process serves", func() bool {
		select {
		case <-c.done:
			in.t.Fatalf("it has ended instead of serving:\n%s%s", c.out, c.err)
		default:
		}
		for line := range strings.Lines(c.err.String()) {
			var said struct{ Msg, Public, Admin string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
				in.api, in.admin = "http://"+said.Public, "http://"+said.Admin
			}
		}
		return in.api != ""
	})
	in.env["LINEKEEPER_ADMIN_URL"] = in.admin
}
