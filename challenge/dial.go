package challenge

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// shared are the addresses that providers use behind their own NAT (RFC 6598):
// netip does not count them among the private ones.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// transport asks no proxy, and looks at each address before it connects: what a
// name stands for can change between two looks.
func transport(o Options) *http.Transport {
	dialer := &net.Dialer{Timeout: timeout}
	if !o.Private && !spelledOut(o.URL) {
		dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil || !public(to.Addr()) {
				return fmt.Errorf("%s is not a public address", address)
			}
			return nil
		}
	}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: maxAnswer,
	}
}

// spelledOut tells whether the operator has written the very address, or this
// machine: then there is nothing to look up that could be somewhere else.
func spelledOut(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err == nil || u.Hostname() == "localhost"
}

func public(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !shared.Contains(addr)
}
