package config_test

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
)

// cli is a command line as cmd/linekeeper has it.
type cli struct {
	config.Source
	Serve   serve   `cmd:""`
	Migrate migrate `cmd:""`
	Dev     dev     `cmd:""`
	Version struct {
		Short bool
	} `cmd:""`
}

type serve struct{ config.Process }

type migrate struct {
	config.Database
	config.Redis
}

// dev fills the URLs in by itself.
type dev struct {
	config.Process
	Crowd int `env:"LINEKEEPER_CROWD" default:"0"`
}

func (d *dev) Check() error { return d.CheckValues() }

type vars map[string]string

func (v vars) lookup(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// needed is the least that a serving process is given.
func needed() vars {
	return vars{
		"LINEKEEPER_REDIS_URL":    "redis://r:6379",
		"LINEKEEPER_DATABASE_URL": "postgres://p:5432/d",
		"LINEKEEPER_KEYS":         "k1:a2V5",
	}
}

func parse(t *testing.T, env vars, args ...string) (cli, error) {
	t.Helper()
	var c cli
	_, err := config.Parse(&c, args, env.lookup, kong.Name("linekeeper"), kong.Exit(func(int) {}), kong.Writers(&bytes.Buffer{}, &bytes.Buffer{}))
	return c, err
}

// write makes a file and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// settings has each setting with a value per source, from the strongest to the
// weakest, and the default.
var settings = []struct {
	flag                              string
	fromFlag, fromEnv, fromFile, yaml string
	byDefault                         string
	get                               func(config.Process) any
}{
	{"listen", ":1001", ":1002", ":1003", ":1004", ":8080", func(p config.Process) any { return p.Listen }},
	{"admin-listen", "127.0.0.1:1001", "127.0.0.1:1002", "127.0.0.1:1003", "127.0.0.1:1004", "127.0.0.1:8081", func(p config.Process) any { return p.AdminListen }},
	{"roles", "api", "relay", "scheduler", "[scheduler, relay]", "api,scheduler,relay", func(p config.Process) any { return p.Roles }},
	{"redis-url", "redis://a", "redis://b", "redis://c", "redis://d", "", func(p config.Process) any { return p.RedisURL.Reveal() }},
	{"database-url", "postgres://a", "postgres://b", "postgres://c", "postgres://d", "", func(p config.Process) any { return p.DatabaseURL.Reveal() }},
	{"key-prefix", "pa", "pb", "pc", "pd", "linekeeper", func(p config.Process) any { return p.KeyPrefix }},
	{"keys", "", "kb", "kc", "kd", "", func(p config.Process) any { return p.Keys.Reveal() }},
	{"admin-tokens", "", "tb", "tc", "td", "", func(p config.Process) any { return p.AdminTokens.Reveal() }},
	{"identity", "ticket", "header", "ticket", "header", "ticket", func(p config.Process) any { return p.Identity }},
	{"trusted-proxies", "10.0.0.0/8", "10.2.0.0/16", "10.3.0.0/16", "[10.4.0.0/16, 10.5.0.1/32]", "", func(p config.Process) any { return p.TrustedProxies }},
	{"limit-enter-address", "fixed:1/1m", "leaky:2/1m", "token:3/1m", "off", "sliding:60/1m", func(p config.Process) any { return p.LimitEnterAddress }},
	{"limit-enter-network", "fixed:1/1m", "leaky:2/1m", "token:3/1m", "off", "sliding:600/1m", func(p config.Process) any { return p.LimitEnterNetwork }},
	{"limit-enter-member", "fixed:1/1m", "leaky:2/1m", "token:3/1m", "off", "sliding:10/1m", func(p config.Process) any { return p.LimitEnterMember }},
	{"limit-order-member", "fixed:1/1m", "leaky:2/1m", "token:3/1m", "off", "leaky:10/1m", func(p config.Process) any { return p.LimitOrderMember }},
	{"limit-poll-member", "token:1/1s", "token:2/1s", "token:4/1s", "off", "token:3/1s", func(p config.Process) any { return p.LimitPollMember }},
	{"limit-wrong-credential", "token:1/1m", "token:2/1m", "token:3/1m", "off", "token:30/1m", func(p config.Process) any { return p.LimitWrongCredential }},
	{"jwt-keys", "a", "b", "c", "d", "", func(p config.Process) any { return p.JWTKeys }},
	{"jwt-algorithms", "HS256", "RS256", "ES256", "[EdDSA, ES256]", "RS256,ES256,EdDSA", func(p config.Process) any { return p.JWTAlgorithms }},
	{"jwt-issuer", "a", "b", "c", "d", "", func(p config.Process) any { return p.JWTIssuer }},
	{"jwt-audience", "a", "b", "c", "d", "", func(p config.Process) any { return p.JWTAudience }},
	{"jwt-member-claim", "a", "b", "c", "d", "sub", func(p config.Process) any { return p.JWTMemberClaim }},
	{"jwt-lane-claim", "a", "b", "c", "d", "", func(p config.Process) any { return p.JWTLaneClaim }},
	{"oidc-issuer", "a", "b", "c", "d", "", func(p config.Process) any { return p.OIDCIssuer }},
	{"oidc-audience", "a", "b", "c", "d", "", func(p config.Process) any { return p.OIDCAudience }},
	{"oidc-roles", "a:viewer", "b:admin", "c:operator", "\"d:admin, e:viewer\"", "", func(p config.Process) any { return text(p.OIDCRoles) }},
	{"oidc-role-claim", "a", "b", "c", "d", "groups", func(p config.Process) any { return p.OIDCRoleClaim }},
	{"oidc-name-claim", "a", "b", "c", "d", "sub", func(p config.Process) any { return p.OIDCNameClaim }},
	{"leader-ttl", "0s", "2s", "3s", "4s", "5s", func(p config.Process) any { return p.LeaderTTL }},
	{"cookie-secure", "false", "true", "false", "true", "true", func(p config.Process) any { return p.CookieSecure }},
	{"cors-origins", "https://a.example", "https://b.example:8443", "http://localhost:3000", "[https://d.example, https://e.example]", "", func(p config.Process) any { return p.CORSOrigins }},
	{"log-level", "DEBUG", "WARN", "ERROR", "DEBUG", "INFO", func(p config.Process) any { return p.LogLevel }},
	{"log-transitions", "true", "false", "true", "false", "false", func(p config.Process) any { return p.LogTransitions }},
	{"shutdown-delay", "1s", "2s", "3s", "4s", "5s", func(p config.Process) any { return p.ShutdownDelay }},
	{"allow-eviction", "true", "false", "true", "false", "false", func(p config.Process) any { return p.AllowEviction }},
}

// text is a setting as it would be written.
func text(v encoding.TextMarshaler) string {
	b, _ := v.MarshalText()
	return string(b)
}

// plain drops what a list looks like in YAML, and in fmt.
func plain(v any) string {
	return strings.NewReplacer("[", "", "]", "", `"`, "", ", ", ",", " ", ",").Replace(fmt.Sprint(v))
}

func TestFlagBeatsVariableBeatsFileBeatsYAMLBeatsDefault(t *testing.T) {
	t.Parallel()
	for _, s := range settings {
		name := "LINEKEEPER_" + strings.ToUpper(strings.ReplaceAll(s.flag, "-", "_"))
		env := vars{}
		if s.flag == "identity" {
			env["LINEKEEPER_TRUSTED_PROXIES"] = "10.0.0.0/8"
		}
		if s.flag == "oidc-issuer" {
			env["LINEKEEPER_OIDC_AUDIENCE"], env["LINEKEEPER_OIDC_ROLES"] = "a", "a:admin"
		}
		// dev asks for nothing, so that the default of a needed setting shows too.
		expect := func(want, rule string, args ...string) {
			c, err := parse(t, env, append([]string{"dev"}, args...)...)
			require.NoError(t, err, s.flag)
			require.Equal(t, plain(want), plain(s.get(c.Dev.Process)), "%s: %s", s.flag, rule)
		}
		expect(s.byDefault, "the default")
		env["LINEKEEPER_CONFIG"] = write(t, s.flag+": "+s.yaml+"\n")
		expect(s.yaml, "YAML beats the default")
		env[name+"_FILE"] = write(t, s.fromFile+"\n")
		expect(s.fromFile, "_FILE beats YAML")
		if s.fromFlag != "" {
			expect(s.fromFlag, "the flag beats _FILE", "--"+s.flag+"="+s.fromFlag)
		}
		delete(env, name+"_FILE")
		env[name] = s.fromEnv
		expect(s.fromEnv, "the variable beats YAML")
		if s.fromFlag != "" {
			expect(s.fromFlag, "the flag beats the variable", "--"+s.flag+"="+s.fromFlag)
		}
	}
}

func TestFlagsThatAreTrueByDefaultCanBeNegated(t *testing.T) {
	t.Parallel()
	c, err := parse(t, needed(), "serve", "--no-cookie-secure", "--log-transitions")
	require.NoError(t, err)
	require.False(t, c.Serve.CookieSecure)
	require.True(t, c.Serve.LogTransitions)
}

func TestConfigFlagBeatsItsVariable(t *testing.T) {
	t.Parallel()
	env := needed()
	env["LINEKEEPER_CONFIG"] = write(t, "key-prefix: variable")
	c, err := parse(t, env, "--config", write(t, "key-prefix: flag"), "serve")
	require.NoError(t, err)
	require.Equal(t, "flag", c.Serve.KeyPrefix)
}

func TestEmptyVariableCountsAsNotSet(t *testing.T) {
	t.Parallel()
	env := needed()
	env["LINEKEEPER_LISTEN"] = ""
	env["LINEKEEPER_ROLES"], env["LINEKEEPER_ROLES_FILE"] = "", write(t, "api")
	c, err := parse(t, env, "serve")
	require.NoError(t, err)
	require.Equal(t, ":8080", c.Serve.Listen)
	require.Equal(t, config.RoleAPI, c.Serve.Roles)
}

func TestTheProcessEnvironmentIsReadOnlyThroughEnv(t *testing.T) {
	t.Setenv("LINEKEEPER_KEY_PREFIX", "leaked")
	c, err := parse(t, needed(), "serve")
	require.NoError(t, err)
	require.Equal(t, "linekeeper", c.Serve.KeyPrefix)
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	yaml := write(t, "listn: :1\nkey-prefix: a{b}\nlog-level: loud\nkeys:\nidentity: {a: b}\n")
	env := vars{
		"LINEKEEPER_LEADER_TTL":      "soon",
		"LINEKEEPER_ADMIN_LISTEN":    "0.0.0.0:8081",
		"LINEKEEPER_COOKIE_SECURE":   "perhaps",
		"LINEKEEPER_TRUSTED_PROXIES": "10.1.2.3/8",
		"LINEKEEPER_REDIS_URL_FILE":  "/no/such/file",
		"LINEKEEPER_CONFIG":          yaml,
	}
	_, err := parse(t, env, "serve", "--roles=api,cook", "--shutdown-delay=never")
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	for _, want := range []string{
		"--roles: \"cook\" is not one of api, scheduler and relay",
		"--shutdown-delay: expected duration",
		"LINEKEEPER_LEADER_TTL: expected duration",
		"LINEKEEPER_COOKIE_SECURE: bool value must be",
		"LINEKEEPER_TRUSTED_PROXIES: \"10.1.2.3/8\" has bits beyond its mask; 10.0.0.0/8",
		"LINEKEEPER_REDIS_URL_FILE: open /no/such/file",
		yaml + ":1: listn: is not a setting",
		yaml + ":3: log-level: ",
		yaml + ":4: keys: has no value",
		yaml + ":5: identity: is a map",
		"LINEKEEPER_DATABASE_URL: is required",
		"LINEKEEPER_KEY_PREFIX: is \"a{b}\"",
		"LINEKEEPER_ADMIN_LISTEN: is 0.0.0.0:8081, beyond loopback",
	} {
		n := 0
		for _, line := range lines {
			if strings.HasPrefix(line, want) {
				n++
			}
		}
		require.Equal(t, 1, n, "%q is not one line of\n%v", want, err)
	}
	require.Len(t, lines, 13, "a problem is reported under another name as well:\n%v", err)
}

func TestProblemsNameTheirSetting(t *testing.T) {
	t.Parallel()
	env := needed()
	env["LINEKEEPER_LEADER_TTL"] = "1s"
	_, err := parse(t, env, "serve")
	var p config.Problem
	require.True(t, errors.As(err, &p))
	require.Equal(t, "LINEKEEPER_LEADER_TTL", p.Setting)
}

func TestAnUnknownFlagDoesNotHideAWrongVariable(t *testing.T) {
	t.Parallel()
	env := needed()
	env["LINEKEEPER_LEADER_TTL"] = "soon"
	_, err := parse(t, env, "serve", "--lisen=:80", "--redis-url=redis://x")
	require.ErrorContains(t, err, "unknown flag --lisen")
	require.ErrorContains(t, err, "LINEKEEPER_LEADER_TTL: expected duration")
	require.NotContains(t, err.Error(), "required", "flags after the unknown one were not read")
}

func TestUnreadableYAMLIsTheOnlyProblem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                      "no such file",
		"a: b\n---\nc: d\n":     "more than one document",
		"- a\n- b\n":            "not a map of settings",
		"listen: :8080\n  a: b": "is not YAML: line 2: mapping values",
		"keys: *CANARY\n":       "is not YAML: a value needs quotes",
	} {
		path := "/nowhere/linekeeper.yaml"
		if text != "" {
			path = write(t, text)
		}
		_, err := parse(t, vars{"LINEKEEPER_CONFIG": path}, "serve")
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "required", "what the file holds is called missing")
		require.NotContains(t, err.Error(), "CANARY")
	}
}

