// Package clientip tells which address a request came from.
//
// A header is believed only as far as networks that the operator trusts have
// written it: X-Forwarded-For is read from the right, where the nearest proxy
// added what it saw, past every trusted proxy, to the first address that is none
// of them. What stands further left was sent by that client, and says nothing.
// No other header is read.
package clientip

import (
	"net/http"
	"net/netip"
	"strings"
)

// Trusted are the networks of proxies whose headers are believed.
type Trusted []netip.Prefix

// Has tells whether a proxy at addr is believed.
func (t Trusted) Has(addr netip.Addr) bool {
	for _, p := range t {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// Peer returns the address that the connection of r comes from; the zero one
// where it has none, as on a socket of the file system. An IPv4 address that is
// written as one of IPv6 is returned as IPv4, and no address has a zone.
func Peer(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return plain(peer.Addr())
}

// Of returns the address of who asks. That is the peer's, unless the peer is
// trusted: then it is what the trusted proxies say. If one of them has written
// something that is no address, it is the peer's again.
func (t Trusted) Of(r *http.Request) netip.Addr {
	peer := Peer(r)
	from := peer
	lines := r.Header.Values("X-Forwarded-For")
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			if !t.Has(from) {
				return from
			}
			hop := rest
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, hop = rest[:comma], rest[comma+1:]
			} else {
				more = false
			}
			var ok bool
			if from, ok = parse(strings.Trim(hop, " \t")); !ok {
				return peer
			}
		}
	}
	return from
}

// parse reads one address as proxies write it, with or without a port.
func parse(hop string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]")); err == nil {
		return plain(addr), true
	}
	withPort, err := netip.ParseAddrPort(hop)
	return plain(withPort.Addr()), err == nil
}

func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// Network returns the network that addr is in: v4 bits long for IPv4, v6 bits
// for IPv6; the zero one for the zero address.
func Network(addr netip.Addr, v4, v6 int) netip.Prefix {
	bits := v6
	if addr.Is4() {
		bits = v4
	}
	p, _ := addr.Prefix(bits)
	return p
}
