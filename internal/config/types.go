package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// Roles is a set of what a process does.
type Roles uint8

// The roles. A process may have any of them; each may run on many processes.
const (
	RoleAPI       Roles = 1 << iota // serves the public API
	RoleScheduler                   // lets people through, when it leads
	RoleRelay                       // delivers the outbox
)

var roleNames = []struct {
	role Roles
	name string
}{{RoleAPI, "api"}, {RoleScheduler, "scheduler"}, {RoleRelay, "relay"}}

// Has tells whether the set holds role.
func (r Roles) Has(role Roles) bool { return r&role != 0 }

// String lists the roles as a setting has them.
func (r Roles) String() string {
	var names []string
	for _, n := range roleNames {
		if r.Has(n.role) {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}

// MarshalText is String.
func (r Roles) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a comma-separated list of at least one role.
func (r *Roles) UnmarshalText(text []byte) error {
	var set Roles
	for _, name := range strings.Split(string(text), ",") {
		role := roleNamed(strings.TrimSpace(name))
		if role == 0 {
			return fmt.Errorf("%q is not one of api, scheduler and relay", name)
		}
		set |= role
	}
	*r = set
	return nil
}

func roleNamed(name string) Roles {
	for _, n := range roleNames {
		if n.name == name {
			return n.role
		}
	}
	return 0
}

// Identity is how a request says which member it comes from.
type Identity string

// The identities.
const (
	IdentityTicket Identity = "ticket" // an anonymous member, bound by a signed queue ticket
	IdentityHeader Identity = "header" // X-Member-Id, from a trusted proxy only
	IdentityJWT    Identity = "jwt"    // the application's own user tokens
)

// UnmarshalText reads an identity.
func (i *Identity) UnmarshalText(text []byte) error {
	switch v := Identity(text); v {
	case IdentityTicket, IdentityHeader, IdentityJWT:
		*i = v
		return nil
	default:
		return fmt.Errorf("%q is not ticket, header or jwt", text)
	}
}

// Prefixes is a list of networks.
type Prefixes []netip.Prefix

// UnmarshalText reads comma-separated networks; a plain address is a network
// of one. An empty text is an empty list, so that a flag can undo a file.
func (p *Prefixes) UnmarshalText(text []byte) error {
	*p = nil
	if len(text) == 0 {
		return nil
	}
	var list Prefixes
	for _, item := range strings.Split(string(text), ",") {
		prefix, err := parsePrefix(strings.TrimSpace(item))
		if err != nil {
			return err
		}
		list = append(list, prefix)
	}
	*p = list
	return nil
}

// parsePrefix refuses bits beyond the mask: 10.1.2.3/8 may have been meant as
// one host, and trusting sixteen million instead is not for us to guess.
func parsePrefix(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%q is not a network like 10.0.0.0/8", text)
	case prefix.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%q is IPv4 in IPv6; write the IPv4 network", text)
	case prefix != prefix.Masked():
		return netip.Prefix{}, fmt.Errorf("%q has bits beyond its mask; %v would be the network", text, prefix.Masked())
	}
	return prefix, nil
}