func TestYAMLTakesListsAndAnchorsAndRefusesTheRest(t *testing.T) {
	t.Parallel()
	env := needed()
	env["LINEKEEPER_CONFIG"] = write(t, "roles: &r [api]\nadmin-tokens: []\nlisten: &l ':1'\nadmin-listen: *l\n")
	_, err := parse(t, env, "serve")
	require.ErrorContains(t, err, "LINEKEEPER_ADMIN_LISTEN: is :1, beyond loopback")

	env["LINEKEEPER_CONFIG"] = write(t, "roles: [[api]]\nlisten: ':1'\nlisten: ':2'\n")
	_, err = parse(t, env, "serve")
	require.ErrorContains(t, err, "1: roles: is a list of something else")
	require.ErrorContains(t, err, "3: listen: is there twice")
}

func TestOneYAMLFileServesEveryCommand(t *testing.T) {
	t.Parallel()
	env := vars{"LINEKEEPER_CONFIG": write(t, "database-url: postgres://p/d\nredis-url: redis://r\nlisten: :1\ncrowd: 3\nkeys: k\n# a comment\n")}
	c, err := parse(t, env, "migrate")
	require.NoError(t, err)
	require.Equal(t, "postgres://p/d", c.Migrate.DatabaseURL.Reveal())
	c, err = parse(t, env, "dev")
	require.NoError(t, err)
	require.Equal(t, 3, c.Dev.Crowd)
	env["LINEKEEPER_CONFIG"] = write(t, "config: other.yaml\n")
	_, err = parse(t, env, "migrate")
	require.ErrorContains(t, err, "config: is not a setting")
}

