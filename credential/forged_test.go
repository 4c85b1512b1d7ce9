package credential_test

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/credential"
)

func TestTicketsNeverPassAsEntryTokens(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	_, err := r.Grant(signTicket(t, r, ticket()))
	require.True(t, err == credential.ErrInvalid)
	_, err = r.Ticket(signGrant(t, r, grant()))
	require.True(t, err == credential.ErrInvalid)
	// Each with all the claims of the other kind, and only the audience swapped.
	refused(t, r, mac(secretA, headerA, strings.Replace(ticketPayload, "-ticket", "-token", 1)), "a ticket for tokens")
	refused(t, r, mac(secretA, headerA, strings.Replace(grantPayload, "-token", "-ticket", 1)), "a token for tickets")
	g := grant()
	g.Expiry = g.IssuedAt.Add(credential.TicketTTL)
	_, err = r.Ticket(signGrant(t, r, g))
	require.True(t, err == credential.ErrInvalid, "not even with the lifetime of a ticket")
}

func TestForeignHeadersAreRefused(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	headers := []string{
		`{"alg":"none","kid":"a","typ":"JWT"}`, `{"alg":"None","kid":"a","typ":"JWT"}`, `{"alg":"none","typ":"JWT"}`,
		`{"alg":"HS384","kid":"a","typ":"JWT"}`, `{"alg":"RS256","kid":"a","typ":"JWT"}`, `{"alg":"EdDSA","kid":"a","typ":"JWT"}`,
		`{"alg":"HS256","kid":"e","typ":"JWT"}`, `{"alg":"HS256","kid":"b","typ":"JWT"}`, `{"alg":"HS256","typ":"JWT"}`,
		`{"alg":"HS256","kid":"../../etc","typ":"JWT"}`, `{"alg":"HS256","kid":"https://evil.example/k","typ":"JWT"}`,
		`{"alg":"HS256","kid":"","typ":"JWT"}`, `{"alg":"HS256","kid":["a"],"typ":"JWT"}`, `{"alg":"HS256","kid":"a","typ":"JWE"}`,
		`{"alg":"HS256","kid":"a","typ":"JWT","jku":"https://evil.example"}`, `{"alg":"HS256","crit":["exp"],"kid":"a","typ":"JWT"}`,
		`{"alg":"HS256","jwk":{"kty":"oct","k":"AA"},"kid":"a","typ":"JWT"}`, `{"alg":"HS256","kid":"a","typ":"JWT","x5u":"https://evil.example"}`,
		`{"alg":"HS256","alg":"none","kid":"a","typ":"JWT"}`, `{"kid":"a","alg":"HS256","typ":"JWT"}`, `{"alg":"HS256","kid":"a"}`,
		` {"alg":"HS256","kid":"a","typ":"JWT"}`, `{}`, `null`, ``,
	}
	for _, header := range headers {
		for _, payload := range []string{ticketPayload, grantPayload} {
			signed := mac(secretA, header, payload)
			refused(t, r, signed, "signed with header "+header)
			refused(t, r, signed[:strings.LastIndexByte(signed, '.')+1], "unsigned with header "+header)
		}
	}
}

func TestPublicKeysAreNoSecrets(t *testing.T) {
	t.Parallel()
	r := first(t, "e")
	public := ed25519.NewKeyFromSeed(seedE).Public().(ed25519.PublicKey)
	for _, header := range []string{headerE, strings.Replace(headerE, "EdDSA", "HS256", 1), headerA} {
		refused(t, r, mac(public, header, grantPayload), "HS256 with the public key under "+header)
		refused(t, r, mac(public, header, ticketPayload), "HS256 with the public key under "+header)
	}
	refused(t, r, edSign(headerA, grantPayload), "EdDSA under a symmetric key's id")
	refused(t, r, mac(nil, headerA, grantPayload), "HS256 with an empty key")
	_, err := r.Grant(edSign(headerE, grantPayload))
	require.NoError(t, err, "the way these are forged must work with the real key")
}

