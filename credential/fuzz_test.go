package credential_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// seeds are payloads and whole credentials that lead a fuzzer into the parser.
func seeds(f *testing.F) {
	r := first(f, "a")
	for _, s := range []string{
		signTicket(f, r, ticket()), signGrant(f, r, grant()), edSign(headerE, ticketPayload), ticketPayload, grantPayload,
		strings.Replace(ticketPayload, "}", `,"net":"AAAAAAAAAAA"}`, 1), strings.Replace(grantPayload, "}", `,"net":"AAAAAAAAAAB"}`, 1),
		"", "..", "null", "{}", `{"aud":["linekeeper-ticket"]}`, raw(headerA) + "..", mac(secretA, `{"alg":"none"}`, grantPayload),
	} {
		f.Add(s)
	}
}

// What passes, be it sent or even signed by one who has the key, must be what
// we would have signed ourselves: there is no second spelling of a ticket.
func FuzzTicket(f *testing.F) {
	seeds(f)
	r := first(f, "a")
	f.Fuzz(func(t *testing.T, data string) {
		for _, s := range []string{data, mac(secretA, headerA, data)} {
			x, err := r.Ticket(s)
			if err != nil {
				continue
			}
			require.Equal(t, s, signTicket(t, first(t, x.KeyID), x))
			_, err = r.Grant(s)
			require.Error(t, err, "a ticket passed as an entry token")
		}
	})
}

func FuzzGrant(f *testing.F) {
	seeds(f)
	r := first(f, "a")
	f.Fuzz(func(t *testing.T, data string) {
		for _, s := range []string{data, mac(secretA, headerA, data)} {
			g, binding, err := r.Bound(s)
			if err != nil {
				continue
			}
			again, err := r.SignBound(g, binding)
			require.NoError(t, err)
			require.Equal(t, s, again.Reveal())
			_, err = r.Ticket(s)
			require.Error(t, err, "an entry token passed as a ticket")
		}
	})
}

// What passes for a binding must be one that is made for this very member and
// network.
func FuzzNetworkClaim(f *testing.F) {
	r := first(f, "a")
	home := netip.MustParsePrefix("192.0.2.0/24")
	f.Add(r.Bind("a", "ann", home), "ann")
	f.Add("AAAAAAAAAAA", "ann")
	f.Add("", "")
	f.Add("AAAAAAAAAAB=", "a\x00b")
	f.Fuzz(func(t *testing.T, binding, member string) {
		made := map[string]bool{"": true}
		for _, kid := range []string{"a", "b", "e"} {
			made[r.Bind(kid, member, home)] = true
		}
		require.Equal(t, made[binding], r.BoundTo(binding, member, home))
		x := ticket()
		x.Binding = binding
		if s, err := r.SignTicket(x); err == nil {
			got, err := r.Ticket(s.Reveal())
			require.NoError(t, err)
			require.Equal(t, binding, got.Binding)
		}
	})
}
