package credential_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// seeds are payloads and whole credentials that lead a fuzzer into the parser.
func seeds(f *testing.F) {
	r := first(f, "a")
	for _, s := range []string{
		signTicket(f, r, ticket()), signGrant(f, r, grant()), edSign(headerE, ticketPayload), ticketPayload, grantPayload,
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
			g, err := r.Grant(s)
			if err != nil {
				continue
			}
			require.Equal(t, s, signGrant(t, r, g))
			_, err = r.Ticket(s)
			require.Error(t, err, "an entry token passed as a ticket")
		}
	})
}
