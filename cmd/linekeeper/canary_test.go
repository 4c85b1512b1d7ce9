package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

// kept is all that was written to it.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(p)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

// panicking is a client of Redis in which calls panic while it is armed.
type panicking struct{ armed atomic.Bool }

func (p *panicking) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *panicking) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		// Schedulers and probes have no request to answer.
		if p.armed.Load() && problem.RequestID((&http.Request{}).WithContext(ctx)) != "" {
			panic("forced")
		}
		return next(ctx, cmd)
	}
}

func (p *panicking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// stranger sends requests with all that is secret, to wherever it does not belong,
// and keeps what is said to that.
type stranger struct {
	t        *testing.T
	secrets  map[string]string
	problems kept
}

func (s *stranger) ask(method, address string, header http.Header, body string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, address, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header = header.Clone()
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, resp.Body.Close())
	if resp.StatusCode >= 400 {
		fmt.Fprintln(&s.problems, resp.Header, string(text))
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp
}

// misplace shows every secret as every credential, where it is none.
func (s *stranger) misplace(r *running) {
	for _, secret := range s.secrets {
		h := http.Header{"X-Queue-Ticket": {secret}, "X-Entry-Token": {secret}, "Authorization": {"Bearer " + secret}, "Cookie": {"linekeeper_sale=" + secret},
			"X-Member-Id": {secret}, "Idempotency-Key": {secret}, "X-Member-Lane": {secret}, "Content-Type": {"application/json"}}
		for _, base := range []string{r.public, r.operators} {
			for _, path := range []string{"/v1/orders", "/v1/rooms/sale/entries/me", "/v1/rooms/sale/entries", "/admin/v1/rooms", "/nowhere"} {
				s.ask("GET", base+path+"?token="+url.QueryEscape(secret), h, "")
				s.ask("POST", base+path, h, `{"items":[],"token":"x"}`)
			}
		}
	}
}

// The whole way with every log turned on, a handler that panics, Redis gone, and
// secrets shown where they do not belong: none of them is in anything that the
// process says, but for the answers to those whose secrets they are.
func TestNoSecretIsInAnythingThatAProcessSays(t *testing.T) {
	t.Parallel()
	said, boom := &kept{}, &panicking{}
	rdb := harness.RedisServer(t)
	c := redis.NewClient(&redis.Options{Addr: rdb.Addr})
	require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", "shop", "on", ">canary-of-redis", "~*", "+@all").Err())
	require.NoError(t, c.Close())
	var conf config.Process
	r := runServer(t, said, func(c *config.Process) {
		c.RedisURL, c.LogTransitions = config.URL("redis://shop:canary-of-redis@"+rdb.Addr), true
		u, err := url.Parse(c.DatabaseURL.Reveal())
		require.NoError(t, err)
		if _, given := u.User.Password(); !given {
			u.User = url.UserPassword(u.User.Username(), "canary-of-postgres")
		}
		c.DatabaseURL = config.URL(u.String())
		conf = *c
	}, boom)
	_, _, err := r.rooms.PutProduct(t.Context(), room.Product{SKU: "demo", Stock: 1000, PriceCents: 1990, Currency: "EUR"}, 0, room.Actor{Name: "test"})
	require.NoError(t, err)
	direct := room.Defaults()
	direct.DirectAdmission = true
	r.openRoom("sale", direct)
	ticket, token := r.letIn("sale")
	s := &stranger{t: t, secrets: r.secrets(conf, ticket, token)}

	order := func() *http.Response {
		return s.ask("POST", r.public+"/v1/orders", http.Header{"X-Entry-Token": {token}, "Content-Type": {"application/json"}}, `{"items":[{"sku":"demo","quantity":1}]}`)
	}
	resp := order()
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	var placed spec.Order
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&placed))
	s.misplace(r)
	s.secrets["member"] = placed.Member

	poll := func() int {
		return s.ask("GET", r.public+"/v1/rooms/sale/entries/me?token="+token, http.Header{"X-Queue-Ticket": {ticket}, "Cookie": {"linekeeper_sale=" + ticket}}, "").StatusCode
	}
	boom.armed.Store(true)
	require.Equal(t, http.StatusInternalServerError, poll())
	boom.armed.Store(false)
	require.Contains(t, said.String(), "request handler panicked", "nothing has panicked, so this shows little")
	metrics, err := io.ReadAll(s.ask("GET", r.operators+"/metrics", nil, "").Body)
	require.NoError(t, err)
	rdb.Kill()
	harness.Eventually(t, 30*time.Second, "the outage shows", func() bool { return poll() == http.StatusServiceUnavailable })
	order()

	printed := newShell(t)
	printed.env = map[string]string{"LINEKEEPER_REDIS_URL": conf.RedisURL.Reveal(), "LINEKEEPER_DATABASE_URL": conf.DatabaseURL.Reveal(),
		"LINEKEEPER_KEYS": conf.Keys.Reveal(), "LINEKEEPER_ADMIN_TOKENS": conf.AdminTokens.Reveal()}
	config := printed.ok("config", "print") + printed.ok("config", "print", "-o", "json") + printed.ok("config", "check")
	require.Contains(t, config, "LINEKEEPER_KEYS")
	require.Contains(t, said.String(), "member changed state", "the log of transitions is off")
	for where, text := range map[string]string{"the log": said.String(), "a refusal": s.problems.String(), "/metrics": string(metrics), "config print": config} {
		for what, secret := range s.secrets {
			require.NotEmpty(t, secret, what)
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s holds the %s: ...%s", where, what, text[max(0, at-300):min(len(text), at+40)])
			}
		}
	}
}

// secrets are all there are of a process, and of one member.
func (r *running) secrets(conf config.Process, ticket, token string) map[string]string {
	r.t.Helper()
	_, key, _ := strings.Cut(conf.Keys.Reveal(), ":")
	u, err := url.Parse(conf.DatabaseURL.Reveal())
	require.NoError(r.t, err)
	password, _ := u.User.Password()
	return map[string]string{
		"signing key": key, "queue ticket": ticket, "entry token": token, "signature of the ticket": ticket[strings.LastIndexByte(ticket, '.')+1:],
		"signature of the token": token[strings.LastIndexByte(token, '.')+1:], "password of Redis": "canary-of-redis", "password of Postgres": password,
		"viewer's token": r.tokens[admin.Viewer], "operator's token": r.tokens[admin.Operator], "admin's token": r.tokens[admin.Admin],
	}
}
