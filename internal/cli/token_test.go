package cli_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/queue"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func TestTokenIsDecodedWithoutKeysAndSaysSo(t *testing.T) {
	t.Parallel()
	ring, err := credential.ParseRing(credential.GenerateKey())
	require.NoError(t, err)
	place := queue.Place{Score: noon.UnixMicro()}
	ticket, err := ring.SignTicket(credential.Ticket{Room: "sale", Sale: 1, Generation: 2, Member: "ann", Place: place, IssuedAt: noon})
	require.NoError(t, err)
	id := credential.NewGrantID()
	grant, err := ring.SignGrant(queue.Grant{ID: id, Room: "sale", Member: "ann", Sale: 1, Generation: 2, Place: place,
		IssuedAt: noon, Expiry: noon.Add(5 * time.Minute), Picked: true, KeyID: ring.SigningKeyID()})
	require.NoError(t, err)

	text, token, err := cli.ReadToken(strings.NewReader(ticket.Reveal() + "\n"))
	require.NoError(t, err)
	require.Equal(t, ticket.Reveal(), text)
	v, err := token.View(noon.Add(time.Hour))
	require.NoError(t, err)
	table := shown(t, v)
	require.Regexp(t, `(?m)^kind +queue ticket$`, table)
	require.Contains(t, table, "NOT VERIFIED")
	require.Contains(t, table, ring.SigningKeyID())
	require.Contains(t, table, "lane 0, entered 2026-11-27T12:00:00Z")
	require.Contains(t, table, "in 23h0m0s, by this machine's clock")
	require.NotContains(t, table, "grant")

	_, token, err = cli.ReadToken(strings.NewReader(grant.Reveal()))
	require.NoError(t, err)
	require.False(t, token.Verified)
	token.Verified = true
	v, err = token.View(noon.Add(5 * time.Minute))
	require.NoError(t, err)
	table = shown(t, v)
	require.Regexp(t, `(?m)^kind +entry token$`, table)
	require.Contains(t, table, id)
	require.Contains(t, table, "verified: signed by key "+ring.SigningKeyID())
	require.Contains(t, table, "it has ended")
	require.Contains(t, printed(t, v, cli.JSON), `"jti":"`+id+`"`)
	require.NotContains(t, table+printed(t, v, cli.JSON), grant.Reveal(), "the token itself is never printed")
}

func TestWhatIsNoTokenIsNotRepeated(t *testing.T) {
	t.Parallel()
	b64 := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for text, want := range map[string]string{
		"":            "three parts",
		"hunter2":     "three parts",
		"a.hunter2.c": "not base64url of JSON",
		b64(`{"alg":"HS256"}`) + "." + b64(`{"aud":"hunter2"}`) + ".x":    "something else than Linekeeper",
		strings.Repeat("hunter2", 1000) + ".b.c":                          "three parts",
		b64(`{"alg":1}`) + "." + b64(`{"aud":"linekeeper-token"}`) + ".x": "not base64url of JSON",
	} {
		_, _, err := cli.ReadToken(strings.NewReader(text))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