// Every row is signed with the right key: who shares a key with us and signs
// other things must not make tickets by it.
func TestPayloadsOfAnotherShapeAreRefused(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	for name, change := range map[string][2]string{
		"unknown claim":         {`"lane":1`, `"lane":1,"admin":true`},
		"repeated claim":        {`"lane":1`, `"lane":0,"lane":1`},
		"claim in another case": {`"lane"`, `"Lane"`},
		"missing claim":         {`"lane":1,`, ``},
		"other order":           {`"sale":3,"gen":7`, `"gen":7,"sale":3`},
		"white space":           {`"lane":1`, `"lane": 1`},
		"exponent":              {`"sale":3`, `"sale":3e0`},
		"fraction":              {`"sale":3`, `"sale":3.0`},
		"negative zero":         {`"lane":1`, `"lane":-0`},
		"number as text":        {`"sale":3`, `"sale":"3"`},
		"null":                  {`"sale":3`, `"sale":null`},
		"escaped spelling":      {`"ann"`, `"\u0061nn"`},
		"several audiences":     {`"aud":"linekeeper-t`, `"aud":["x"],"aud":"linekeeper-t`},
		"not before":            {`"exp"`, `"nbf":1,"exp"`},
		"trailing data":         {`"sub":"ann"`, `"sub":"ann"}{"sub":"bob"`},
		"no member":             {`"ann"`, `""`},
		"member with a space":   {`"ann"`, `"a n"`},
		"member beyond ASCII":   {`"ann"`, `"änn"`},
		"member with controls":  {`"ann"`, `"a\r\nn"`},
		"member too long":       {`"ann"`, `"` + strings.Repeat("m", 129) + `"`},
		"room with a brace":     {`"default"`, `"a}{b"`},
		"room in capitals":      {`"default"`, `"Default"`},
		"room with a line end":  {`"default"`, `"default\n"`},
		"room too long":         {`"default"`, `"` + strings.Repeat("r", 65) + `"`},
		"no room":               {`"default"`, `""`},
		"lane 4":                {`"lane":1`, `"lane":4`},
		"lane -1":               {`"lane":1`, `"lane":-1`},
		"a lane but no place":   {`1700000000123456`, `0`},
		"negative score":        {`1700000000123456`, `-1`},
		"score above 2^53":      {`1700000000123456`, `9007199254740993`},
		"score beyond int64":    {`1700000000123456`, `9223372036854775808`},
		"sale 0":                {`"sale":3`, `"sale":0`},
		"negative sale":         {`"sale":3`, `"sale":-1`},
		"sale above 2^53":       {`"sale":3`, `"sale":9007199254740993`},
		"generation 0":          {`"gen":7`, `"gen":0`},
		"generation above 2^53": {`"gen":7`, `"gen":9007199254740993`},
		"issued at 0":           {`"iat":1700000000`, `"iat":0`},
		"ended before issue":    {`"exp":1700`, `"exp":1600`},
		"ends after year 9999":  {`"exp":1700`, `"exp":99991700`},
	} {
		for _, payload := range []string{ticketPayload, grantPayload} {
			changed := strings.Replace(payload, change[0], change[1], 1)
			require.NotEqual(t, payload, changed, name)
			refused(t, r, mac(secretA, headerA, changed), name+": "+changed)
		}
	}
	for _, payload := range []string{"null", "{}", "[]", `"x"`, "1", "", "{", ticketPayload + "{}", " " + grantPayload} {
		refused(t, r, mac(secretA, headerA, payload), "payload "+payload)
	}
}

func TestTicketsOfTheWrongShapeAreRefused(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	far := strings.Replace(strings.Replace(ticketPayload, `"iat":1700000000`, `"iat":253402300799`, 1), `"exp":1700086400`, `"exp":253402387199`, 1)
	bare := strings.Replace(strings.Replace(ticketPayload, `1700000000123456`, `0`, 1), `"lane":1`, `"lane":0`, 1)
	for name, payload := range map[string]string{
		"a granted place, not true": strings.Replace(ticketPayload, `"exp":1700086400`, `"exp":1700086400,"granted":false`, 1),
		"a grant without a place":   strings.Replace(bare, `"exp":1700086400`, `"exp":1700086400,"granted":true`, 1),
		"a longer life":             strings.Replace(ticketPayload, "1700086400", "1700086401", 1),
		"a shorter life":            strings.Replace(ticketPayload, "1700086400", "1700086399", 1),
		"a grant id":                strings.Replace(ticketPayload, `"room"`, `"jti":"`+grantID+`","room"`, 1),
		"times beyond year 9999":    far,
		"a negative sale, no place": strings.Replace(bare, `"sale":3`, `"sale":-1`, 1),
		"work for a place":          strings.Replace(ticketPayload, `"exp":1700086400`, `"exp":1700086400,"work":18`, 1),
		"work for no sale":          strings.Replace(bare, `"sale":3`, `"sale":0`, 1)[:len(bare)-1] + `,"work":18}`,
		"no work, written":          bare[:len(bare)-1] + `,"work":0}`,
		"negative work":             bare[:len(bare)-1] + `,"work":-1}`,
		"work beyond all":           bare[:len(bare)-1] + `,"work":33}`,
	} {
		refused(t, r, mac(secretA, headerA, payload), name)
	}
	_, err := r.Ticket(mac(secretA, headerA, bare))
	require.NoError(t, err, "without a place the rest must pass")
	asked, err := r.Ticket(mac(secretA, headerA, bare[:len(bare)-1]+`,"work":18}`))
	require.NoError(t, err)
	require.Equal(t, 18, asked.Work)
}

