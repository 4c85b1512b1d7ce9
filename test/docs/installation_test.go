package docs

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/child"
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

// program is one run of one.
type program struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err *child.Output
	done     <-chan struct{} // closed when it has ended and all output is here
}

// start runs a program of the installation. What is left of it at the end of the
// test is ended.
func (in *installation) start(name string, args ...string) *program {
	in.t.Helper()
	p := &program{t: in.t, cmd: exec.Command(name, args...), out: &child.Output{}, err: &child.Output{}}
	if !strings.Contains(name, "/") {
		p.cmd.Path, p.cmd.Err = lookPath(in.env["PATH"], name), nil
	}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = in.dir, p.out, p.err
	p.cmd.WaitDelay = 5 * time.Second
	for name, value := range in.env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	var err error
	p.done, err = child.Start(p.cmd)
	require.NoError(in.t, err)
	in.t.Cleanup(p.stop)
	return p
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
func (p *program) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// stop asks the program to end, and sees that it does.
func (p *program) stop() {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.signal(syscall.SIGKILL)
		p.t.Errorf("%v does not end on SIGTERM:\n%s", p.cmd.Args, p.err)
	}
	if p.t.Failed() && slices.Contains(p.cmd.Args, "serve") {
		p.t.Logf("%v has said:\n%s%.6000s", p.cmd.Args, p.out, p.err.String()[max(0, len(p.err.String())-6000):])
	}
}

// ended waits for the end and returns the exit code.
func (p *program) ended() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%v has not ended:\n%s%s", p.cmd.Args, p.out, p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// run runs linekeeper to its end, which must be a good one.
func (in *installation) run(args ...string) string {
	in.t.Helper()
	p := in.start("linekeeper", args...)
	require.Zero(in.t, p.ended(), "linekeeper %v: %s%s", args, p.out, p.err)
	return p.out.String()
}

// script runs a block of sh to its end, which must be a good one.
func (in *installation) script(block string) string {
	in.t.Helper()
	p := in.start("sh", "-e", "-c", block)
	require.Zero(in.t, p.ended(), "%s\n%s%s", block, p.out, p.err)
	return p.out.String()
}

// serve starts a serving process; opening waits until one serves.
func (in *installation) serve() *program {
	in.t.Helper()
	p := in.start("linekeeper", "serve")
	in.opening(p)
	return p
}

// opening waits until the process that p is, or runs, serves and is ready, and
// notes where.
func (in *installation) opening(p *program) {
	in.t.Helper()
	in.api = ""
	harness.Eventually(in.t, patience, "the process serves", func() bool {
		select {
		case <-p.done:
			in.t.Fatalf("it has ended instead of serving:\n%s%s", p.out, p.err)
		default:
		}
		for line := range strings.Lines(p.err.String()) {
			var said struct{ Msg, Public, Admin string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
				in.api, in.admin = "http://"+said.Public, "http://"+said.Admin
			}
		}
		return in.api != ""
	})
	in.env["LINEKEEPER_ADMIN_URL"] = in.admin
}
