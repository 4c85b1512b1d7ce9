package credential

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/queue"
)

// libraryVerify is verify without the fast way.
func libraryVerify(r *Ring, s string, p purpose) (*claims, bool) {
	header, rest, _ := strings.Cut(s, ".")
	k, ok := r.now().byHeader[header]
	if !ok || strings.ContainsAny(s, "\r\n") {
		return nil, false
	}
	c := new(claims)
	if _, err := p.parser.ParseWithClaims(s, c, k.verify); err != nil {
		return nil, false
	}
	payload, _, _ := strings.Cut(rest, ".")
	return c, c.encodesTo(payload)
}

func fixedRing(t require.TestingT) *Ring {
	r, err := ParseRing("a:" + base64.StdEncoding.EncodeToString([]byte("0123456789-0123456789-0123456789")))
	require.NoError(t, err)
	return r
}

// sealed is payload as a JWT that the ring's key has signed.
func sealed(t require.TestingT, r *Ring, payload string) string {
	k := r.now().keys[0]
	text := k.header + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	sum, err := k.seal(text)
	require.NoError(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(sum)
}

// same demands that both ways say the same of s; what is not plain the fast one
// may leave to the library, and nothing else.
func same(t require.TestingT, r *Ring, s string) {
	for _, p := range []purpose{r.tickets, r.tokens} {
		k := r.now().keys[0]
		var fast *claims
		var taken bool
		if header, _, _ := strings.Cut(s, "."); header == k.header && !strings.ContainsAny(s, "\r\n") {
			fast, taken = k.verifyFast(s, p.audience)
		}
		want, good := libraryVerify(r, s, p)
		if taken {
			require.True(t, good, "taken, and refused by the library: %q", s)
			require.Equal(t, want, fast)
		} else if good && len(s) <= maxLength {
			_, ok := want.append(nil)
			require.False(t, ok && positive(want), "left to the library without need: %q", s)
		}
	}
}

// positive tells that all numbers of claims are such as a credential has.
func positive(c *claims) bool {
	for _, n := range []int64{c.Sale, c.Generation, int64(c.Lane), c.Score, c.IssuedAt, c.Expiry, int64(c.Work)} {
		if !within(n, 0, maxExact) {
			return false
		}
	}
	return c.Lane <= 1<<30 && c.Work <= 1<<30
}

var payloads = []string{
	`{"aud":"linekeeper-ticket","room":"default","sale":3,"gen":7,"sub":"ann","lane":1,"score":17,"iat":1,"exp":2}`,
	`{"aud":"linekeeper-token","jti":"x","room":"default","sale":3,"gen":7,"sub":"ann","lane":1,"score":17,"iat":1,"exp":2,"granted":true,"work":3,"open":true,"net":"AAAAAAAAAAA"}`,
	`{"aud":"linekeeper-ticket","jti":"","room":"","sale":0,"gen":0,"sub":"","lane":0,"score":0,"iat":0,"exp":0}`,
	`{"aud":"linekeeper-ticket","room":"default","sale":03,"gen":-7,"sub":"a\"n","lane":4294967296,"score":9223372036854775807,"iat":1,"exp":2,"granted":false,"work":0,"net":""}`,
	`{"aud":"linekeeper-ticket","room":"default","sale":3,"gen":7,"sub":"<&>","lane":1,"score":17,"iat":1,"exp":2} `,
}

func TestTheFastWayAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	r := fixedRing(t)
	for _, p := range payloads {
		s := sealed(t, r, p)
		same(t, r, s)
		for i := range len(s) { // any other byte, any other length
			same(t, r, s[:i]+string(s[i]^1)+s[i+1:])
			same(t, r, s[:i])
			same(t, r, s[:i]+"."+s[i:])
		}
		for i := range len(p) {
			same(t, r, sealed(t, r, p[:i]+p[i+1:]))
			same(t, r, sealed(t, r, p[:i]+" "+p[i:]))
			same(t, r, sealed(t, r, p[:i]+"0"+p[i:]))
		}
	}
	_, taken := r.now().keys[0].verifyFast(sealed(t, r, payloads[0]), ticketAudience)
	require.True(t, taken, "the fast way is one that is taken")
}

func FuzzFastWay(f *testing.F) {
	for _, p := range payloads {
		f.Add(p)
	}
	r := fixedRing(f)
	f.Fuzz(func(t *testing.T, s string) {
		same(t, r, s)
		same(t, r, sealed(t, r, s))
	})
}

// anyText has characters that JSON escapes, too.
var anyText = rapid.StringMatching(`[ -~é]{0,20}`)

func TestTheFastWayWritesTheBytesOfTheLibrary(t *testing.T) {
	t.Parallel()
	r := fixedRing(t)
	k := r.now().keys[0]
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64()
		c := &claims{
			Audience: rapid.SampledFrom([]string{ticketAudience, tokenAudience}).Draw(t, "aud"), ID: anyText.Draw(t, "jti"), Room: anyText.Draw(t, "room"),
			Sale: n.Draw(t, "sale"), Generation: n.Draw(t, "gen"), Member: anyText.Draw(t, "sub"), Lane: int(n.Draw(t, "lane")), Score: n.Draw(t, "score"),
			IssuedAt: n.Draw(t, "iat"), Expiry: n.Draw(t, "exp"), Granted: rapid.Bool().Draw(t, "granted"), Work: int(n.Draw(t, "work")),
			Open: rapid.Bool().Draw(t, "open"), Network: anyText.Draw(t, "net"),
		}
		got, ok := k.signFast(c)
		if !ok {
			return
		}
		taken++
		want, err := k.signed(k.token(c))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
	require.Positive(t, taken)
}

// A poll reads a ticket. The library needs 54.
func TestATicketIsReadWithFewAllocations(t *testing.T) {
	r := fixedRing(t)
	s, err := r.SignTicket(Ticket{Room: "default", Sale: 1, Generation: 1, Member: "ann", Place: queue.Place{Score: 17}, IssuedAt: time.Unix(1_700_000_000, 0)})
	require.NoError(t, err)
	text := s.Reveal()
	n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Ticket(text); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, n, 6.0, "with the race detector a pool forgets now and then")
}
