package credential_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestABindingFitsOneMemberInOneNetwork(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	home, away := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.0.3.0/24")
	for _, kid := range []string{"a", "b", "e"} {
		b := r.Bind(kid, "ann", home)
		require.Len(t, b, 11)
		require.True(t, r.BoundTo(b, "ann", home))
		require.False(t, r.BoundTo(b, "ann", away))
		require.False(t, r.BoundTo(b, "bob", home), "who shares a network must not be seen to")
		require.False(t, r.BoundTo(b, "ann", netip.Prefix{}), "nowhere is not at home")
		require.False(t, r.BoundTo(b, "ann", netip.MustParsePrefix("::ffff:192.0.2.0/120")))
	}
	require.NotEqual(t, r.Bind("a", "ann", home), r.Bind("b", "ann", home), "only holders of the key can make one")
	require.Empty(t, r.Bind("a", "ann", netip.Prefix{}))
	require.Empty(t, r.Bind("z", "ann", home))
	require.True(t, r.BoundTo("", "ann", away))
	require.Equal(t, r.Bind("a", "ann", home), ring(t, entryA()).Bind("a", "ann", home), "every process makes the same")
}

func TestBoundTokensComeBackAsTheyWereSigned(t *testing.T) {
	t.Parallel()
	r := first(t, "a")
	b := r.Bind("a", "ann", netip.MustParsePrefix("2001:db8:1::/48"))
	s, err := r.SignBound(grant(), b)
	require.NoError(t, err)
	got, binding, err := r.Bound(s.Reveal())
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(grant(), got))
	require.Equal(t, b, binding)
	for _, bad := range []string{"AAAAAAAAAA", "AAAAAAAAAAB", "AAAAAAAAAAAA", "AAAAAAAAAA=", "AAAAA\nAAAAAA", "192.0.2.0/24"} {
		_, err := r.SignBound(grant(), bad)
		require.Error(t, err, bad)
		x := ticket()
		x.Binding = bad
		_, err = r.SignTicket(x)
		require.Error(t, err, bad)
		require.False(t, r.BoundTo(bad, "ann", netip.MustParsePrefix("2001:db8:1::/48")), bad)
	}
}
