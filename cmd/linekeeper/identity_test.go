package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/provider"
)

// asked calls the operators' API with a bearer token, and returns the status.
func asked(t *testing.T, url, method, path, token, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url+"/admin/v1"+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func TestOperatorsOfAnOpenIDProviderHaveTheRolesOfTheirGroups(t *testing.T) {
	t.Parallel()
	p, pool := provider.Start(t), harness.Database(t)
	conf := config.Process{}
	conf.OIDCIssuer, conf.OIDCAudience, conf.OIDCRoleClaim, conf.OIDCNameClaim = p.URL, provider.Audience, "groups", "sub"
	require.NoError(t, conf.OIDCRoles.UnmarshalText([]byte("everybody:viewer,on-call:operator,owners:admin")))
	store := roomstore.New(pool)
	others, err := newVerifiers(conf, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	mine, entry, err := admin.NewToken("ann", admin.Admin)
	require.NoError(t, err)
	tokens, err := admin.ParseTokens(entry)
	require.NoError(t, err)
	server := httptest.NewServer(admin.New(admin.Options{
		Store: store, Lines: redisstore.New(harness.Redis(t), "test-"+uuid.NewString()), Outbox: outboxAdmin{outbox.NewAdmin(pool)},
		Tokens: tokens, Operators: others.forOperators(), Log: slog.New(slog.DiscardHandler),
	}))
	t.Cleanup(server.Close)
	of := func(groups any) string { return p.Token(t, "olaf@example", map[string]any{"groups": groups}) }
	reads := func(token string) int { return asked(t, server.URL, "GET", "/rooms", token, "") }
	makes := func(token, room string) int {
		return asked(t, server.URL, "POST", "/rooms", token, `{"name":"`+room+`"}`)
	}

	require.Equal(t, http.StatusOK, reads(of([]string{"staff", "everybody"})))
	require.Equal(t, http.StatusForbidden, makes(of([]string{"on-call", "everybody"}), "a"))
	require.Equal(t, http.StatusCreated, makes(of([]string{"everybody", "owners"}), "a"), "of several roles the highest counts")
	require.Equal(t, http.StatusCreated, makes(of("owners"), "b"), "a text is a list of one")
	changes, err := store.Changes(t.Context(), "a", 0, 1)
	require.NoError(t, err)
	require.Equal(t, "oidc:olaf@example", changes[0].Actor)
	require.Equal(t, "admin", changes[0].Role)

	for what, more := range map[string]map[string]any{
		"no group":         {},
		"another group":    {"groups": "strangers"},
		"groups in a map":  {"groups": map[string]any{"owners": "owners"}},
		"foreign audience": {"groups": "owners", "aud": "another-app"},
		"foreign issuer":   {"groups": "owners", "iss": "https://idp.example"},
		"expired":          {"groups": "owners", "exp": time.Now().Add(-time.Hour).Unix()},
		"no name":          {"groups": "owners", "sub": nil},
		"a forged name":    {"groups": "owners", "sub": "olaf\nann"},
	} {
		require.Equal(t, http.StatusUnauthorized, reads(p.Token(t, "olaf", more)), what)
	}
	p.Answer(http.NotFound)
	require.Equal(t, http.StatusOK, reads(of("everybody")), "the provider's keys are known")
	require.Equal(t, http.StatusOK, reads(mine), "an admin token needs no provider")
}

func TestAnOperatorWhoCannotBeLookedUpIsNotAStranger(t *testing.T) {
	t.Parallel()
	p := provider.Start(t)
	p.Answer(http.NotFound)
	conf := config.Process{}
	conf.OIDCIssuer, conf.OIDCAudience, conf.OIDCRoleClaim, conf.OIDCNameClaim = p.URL, provider.Audience, "groups", "sub"
	require.NoError(t, conf.OIDCRoles.UnmarshalText([]byte("owners:admin")))
	others, err := newVerifiers(conf, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	failed := func(string) { t.Error("counted as a failure") }
	server := httptest.NewServer(admin.New(admin.Options{Operators: others.forOperators(), Log: slog.New(slog.DiscardHandler), Failed: failed}))
	t.Cleanup(server.Close)
	require.Equal(t, http.StatusServiceUnavailable, asked(t, server.URL, "GET", "/rooms", p.Token(t, "olaf", map[string]any{"groups": "owners"}), ""))
}

func TestAProvidersNewKeyIsBelievedAndItsOldOneNoMore(t *testing.T) {
	t.Parallel()
	for _, algorithm := range oidcAlgorithms {
		p := provider.Start(t)
		conf := config.Process{}
		conf.OIDCIssuer, conf.OIDCAudience, conf.OIDCRoleClaim, conf.OIDCNameClaim = p.URL, provider.Audience, "groups", "sub"
		conf.OIDCRoles = config.RoleNames{"owners": "admin"}
		owners := map[string]any{"groups": "owners"}
		old := p.Token(t, "olaf", owners)
		p.Use(provider.NewKey(t, "second", algorithm))
		o := newOperatorTokens(conf, slog.New(slog.DiscardHandler))
		name, role, err := o.Operator(t.Context(), p.Token(t, "olaf", owners))
		require.NoError(t, err, algorithm)
		require.Equal(t, "oidc:olaf", name)
		require.Equal(t, admin.Admin, role)
		_, _, err = o.Operator(t.Context(), old)
		require.ErrorIs(t, err, admin.ErrNoOperator, "a key that has left the set")
	}
}

func TestSettingsOfForeignTokensAreCheckedAllAtOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.env["LINEKEEPER_IDENTITY"] = "jwt"
	s.env["LINEKEEPER_JWT_KEYS"] = "http://idp.example/keys"
	s.env["LINEKEEPER_JWT_ALGORITHMS"] = "RS256,none"
	s.env["LINEKEEPER_OIDC_ISSUER"] = "ftp://idp.example"
	got := s.run("config", "check")
	require.Equal(t, 2, got.code)
	for _, want := range []string{
		"LINEKEEPER_JWT_KEYS: must be https, or http on this machine", `LINEKEEPER_JWT_ALGORITHMS: "none" is not one of`,
		"LINEKEEPER_JWT_ISSUER: must be there", "LINEKEEPER_JWT_AUDIENCE: must be there",
		"LINEKEEPER_OIDC_ISSUER: must be https", "LINEKEEPER_OIDC_AUDIENCE: must be there", "LINEKEEPER_OIDC_ROLES: must be there",
	} {
		require.Contains(t, got.err, want)
	}
}

func TestTheSettingsSayHowMembersAreKnown(t *testing.T) {
	t.Parallel()
	p := provider.Start(t)
	conf := config.Process{Roles: config.RoleAPI, Identity: config.IdentityJWT}
	conf.JWTKeys, conf.JWTAlgorithms, conf.JWTIssuer, conf.JWTAudience = p.KeysURL(), config.Names{"ES256"}, p.URL, provider.Audience
	conf.JWTMemberClaim, conf.JWTLaneClaim = "uid", "tier"
	v, err := newVerifiers(conf, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	s := &server{ready: &readiness{}, others: v}
	require.Contains(t, s.missing(), "user keys", "nobody could be served")
	member, lanes, err := v.forMembers().User(t.Context(), p.Token(t, "", map[string]any{"uid": 42, "tier": "vip"}))
	require.NoError(t, err)
	require.Equal(t, "42", member)
	require.NotContains(t, s.missing(), "user keys")
	require.Equal(t, []string{"vip"}, lanes)
	require.True(t, v.forOperators() == nil, "without a provider no operator is known by one")

	conf.Identity = config.IdentityTicket
	v, err = newVerifiers(conf, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.True(t, v.forMembers() == nil, "user tokens count for nothing in another identity")
}
