package credential_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkVerifyTicket(b *testing.B) {
	r := first(b, "a")
	s := signTicket(b, r, ticket())
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Ticket(s)
		require.NoError(b, err)
	}
}

func BenchmarkSignTicket(b *testing.B) {
	r, x := first(b, "a"), ticket()
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.SignTicket(x)
		require.NoError(b, err)
	}
}

func BenchmarkSignGrant(b *testing.B) {
	r, g := first(b, "a"), grant()
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.SignGrant(g)
		require.NoError(b, err)
	}
}
