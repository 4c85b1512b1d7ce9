package credential_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
)

func TestTicketsComeBackAsTheyWereSigned(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anyTicket(t)
		r := first(t, want.KeyID)
		got, err := r.Ticket(signTicket(t, r, want))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, got))
	})
}

func TestGrantsComeBackAsTheyWereSigned(t *testing.T) {
	t.Parallel()
	all := first(t, "a")
	rapid.Check(t, func(t *rapid.T) {
		want := anyGrant(t)
		s := signGrant(t, all, want)
		got, err := all.Grant(s)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, got))
		require.Equal(t, s, signGrant(t, all, got), "a grant read from a token must sign to the same token")
	})
}

// The formats are kept by clients and by other versions: they are pinned here.
func TestFormatsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	require.Equal(t, mac(secretA, headerA, ticketPayload), signTicket(t, r, ticket()))
	require.Equal(t, mac(secretA, headerA, grantPayload), signGrant(t, r, grant()))
	g := grant()
	g.KeyID = "e"
	require.Equal(t, edSign(headerE, grantPayload), signGrant(t, r, g))
}

func TestScoresUpToTwoToThe53StayExact(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	for _, score := range []int64{1, 1<<53 - 1, 1 << 53} {
		x, g := ticket(), grant()
		x.Place.Score, g.Place.Score = score, score
		gotX, err := r.Ticket(signTicket(t, r, x))
		require.NoError(t, err)
		gotG, err := r.Grant(signGrant(t, r, g))
		require.NoError(t, err)
		require.Equal(t, []int64{score, score}, []int64{gotX.Place.Score, gotG.Place.Score})
	}
}

func TestFractionsOfASecondOfIssueAreCutOff(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	x, g := ticket(), grant()
	x.IssuedAt, g.IssuedAt = issued.Add(999_999*time.Microsecond), issued.Add(999_999*time.Microsecond)
	require.Equal(t, signTicket(t, r, ticket()), signTicket(t, r, x))
	require.Equal(t, signGrant(t, r, grant()), signGrant(t, r, g))
}

func TestTimeIsNotJudged(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	for _, at := range []time.Time{time.Unix(1, 0), time.Now().Add(-48 * time.Hour), time.Now().Add(48 * time.Hour)} {
		x, g := ticket(), grant()
		x.IssuedAt, g.IssuedAt, g.Expiry = at, at, at.Truncate(time.Second).Add(time.Second)
		_, err := r.Ticket(signTicket(t, r, x))
		require.NoError(t, err, "issued at %v", at)
		_, err = r.Grant(signGrant(t, r, g))
		require.NoError(t, err, "issued at %v", at)
	}
}

func TestLargestCredentialsStayBelowTheCap(t *testing.T) {
	t.Parallel()
	kid := strings.Repeat("k", 32)
	r := ring(t, kid+":ed25519:"+b64(seedE))
	g := grant()
	g.KeyID, g.Room, g.Member = kid, strings.Repeat("r", 64), strings.Repeat("<", 128) // "<" is six bytes of JSON
	g.Sale, g.Generation, g.Place.Score = 1<<53, 1<<53, 1<<53
	g.IssuedAt, g.Expiry = time.Unix(253402300798, 0), time.Unix(253402300799, 0)
	s := signGrant(t, r, g)
	require.Less(t, len(s), 2048)
	got, err := r.Grant(s)
	require.NoError(t, err)
	require.Equal(t, g.Member, got.Member)
}

