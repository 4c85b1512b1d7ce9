package room_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

// browserHost is the host that a browser goes to, by the steps of the WHATWG URL
// standard that differ from RFC 3986: controls vanish, backslashes are slashes,
// any number of slashes begins an authority, and its last @ ends the user.
func browserHost(address string) (scheme, host string) {
	address = strings.Trim(address, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f ")
	address = strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(address)
	scheme, rest, _ := strings.Cut(address, ":")
	rest = strings.TrimLeft(rest, "/")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return strings.ToLower(scheme), strings.ToLower(rest[strings.LastIndexByte(rest, '@')+1:])
}

var wrongReturns = []string{
	"//evil.example", `/\evil.example`, "/%09/evil.example", "https:evil.example", "https://good.example@evil.example", "https://evil-good.com/../..//evil.example",
	"javascript:alert(1)", "/..//evil.example", "/\t/evil.example", "/\n/evil.example", "https:/\t/evil.example", "https:\n//evil.example", "http://169.254.169.254",
	"http://shop.example", "https://169.254.169.254", "https://[::1]/", "https://127.1", "https://0x7f000001", "https://2130706433", "https://shop.example.",
	"https://shop.example//evil.example", "https://shop.example/..//evil.example", "https://shop.example/%2e%2e//evil.example", "https://shop.example/%5cevil.example", "https://shop.example/%2fevil.example", "https://shop.example/a/%2e%2e", "https://shop.example/%0d%0aSet-Cookie:x", "data:text/html,x", "", "/", "https://",
}

// Case 85, oauth2-proxy GHSA-j7px-6hwj-hpjg, bitly/oauth2_proxy#228: what is to be
// a way back to the shop is refused unless every reader of it goes to the shop.
func TestCase85ReturnURLsThatLeadElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	for _, wrong := range wrongReturns {
		s := room.Defaults()
		s.ReturnURLs = []string{wrong}
		var problems room.Problems
		require.ErrorAs(t, s.Validate(), &problems, "%q", wrong)
		require.Equal(t, "returnUrls[0]", problems[0].Field)
	}
	s := room.Defaults()
	s.ReturnURLs = []string{"https://shop.example/back", "https://xn--bcher-kva.example", "https://shop.example:8443/a/b%20c", "https://192-168.example"}
	require.NoError(t, s.Validate())
}

// FuzzReturnURL holds that net/url and a browser go to the same host, by https.
func FuzzReturnURL(f *testing.F) {
	for _, seed := range append(wrongReturns, "https://shop.example/back", "https://shop.example:8443/a%20b") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		s := room.Defaults()
		s.ReturnURLs = []string{address}
		if s.Validate() != nil {
			return
		}
		u, err := url.Parse(address)
		require.NoError(t, err)
		scheme, host := browserHost(address)
		require.Equal(t, "https", scheme)
		require.Equal(t, u.Host, host, "a browser goes elsewhere with %q", address)
		require.Equal(t, address, u.String())
		require.NotContains(t, u.Path, "//", "%q", address)
		require.False(t, strings.ContainsAny(address, "\\@\t\r\n \x00"), "%q", address)
	})
}