func TestGrantsOfTheWrongShapeAreRefused(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	for name, id := range map[string]string{
		"no id": "", "an id in capitals": strings.ToUpper(grantID), "an id in braces": "{" + grantID + "}",
		"an id as a URN": "urn:uuid:" + grantID, "an id without hyphens": strings.ReplaceAll(grantID, "-", ""), "an id that is none": "1",
	} {
		refused(t, r, mac(secretA, headerA, strings.Replace(grantPayload, grantID, id, 1)), name)
	}
	refused(t, r, mac(secretA, headerA, strings.Replace(grantPayload, `"jti":"`+grantID+`",`, "", 1)), "no jti")
	refused(t, r, mac(secretA, headerA, strings.Replace(grantPayload, "1700000300", "1700000000", 1)), "an expiry at the time of issue")
	refused(t, r, mac(secretA, headerA, strings.Replace(grantPayload, "1700000300", `1700000300,"work":18`, 1)), "work")
	zero := strings.Replace(strings.Replace(grantPayload, `1700000000123456`, `0`, 1), `"lane":1`, `"lane":0`, 1)
	refused(t, r, mac(secretA, headerA, zero), "no place")
}

// credentials are one of each kind and algorithm.
func credentials(t *testing.T) map[string]string {
	g := grant()
	g.KeyID = "e"
	return map[string]string{
		"HS256 ticket": signTicket(t, first(t, "a"), ticket()),
		"EdDSA ticket": signTicket(t, first(t, "e"), ticket()),
		"HS256 token":  signGrant(t, first(t, "a"), grant()),
		"EdDSA token":  signGrant(t, first(t, "a"), g),
	}
}

func TestNoFlippedBitPasses(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	for name, s := range credentials(t) {
		b := []byte(s)
		for i := range b {
			for bit := range 8 {
				b[i] ^= 1 << bit
				refused(t, r, string(b), name+" with a flipped bit")
				b[i] ^= 1 << bit
			}
		}
	}
}

func TestNothingCutOffOrAddedPasses(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	for name, s := range credentials(t) {
		for i := range s {
			refused(t, r, s[:i], name+" cut off")
			refused(t, r, s[i+1:], name+" beheaded")
			refused(t, r, s[:i]+s[i+1:], name+" with a byte left out")
			for _, extra := range []string{"\n", "\r", " ", "=", ".", "A", "\x00"} {
				refused(t, r, s[:i]+extra+s[i:], name+" with an insertion")
			}
		}
		for _, extra := range []string{"\n", "\r\n", " ", "=", "==", ".", ".AA", "A", "AAAA", s, strings.Repeat("A", 4096)} {
			refused(t, r, s+extra, name+" extended")
		}
	}
}

func TestChangedCredentialsNeverPass(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	all := credentials(t)
	rapid.Check(t, func(t *rapid.T) {
		one := all[rapid.SampledFrom([]string{"HS256 ticket", "HS256 token", "EdDSA ticket", "EdDSA token"}).Draw(t, "one")]
		other := all[rapid.SampledFrom([]string{"HS256 ticket", "HS256 token", "EdDSA ticket", "EdDSA token"}).Draw(t, "other")]
		parts := []string{one[:rapid.IntRange(0, len(one)).Draw(t, "cut")], rapid.StringN(0, 4, 16).Draw(t, "between"), other[rapid.IntRange(0, len(other)).Draw(t, "from"):]}
		s := strings.Join(parts, "")
		for _, good := range all {
			if s == good {
				t.Skip("spliced into a good one")
			}
		}
		refused(t, r, s, "spliced")
	})
}

func TestSegmentsCannotBeSwapped(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	all := credentials(t)
	for _, x := range all {
		for _, y := range all {
			if x == y {
				continue
			}
			a, b := strings.Split(x, "."), strings.Split(y, ".")
			for _, s := range []string{a[0] + "." + a[1] + "." + b[2], a[0] + "." + b[1] + "." + a[2], b[0] + "." + a[1] + "." + a[2]} {
				if s != x && s != y {
					refused(t, r, s, "segments of two credentials")
				}
			}
		}
	}
}

// Not parallel: it counts allocations.
func TestLongCredentialsAreRefusedBeforeAnyWork(t *testing.T) {
	r := first(t, "a")
	long := raw(headerA) + "." + strings.Repeat("A", 2048) // a header of ours: work would begin
	refused(t, r, long, "a credential of more than 2 KiB")
	require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = r.Ticket(long) }), "a long text must cost nothing")
	require.NotZero(t, testing.AllocsPerRun(10, func() { _, _ = r.Ticket(long[:2048]) }), "a shorter one is looked at")
}

func TestErrInvalidTellsNothing(t *testing.T) {
	t.Parallel()
	require.EqualError(t, credential.ErrInvalid, "credential: invalid")
	// Expiry isn't a reason of its own: an expired token of another key looks the same.
	g := grant()
	g.Expiry = g.IssuedAt.Add(time.Second)
	_, err := ring(t, entryB()).Grant(signGrant(t, first(t, "a"), g))
	require.True(t, err == credential.ErrInvalid)
}
