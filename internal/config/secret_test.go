package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/linekeeper/linekeeper/internal/config"
)

// printings are the ways in which settings end up in an output.
func printings(t *testing.T, v any) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%t", "%f"} {
		out[verb] = fmt.Sprintf(verb, v)
	}
	text, err := json.Marshal(v)
	require.NoError(t, err)
	out["json"] = string(text)
	text, err = yaml.Marshal(v)
	require.NoError(t, err)
	out["yaml"] = string(text)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("settings", "v", v)
	slog.New(slog.NewTextHandler(&log, nil)).Info("settings", "v", v)
	out["slog"] = log.String()
	return out
}

func TestNoSecretShowsHoweverSettingsArePrinted(t *testing.T) {
	t.Parallel()
	env := vars{
		"LINEKEEPER_REDIS_URL":    "redis-sentinel://u:CANARY@a:1,b:2/m/0?sentinel_password=CANARY",
		"LINEKEEPER_DATABASE_URL": "postgres://u:CANARY@p/d?sslpassword=CANARY",
		"LINEKEEPER_KEYS":         "k1:CANARY",
		"LINEKEEPER_ADMIN_TOKENS": "a:admin:CANARY",
	}
	c, err := parse(t, env, "serve")
	require.NoError(t, err)
	p := c.Serve.Process
	require.Contains(t, p.RedisURL.Reveal()+p.DatabaseURL.Reveal()+p.Keys.Reveal()+p.AdminTokens.Reveal(), "CANARY")
	hex := fmt.Sprintf("%x", "CANARY")
	for _, v := range []any{p, &p, p.Keys, p.RedisURL, p.DatabaseURL, []any{p.Keys, p.RedisURL}, map[string]any{"k": p.AdminTokens}} {
		for how, text := range printings(t, v) {
			require.NotContains(t, text, "CANARY", "%T by %s", v, how)
			require.NotContains(t, strings.ToLower(text), hex, "%T by %s", v, how)
		}
	}
	require.Contains(t, fmt.Sprint(p), "redis-sentinel://u:REDACTED@a:1,b:2/m/0?sentinel_password=REDACTED")
	require.Contains(t, fmt.Sprint(p), "postgres://u:REDACTED@p/d?sslpassword=REDACTED")
	require.Equal(t, "", config.Secret("").String(), "an empty secret hides nothing")
}

func TestURLsThatCannotBeParsedAreHiddenWhole(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"CANARY",
		"host=p password=CANARY",
		"redis://:CANARY",
		"redis://:CANARY/1",
		"redis://u:CA/NARY@h",
		"redis://u:12/CANARY@h",
		"redis://u:12?CANARY@h",
		"redis://u:p#CANARY@h",
		"redis://u:p,CANARY@h:x",
		"redis://:a,redis://CANARY:@",
		"redis://u:%zzCANARY@h",
		"://u:CANARY@h",
		"redis://h:CANARY",
		"redis://h/0?%zz=CANARY",
	} {
		u := config.URL(raw)
		require.Equal(t, "REDACTED", u.String(), raw)
		_, err := config.RedisOptions(u)
		require.Error(t, err, raw)
		require.NotContains(t, err.Error(), "CANARY")
		require.NotContains(t, err.Error(), "NARY@")
	}
}
