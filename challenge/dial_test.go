package challenge

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyAddressesThatAnybodyCanReachArePublic(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"1.1.1.1", "104.16.0.1", "2606:4700::6810:1"} {
		require.True(t, public(netip.MustParseAddr(addr)), addr)
	}
	for _, addr := range []string{
		"127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255",
		"::1", "::", "fe80::1", "fc00::1", "fd12::1", "ff02::1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
	} {
		require.False(t, public(netip.MustParseAddr(addr)), addr)
	}
}

func TestOnlyAnAddressOrThisMachineIsSpelledOut(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://127.0.0.1:8080/x": true, "https://10.0.0.7/x": true, "https://[fd00::1]/x": true, "http://localhost:1/x": true,
		"https://challenges.example/x": false, "https://localhost.example/x": false, "http://localhost./x": false, ":": false,
	} {
		require.Equal(t, want, spelledOut(address), address)
	}
}