func TestACommandWithoutSettingsIgnoresABrokenFile(t *testing.T) {
	t.Parallel()
	_, err := parse(t, vars{"LINEKEEPER_CONFIG": "/nowhere"}, "version", "--short")
	require.NoError(t, err)
}

func TestEveryPartThatACommandEmbedsIsChecked(t *testing.T) {
	t.Parallel()
	_, err := parse(t, vars{}, "migrate")
	require.ErrorContains(t, err, "LINEKEEPER_DATABASE_URL: is required")
	require.ErrorContains(t, err, "LINEKEEPER_REDIS_URL: is required")
}

func TestFileVariables(t *testing.T) {
	t.Parallel()
	keys := func(change func(env vars)) (string, error) {
		env := needed()
		change(env)
		c, err := parse(t, env, "serve")
		return c.Serve.Keys.Reveal(), err
	}
	for text, want := range map[string]string{"k:v\n": "k:v", "k:v\r\n": "k:v", " k:v \n\n": " k:v "} {
		got, err := keys(func(env vars) {
			delete(env, "LINEKEEPER_KEYS")
			env["LINEKEEPER_KEYS_FILE"] = write(t, text)
		})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := keys(func(env vars) { env["LINEKEEPER_KEYS_FILE"] = write(t, "k:v") })
	require.ErrorContains(t, err, "LINEKEEPER_KEYS_FILE: is set, and LINEKEEPER_KEYS is too")
	for path, want := range map[string]string{
		"/no/such/file":   "LINEKEEPER_KEYS_FILE: open /no/such/file",
		write(t, "\n"):    "is empty",
		"/dev/zero":       "larger than 1 MiB",
		os.TempDir():      "is a directory",
		write(t, "") + "": "is empty",
	} {
		_, err := keys(func(env vars) {
			delete(env, "LINEKEEPER_KEYS")
			env["LINEKEEPER_KEYS_FILE"] = path
		})
		require.ErrorContains(t, err, want)
	}
}

func TestSecretsAreNotTakenFromTheCommandLine(t *testing.T) {
	t.Parallel()
	_, err := parse(t, needed(), "serve", "--keys=CANARY")
	require.ErrorContains(t, err, "--keys: is a secret, and everybody on the machine can read command lines; use LINEKEEPER_KEYS_FILE")
	require.NotContains(t, err.Error(), "CANARY")
}

func TestHelpNamesTheVariables(t *testing.T) {
	t.Parallel()
	var c cli
	var out bytes.Buffer
	_, _ = config.Parse(&c, []string{"serve", "--help"}, vars{}.lookup, kong.Exit(func(int) {}), kong.Writers(&out, &out))
	require.Contains(t, out.String(), "$LINEKEEPER_LEADER_TTL")
	require.Contains(t, out.String(), "--leader-ttl=5s")
}