func TestOnlyPickedGrantsAreSigned(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	for name, breakIt := range map[string]func(*queue.Grant){
		"not picked up":      func(g *queue.Grant) { g.Picked = false },
		"fractional expiry":  func(g *queue.Grant) { g.Expiry = g.Expiry.Add(time.Microsecond) },
		"no expiry":          func(g *queue.Grant) { g.Expiry = time.Time{} },
		"expiry at issue":    func(g *queue.Grant) { g.Expiry = g.IssuedAt },
		"key not in ring":    func(g *queue.Grant) { g.KeyID = "z" },
		"no key":             func(g *queue.Grant) { g.KeyID = "" },
		"no id":              func(g *queue.Grant) { g.ID = "" },
		"id in upper case":   func(g *queue.Grant) { g.ID = strings.ToUpper(g.ID) },
		"id as a URN":        func(g *queue.Grant) { g.ID = "urn:uuid:" + g.ID },
		"no place":           func(g *queue.Grant) { g.Place = queue.Place{} },
		"room with a brace":  func(g *queue.Grant) { g.Room = "a}" },
		"member with spaces": func(g *queue.Grant) { g.Member = "a b" },
		"lane 4":             func(g *queue.Grant) { g.Place.Lane = 4 },
		"generation 0":       func(g *queue.Grant) { g.Generation = 0 },
	} {
		g := grant()
		breakIt(&g)
		s, err := r.SignGrant(g)
		require.Error(t, err, name)
		require.Empty(t, s.Reveal(), name)
		require.NotContains(t, err.Error(), "\n", name)
	}
}

func TestMalformedTicketsAreNotSigned(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	for name, breakIt := range map[string]func(*credential.Ticket){
		"no room":              func(x *credential.Ticket) { x.Room = "" },
		"no member":            func(x *credential.Ticket) { x.Member = "" },
		"no time":              func(x *credential.Ticket) { x.IssuedAt = time.Time{} },
		"a time too far":       func(x *credential.Ticket) { x.IssuedAt = time.Unix(253402300799, 0) },
		"negative lane":        func(x *credential.Ticket) { x.Place.Lane = -1 },
		"negative score":       func(x *credential.Ticket) { x.Place.Score = -1 },
		"score above 2^53":     func(x *credential.Ticket) { x.Place.Score = 1<<53 + 1 },
		"a place in no sale":   func(x *credential.Ticket) { x.Sale = 0 },
		"a lane, but no place": func(x *credential.Ticket) { x.Place.Score = 0 },
	} {
		x := ticket()
		breakIt(&x)
		s, err := r.SignTicket(x)
		require.Error(t, err, name)
		require.Empty(t, s.Reveal(), name)
	}
}

func TestATicketWithoutAPlaceNeedsNoGeneration(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	want := credential.Ticket{Room: "default", Member: "ann", IssuedAt: issued, KeyID: "a"}
	got, err := r.Ticket(signTicket(t, r, want))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))
}

func TestTicketsEndAfterTheirTTL(t *testing.T) {
	t.Parallel()
	x := ticket()
	require.False(t, x.Expired(issued.Add(credential.TicketTTL-time.Microsecond)))
	require.True(t, x.Expired(issued.Add(credential.TicketTTL)), "live means now < end")
}

func TestTicketsAreRenewedInTheirSecondHalf(t *testing.T) {
	t.Parallel()
	r, x := first(t, "a"), ticket()
	require.False(t, x.Renew(issued.Add(credential.TicketTTL/2-time.Microsecond), r))
	require.True(t, x.Renew(issued.Add(credential.TicketTTL/2), r))
}

func TestIDsAreFreshAndWellFormed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	var or, and byte = 0, 0xff // of the byte that holds the version in other UUIDs
	for range 200 {
		m, id := credential.NewMember(), credential.NewGrantID()
		require.Len(t, m, 22)
		require.True(t, credential.ValidMember(m))
		require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, id)
		require.False(t, seen[m] || seen[id], "ids must never repeat")
		seen[m], seen[id] = true, true
		or, and = or|id[14], and&id[14]
	}
	require.NotEqual(t, or, and, "the version digit must be random as well")
}

func TestMemberIDsArePrintableASCIIWithoutSpaces(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{"a", "~", "!", "user:1|x", strings.Repeat("m", 128)} {
		require.True(t, credential.ValidMember(ok), "%q", ok)
	}
	for _, bad := range []string{"", " ", "a b", "a\r\nSet-Cookie:x", "a\x00", "\x1b[31m", "\x7f", "é", "\u2028", "\xff", strings.Repeat("m", 129)} {
		require.False(t, credential.ValidMember(bad), "%q", bad)
	}
}
