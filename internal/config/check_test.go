package config_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
)

func TestCrossChecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  vars
		want string // of the error; empty: none
	}{
		{"complete", vars{}, ""},
		{"no lock", vars{"LEADER_TTL": "0"}, ""},
		{"lock too short", vars{"LEADER_TTL": "1999ms"}, "LEADER_TTL: is 1.999s, not 0 or between 2s and 1m0s"},
		{"lock too long", vars{"LEADER_TTL": "61s"}, "LEADER_TTL: is 1m1s"},
		{"negative lock", vars{"LEADER_TTL": "-1s"}, "LEADER_TTL: is -1s"},
		{"negative delay", vars{"SHUTDOWN_DELAY": "-1s"}, "SHUTDOWN_DELAY: is -1s"},
		{"delay for ever", vars{"SHUTDOWN_DELAY": "1h"}, "SHUTDOWN_DELAY: is 1h0m0s"},
		{"any port", vars{"LISTEN": "127.0.0.1:0", "ADMIN_LISTEN": "[::1]:0"}, ""},
		{"no port", vars{"LISTEN": "8080"}, `LISTEN: is "8080", not host:port`},
		{"port by name", vars{"LISTEN": ":http"}, "whose port is not between 0 and 65535"},
		{"port too high", vars{"ADMIN_LISTEN": "localhost:65536"}, "ADMIN_LISTEN: is \"localhost:65536\", whose port"},
		{"one port for both", vars{"LISTEN": ":8081"}, "ADMIN_LISTEN: has port 8081, which LINEKEEPER_LISTEN has too"},
		{"admin on localhost", vars{"ADMIN_LISTEN": "localhost:1"}, ""},
		{"admin on every address", vars{"ADMIN_LISTEN": ":8081"}, "ADMIN_LISTEN: is :8081, beyond loopback"},
		{"admin on every IPv4 address", vars{"ADMIN_LISTEN": "0.0.0.0:8081"}, "beyond loopback"},
		{"admin on every IPv6 address", vars{"ADMIN_LISTEN": "[::]:8081"}, "beyond loopback"},
		{"admin on every address, spelled out", vars{"ADMIN_LISTEN": "[0:0:0:0:0:0:0:0]:8081"}, "beyond loopback"},
		{"admin on every IPv4 address within IPv6", vars{"ADMIN_LISTEN": "[::ffff:0.0.0.0]:8081"}, "beyond loopback"},
		{"admin on an address of a network", vars{"ADMIN_LISTEN": "10.0.0.1:8081"}, "beyond loopback"},
		{"admin on a link", vars{"ADMIN_LISTEN": "[fe80::1%eth0]:8081"}, "beyond loopback"},
		{"admin on a short form of an address", vars{"ADMIN_LISTEN": "0:8081"}, "beyond loopback"},
		{"admin on a name with loopback in it", vars{"ADMIN_LISTEN": "127.0.0.1.example:8081"}, "beyond loopback"},
		{"admin on a socket", vars{"ADMIN_LISTEN": "unix:/run/linekeeper.sock"}, "not between 0 and 65535"},
		{"admin on a path", vars{"ADMIN_LISTEN": "/run/linekeeper.sock"}, "not host:port"},
		{"admin on loopback by IPv6", vars{"ADMIN_LISTEN": "[::1]:8081"}, ""},
		{"admin on loopback within IPv6", vars{"ADMIN_LISTEN": "[::ffff:127.0.0.1]:8081"}, ""},
		{"admin on another address of loopback", vars{"ADMIN_LISTEN": "127.8.8.8:8081"}, ""},
		{"admin beyond loopback with a blank for tokens", vars{"ADMIN_LISTEN": ":8081", "ADMIN_TOKENS": " "}, "beyond loopback"},
		{"admin on a name", vars{"ADMIN_LISTEN": "localhost.example:8081"}, "beyond loopback"},
		{"admin beyond loopback with tokens", vars{"ADMIN_LISTEN": ":8081", "ADMIN_TOKENS": "a:admin:00"}, ""},
		{"identity unknown", vars{"IDENTITY": "none"}, `IDENTITY: "none" is not ticket, header or jwt`},
		{"header from nobody", vars{"IDENTITY": "header"}, "IDENTITY: is header, which needs LINEKEEPER_TRUSTED_PROXIES"},
		{"header from a proxy", vars{"IDENTITY": "header", "TRUSTED_PROXIES": "10.0.0.1"}, ""},
		{"jwt with nothing", vars{"IDENTITY": "jwt"}, "JWT_KEYS: must be there where LINEKEEPER_IDENTITY is jwt"},
		{"jwt of any issuer", vars{"IDENTITY": "jwt", "JWT_KEYS": "k", "JWT_AUDIENCE": "a"}, "JWT_ISSUER: must be there"},
		{"jwt for anybody", vars{"IDENTITY": "jwt", "JWT_KEYS": "k", "JWT_ISSUER": "i"}, "JWT_AUDIENCE: must be there"},
		{"jwt", vars{"IDENTITY": "jwt", "JWT_KEYS": "k", "JWT_ISSUER": "i", "JWT_AUDIENCE": "a"}, ""},
		{"jwt without algorithms", vars{"JWT_ALGORITHMS": ","}, `JWT_ALGORITHMS: "," has an empty word`},
		{"oidc for anybody", vars{"OIDC_ISSUER": "https://p", "OIDC_ROLES": "a:admin"}, "OIDC_AUDIENCE: must be there"},
		{"oidc without roles", vars{"OIDC_ISSUER": "https://p", "OIDC_AUDIENCE": "a"}, "OIDC_ROLES: must be there"},
		{"oidc with no such role", vars{"OIDC_ROLES": "a:root"}, `OIDC_ROLES: "a:root" has a role other than`},
		{"oidc with one value twice", vars{"OIDC_ROLES": "a:admin,a:viewer"}, `OIDC_ROLES: "a" is there twice`},
		{"oidc with a role alone", vars{"OIDC_ROLES": ":admin"}, `OIDC_ROLES: ":admin" is not value:role`},
		{"proxy in both forms", vars{"TRUSTED_PROXIES": "::ffff:10.0.0.0/104"}, "IPv4 in IPv6"},
		{"proxy by name", vars{"TRUSTED_PROXIES": "proxy"}, `"proxy" is not a network`},
		{"proxy on a link", vars{"TRUSTED_PROXIES": "fe80::1%eth0"}, "is not a network"},
		{"origins", vars{"CORS_ORIGINS": "https://shop.example,http://localhost:3000, https://a.example:8443"}, ""},
		{"every origin", vars{"CORS_ORIGINS": "*"}, `CORS_ORIGINS: "*" is not an origin`},
		{"a wildcard", vars{"CORS_ORIGINS": "https://*.shop.example"}, "is not an origin"},
		{"the null origin", vars{"CORS_ORIGINS": "https://a.example,null"}, `"null" is not an origin`},
		{"an origin with a path", vars{"CORS_ORIGINS": "https://shop.example/"}, "is not an origin"},
		{"an origin in capitals", vars{"CORS_ORIGINS": "https://Shop.example"}, "is not an origin"},
		{"a port that browsers leave out", vars{"CORS_ORIGINS": "https://shop.example:443"}, "is not an origin"},
		{"a user in an origin", vars{"CORS_ORIGINS": "https://ann@shop.example"}, "is not an origin"},
		{"limit by another word", vars{"LIMIT_ENTER_ADDRESS": "60 a minute"}, `LIMIT_ENTER_ADDRESS: must be fixed, sliding, token or leaky`},
		{"limit of none", vars{"LIMIT_ORDER_MEMBER": "leaky:0/1m"}, "LIMIT_ORDER_MEMBER: must allow 1 to 10000"},
		{"limits off", vars{"LIMIT_ENTER_ADDRESS": "off", "LIMIT_POLL_MEMBER": "off", "LIMIT_WRONG_CREDENTIAL": "off"}, ""},
		{"polls in a window", vars{"LIMIT_POLL_MEMBER": "sliding:3/1s"}, "LIMIT_POLL_MEMBER: is sliding:3/1s, and each process counts it by itself"},
		{"polls too seldom", vars{"LIMIT_POLL_MEMBER": "token:1/4s"}, "LIMIT_POLL_MEMBER: is token:1/4s, less than one in 3s"},
		{"wrong credentials in a leaky bucket", vars{"LIMIT_WRONG_CREDENTIAL": "leaky:1/1s"}, "LIMIT_WRONG_CREDENTIAL: is leaky:1/1s"},
		{"no role", vars{"ROLES": ","}, `ROLES: "" is not one of`},
		{"scheduler needs no keys", vars{"ROLES": "scheduler", "KEYS": ""}, ""},
		{"api needs keys", vars{"ROLES": "scheduler,api", "KEYS": ""}, "KEYS: is required by the role api"},
		{"redis scheme", vars{"REDIS_URL": "http://r"}, `REDIS_URL: has scheme "http"`},
		{"postgres scheme", vars{"DATABASE_URL": "mysql://p"}, `DATABASE_URL: has scheme "mysql", not postgres`},
		{"postgres keys and values", vars{"DATABASE_URL": "host=p password=CANARY"}, "DATABASE_URL: is not a URL"},
		{"postgres on several hosts", vars{"DATABASE_URL": "postgresql://u:p@a:1,b:2/d?sslmode=require"}, ""},
		{"postgres on a socket", vars{"DATABASE_URL": "postgres:///d?host=/tmp"}, ""},
		{"challenges", vars{"CHALLENGE_URL": "https://c.example/siteverify", "CHALLENGE_SECRET": "CANARY"}, ""},
		{"challenges on this machine", vars{"CHALLENGE_URL": "http://127.0.0.1:9/v", "CHALLENGE_SECRET": "CANARY"}, ""},
		{"challenges without TLS", vars{"CHALLENGE_URL": "http://c.example/v", "CHALLENGE_SECRET": "CANARY"}, "CHALLENGE_URL: must be https, or http on this machine"},
		{"challenges by a file", vars{"CHALLENGE_URL": "file:///etc/passwd", "CHALLENGE_SECRET": "CANARY"}, "CHALLENGE_URL: is not a URL like"},
		{"challenges with a password", vars{"CHALLENGE_URL": "https://u:CANARY@c.example", "CHALLENGE_SECRET": "CANARY"}, "CHALLENGE_URL: is not a URL like"},
		{"challenges without a secret", vars{"CHALLENGE_URL": "https://c.example/v"}, "CHALLENGE_URL: is set, and LINEKEEPER_CHALLENGE_SECRET is not"},
		{"a secret for no challenges", vars{"CHALLENGE_SECRET": "CANARY"}, "CHALLENGE_SECRET: is set, and LINEKEEPER_CHALLENGE_URL is not"},
		{"brace in the prefix", vars{"KEY_PREFIX": "a{b}"}, "KEY_PREFIX: is \"a{b}\""},
		{"upper case prefix", vars{"KEY_PREFIX": "A"}, "KEY_PREFIX: is \"A\""},
	} {
		env := needed()
		for name, value := range c.set {
			env["LINEKEEPER_"+name] = value
		}
		_, err := parse(t, env, "serve")
		if c.want == "" {
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorContains(t, err, c.want, c.name)
		require.NotContains(t, err.Error(), "CANARY", c.name)
	}
}

func TestRolesReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	var r config.Roles
	require.NoError(t, r.UnmarshalText([]byte("relay, api")))
	require.True(t, r.Has(config.RoleAPI) && r.Has(config.RoleRelay))
	require.False(t, r.Has(config.RoleScheduler))
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.Equal(t, `"api,relay"`, string(text))
}
