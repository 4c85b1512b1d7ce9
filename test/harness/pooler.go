package harness

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// sessionSettings are what PgBouncer has to be told to ignore before a connection
// of ours gets through.
var sessionSettings = []string{"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"}

// Poolers puts connection poolers in front of a database, gone at the end of the
// test, and returns the database's address behind each, by what each is. Two
// stand-ins are always there: one refuses the settings of a session in the words
// of PgBouncer, the other drops them. Where PgBouncer is installed it is there
// too, in both ways, pooling transactions.
func Poolers(t testing.TB, dsn string) map[string]string {
	t.Helper()
	conf, err := pgx.ParseConfig(dsn)
	must(t, err)
	found := map[string]string{
		"stand-in that refuses": standIn(t, conf, refuseSettings),
		"stand-in that ignores": standIn(t, conf, dropSettings),
	}
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		found["PgBouncer"] = pgBouncer(t, path, conf, "")
		found["PgBouncer that ignores"] = pgBouncer(t, path, conf, "ignore_startup_parameters="+strings.Join(sessionSettings, ",")+"\n")
	}
	for name, addr := range found {
		u := url.URL{Scheme: "postgres", User: url.UserPassword(conf.User, conf.Password), Host: addr, Path: conf.Database, RawQuery: "sslmode=disable"}
		found[name] = u.String()
	}
	return found
}

// beginning looks at the settings that a client sends first. It may change them,
// or refuse them in so many words.
type beginning func(settings map[string]string) (refusal string)

func refuseSettings(settings map[string]string) string {
	for _, name := range sessionSettings {
		if _, sent := settings[name]; sent {
			return "unsupported startup parameter: " + name
		}
	}
	return ""
}

func dropSettings(settings map[string]string) string {
	for _, name := range sessionSettings {
		delete(settings, name)
	}
	return ""
}

// standIn listens, looks at the beginning of each connection, and passes the rest
// on to the server.
func standIn(t testing.TB, conf *pgx.ConnConfig, begin beginning) string {
	t.Helper()
	server := net.JoinHostPort(conf.Host, fmt.Sprint(conf.Port))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go pass(c, server, begin)
		}
	}()
	return l.Addr().String()
}

func pass(c net.Conn, server string, begin beginning) {
	defer c.Close()
	client := pgproto3.NewBackend(c, c)
	first, err := client.ReceiveStartupMessage()
	start, ok := first.(*pgproto3.StartupMessage) // else it asks to cancel something
	if err != nil || !ok {
		return
	}
	if refusal := begin(start.Parameters); refusal != "" {
		client.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "08P01", Message: refusal})
		_ = client.Flush() // it has gone, or reads it
		return
	}
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer up.Close()
	front := pgproto3.NewFrontend(up, up)
	front.Send(start)
	if front.Flush() != nil {
		return
	}
	go func() {
		_, _ = io.Copy(up, c)
		_ = up.Close()
	}()
	_, _ = io.Copy(c, up)
}

// pgBouncer starts one. It ends when its standard input does, so also when the
// test binary is killed.
func pgBouncer(t testing.TB, path string, conf *pgx.ConnConfig, more string) string {
	t.Helper()
	addr, port := freeAddr(t)
	login := "user=" + conf.User
	if conf.Password != "" {
		login += " password='" + conf.Password + "'"
	}
	text := fmt.Sprintf("[databases]\n* = host=%s port=%d %s\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%d\n"+
		"unix_socket_dir=\nauth_type=any\npool_mode=transaction\ndefault_pool_size=2\n%s", conf.Host, conf.Port, login, port, more)
	if os.Geteuid() == 0 {
		text += "user=nobody\n" // it will not run as root
	}
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	cmd := exec.Command("sh", "-c", `"$0" "$1" & cat; kill $!; wait`, path, file)
	said := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = said, said
	lives, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = lives.Close()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	Eventually(t, 10*time.Second, "PgBouncer listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return addr
}

func freeAddr(t testing.TB) (addr string, port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String(), l.Addr().(*net.TCPAddr).Port
}
