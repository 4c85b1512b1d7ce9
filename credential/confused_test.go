package credential_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Members whose names look like what stands between the fields of some format, in
// pairs that are the same once fields are joined without regard to where they end.
func TestNoFieldOfACredentialRunsIntoTheNext(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	seen := map[string]string{}
	for _, who := range [][2]string{
		{"sale", "1|ann"}, {"sale-1", "|ann"}, {"sale", "|1ann"}, {"a", "b.c"}, {"ab", ".c"}, {"a", "b:c"}, {"ab", ":c"}, {"room", `ann","room":"other`}, {"room", `ann"}`},
		{"room", `ann\",\"aud\":\"linekeeper-token`}, {"room", `ann\`}, {"room", `ann\\`}, {"room", "ann,exp=9"}, {"room", "{ann}"}, {"room", "<ann>&"}, {"room", "ann%00"},
	} {
		x, g := ticket(), grant()
		x.Room, x.Member, g.Room, g.Member = who[0], who[1], who[0], who[1]
		text, token := signTicket(t, r, x), signGrant(t, r, g)
		for _, s := range []string{text, token} {
			require.Empty(t, seen[s], "%v has the credential of %s", who, seen[s])
			seen[s] = who[0] + " " + who[1]
		}
		back, err := r.Ticket(text)
		require.NoError(t, err)
		require.Equal(t, who, [2]string{back.Room, back.Member})
		given, err := r.Grant(token)
		require.NoError(t, err)
		require.Equal(t, who, [2]string{given.Room, given.Member})
		_, err = r.Grant(text)
		require.Error(t, err, "a ticket passed as an entry token")
		_, err = r.Ticket(token)
		require.Error(t, err, "an entry token passed as a ticket")
	}
}
