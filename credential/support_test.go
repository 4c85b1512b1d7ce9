package credential_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
)

const grantID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

var (
	secretA = []byte("canary-A-0123456789-0123456789-0123456789")
	secretB = []byte("canary-B-9876543210-9876543210-9876543210")
	seedE   = []byte("canary-E-0123456789-0123456789-0")
	issued  = time.Unix(1_700_000_000, 0).UTC()
)

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func raw(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// The entries of three keys: two symmetric ones and an Ed25519 one.
func entryA() string { return "a:" + b64(secretA) }
func entryB() string { return "b:" + b64(secretB) }
func entryE() string { return "e:ed25519:" + b64(seedE) }

func ring(t require.TestingT, entries ...string) *credential.Ring {
	r, err := credential.ParseRing(strings.Join(entries, ","))
	require.NoError(t, err)
	return r
}

func ticket() credential.Ticket {
	return credential.Ticket{
		Room: "default", Sale: 3, Generation: 7, Member: "ann", KeyID: "a",
		Place: queue.Place{Lane: 1, Score: 1_700_000_000_123_456}, IssuedAt: issued,
	}
}

func grant() queue.Grant {
	return queue.Grant{
		ID: grantID, Room: "default", Member: "ann", Sale: 3, Generation: 7, KeyID: "a", Picked: true,
		Place: queue.Place{Lane: 1, Score: 1_700_000_000_123_456}, IssuedAt: issued, Expiry: issued.Add(300 * time.Second),
	}
}

func signTicket(t require.TestingT, r *credential.Ring, x credential.Ticket) string {
	s, err := r.SignTicket(x)
	require.NoError(t, err)
	return s.Reveal()
}

func signGrant(t require.TestingT, r *credential.Ring, g queue.Grant) string {
	s, err := r.SignGrant(g)
	require.NoError(t, err)
	return s.Reveal()
}

// mac signs a header and a payload as HS256 does, without the code under test.
func mac(secret []byte, header, payload string) string {
	text := raw(header) + "." + raw(payload)
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// edSign is mac for the Ed25519 key.
func edSign(header, payload string) string {
	text := raw(header) + "." + raw(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(ed25519.NewKeyFromSeed(seedE), []byte(text)))
}

const (
	headerA = `{"alg":"HS256","kid":"a","typ":"JWT"}`
	headerE = `{"alg":"EdDSA","kid":"e","typ":"JWT"}`

	ticketPayload = `{"aud":"linekeeper-ticket","room":"default","sale":3,"gen":7,"sub":"ann","lane":1,` +
		`"score":1700000000123456,"iat":1700000000,"exp":1700086400}`
	grantPayload = `{"aud":"linekeeper-token","jti":"` + grantID + `","room":"default","sale":3,"gen":7,"sub":"ann","lane":1,` +
		`"score":1700000000123456,"iat":1700000000,"exp":1700000300}`
)

// refused asserts that s is neither a ticket nor an entry token, that both say
// so with the one bare error, and that nothing of s comes back.
func refused(t require.TestingT, r *credential.Ring, s, what string) {
	x, err := r.Ticket(s)
	require.True(t, err == credential.ErrInvalid, "as a ticket, %s must be ErrInvalid itself, got %v", what, err)
	require.Zero(t, x, "%s must give nothing", what)
	g, err := r.Grant(s)
	require.True(t, err == credential.ErrInvalid, "as an entry token, %s must be ErrInvalid itself, got %v", what, err)
	require.Zero(t, g, "%s must give nothing", what)
}

// anyTicket draws tickets over the whole range that may be signed.
func anyTicket(t *rapid.T) credential.Ticket {
	x := credential.Ticket{
		Room:     rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,63}`).Draw(t, "room"),
		Member:   rapid.StringMatching(`[!-~]{1,128}`).Draw(t, "member"),
		IssuedAt: time.Unix(rapid.Int64Range(1, 253402300799-86400).Draw(t, "issued"), 0).UTC(),
		KeyID:    rapid.SampledFrom([]string{"a", "b", "e"}).Draw(t, "key"),
	}
	low := int64(0)
	if rapid.Bool().Draw(t, "placed") {
		low = 1
		x.Place.Lane = rapid.IntRange(0, queue.MaxLanes-1).Draw(t, "lane")
		x.Place.Score = rapid.Int64Range(1, 1<<53).Draw(t, "score")
		x.Granted = rapid.Bool().Draw(t, "granted")
	}
	if rapid.Bool().Draw(t, "bound") {
		x.Binding = base64.RawURLEncoding.EncodeToString(rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "binding"))
	}
	x.Sale = rapid.Int64Range(low, 1<<53).Draw(t, "sale")
	x.Generation = rapid.Int64Range(low, 1<<53).Draw(t, "generation")
	if low == 0 && x.Sale > 0 {
		x.Work = rapid.IntRange(0, 32).Draw(t, "work")
	}
	return x
}

func anyGrant(t *rapid.T) queue.Grant {
	from := rapid.Int64Range(1, 253402300798).Draw(t, "issued")
	return queue.Grant{
		ID:         credential.NewGrantID(),
		Room:       rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,63}`).Draw(t, "room"),
		Member:     rapid.StringMatching(`[!-~]{1,128}`).Draw(t, "member"),
		Sale:       rapid.Int64Range(1, 1<<53).Draw(t, "sale"),
		Generation: rapid.Int64Range(1, 1<<53).Draw(t, "generation"),
		Place: queue.Place{
			Lane:  rapid.IntRange(0, queue.MaxLanes-1).Draw(t, "lane"),
			Score: rapid.Int64Range(1, 1<<53).Draw(t, "score"),
		},
		IssuedAt: time.Unix(from, 0).UTC(),
		Expiry:   time.Unix(rapid.Int64Range(from+1, 253402300799).Draw(t, "expiry"), 0).UTC(),
		Picked:   true,
		KeyID:    rapid.SampledFrom([]string{"a", "b", "e"}).Draw(t, "key"),
	}
}

// first orders the three keys so that kid signs.
func first(t require.TestingT, kid string) *credential.Ring {
	switch kid {
	case "a":
		return ring(t, entryA(), entryB(), entryE())
	case "b":
		return ring(t, entryB(), entryE(), entryA())
	default:
		return ring(t, entryE(), entryA(), entryB())
	}
}
