package config

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The lock may not be so short that one slow call loses it, nor so long that a
// dead leader stops a sale for minutes.
const (
	minLeaderTTL     = 2 * time.Second
	maxLeaderTTL     = 60 * time.Second
	maxShutdownDelay = 5 * time.Minute
)

// A brace in the prefix would move the hash tag, and with it the rule that all
// keys of a room live in one Cluster slot.
var keyPrefixPattern = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// Check reports every setting that a serving process lacks or can't use, all
// joined. Parse calls it for the selected command; a command that fills
// settings in by itself shadows it, calls CheckValues there, and Check later.
//
// It is not called Validate, because kong would call that by itself, once for
// each struct that embeds it, and stop at the first error.
func (p Process) Check() error {
	var ps problems
	ps.join(p.Redis.Check())
	ps.join(p.Database.Check())
	if p.Roles.Has(RoleAPI) && p.Keys == "" {
		ps.add("LINEKEEPER_KEYS", "is required by the role api")
	}
	ps.join(p.CheckValues())
	return ps.err()
}

// CheckValues reports every setting that is there but can't be used, alone or
// together with the others.
func (p Process) CheckValues() error {
	var ps problems
	ps.join(p.Redis.values())
	ps.join(p.Database.values())
	ps.join(p.Challenge.values())
	ps.join(p.Limits.Check())
	p.checkListeners(&ps)
	p.checkIdentity(&ps)
	if p.LeaderTTL != 0 && (p.LeaderTTL < minLeaderTTL || p.LeaderTTL > maxLeaderTTL) {
		ps.add("LINEKEEPER_LEADER_TTL", "is %v, not 0 or between %v and %v", p.LeaderTTL, minLeaderTTL, maxLeaderTTL)
	}
	if p.ShutdownDelay < 0 || p.ShutdownDelay > maxShutdownDelay {
		ps.add("LINEKEEPER_SHUTDOWN_DELAY", "is %v, not between 0 and %v", p.ShutdownDelay, maxShutdownDelay)
	}
	return ps.err()
}

// checkListeners compares ports only, not hosts: 0.0.0.0 and 127.0.0.1 clash
// on some systems, and two ports are easy to have.
func (p Process) checkListeners(ps *problems) {
	_, port, err := splitListen(p.Listen)
	if err != nil {
		ps.add("LINEKEEPER_LISTEN", "%w", err)
	}
	adminHost, adminPort, adminErr := splitListen(p.AdminListen)
	if adminErr != nil {
		ps.add("LINEKEEPER_ADMIN_LISTEN", "%w", adminErr)
		return
	}
	// Whoever reaches the admin listener can flush a sale.
	if !loopback(adminHost) && strings.TrimSpace(p.AdminTokens.Reveal()) == "" && p.OIDCIssuer == "" {
		ps.add("LINEKEEPER_ADMIN_LISTEN", "is %s, beyond loopback, which needs LINEKEEPER_ADMIN_TOKENS or LINEKEEPER_OIDC_ISSUER", p.AdminListen)
	}
	if err == nil && port == adminPort && port != 0 {
		ps.add("LINEKEEPER_ADMIN_LISTEN", "has port %d, which LINEKEEPER_LISTEN has too", port)
	}
}

// Check reports what is missing or can't be used of the settings for Redis.
func (r Redis) Check() error {
	var ps problems
	if r.RedisURL == "" {
		ps.add("LINEKEEPER_REDIS_URL", "is required")
	}
	ps.join(r.values())
	return ps.err()
}

func (r Redis) values() error {
	var ps problems
	if r.RedisURL != "" {
		if _, err := RedisOptions(r.RedisURL); err != nil {
			ps.add("LINEKEEPER_REDIS_URL", "%w", err)
		}
	}
	if !keyPrefixPattern.MatchString(r.KeyPrefix) {
		ps.add("LINEKEEPER_KEY_PREFIX", "is %q, not 1 to 64 of a-z, 0-9, _ and -", r.KeyPrefix)
	}
	return ps.err()
}

// Check reports what is missing or can't be used of the settings for Postgres.
func (d Database) Check() error {
	var ps problems
	if d.DatabaseURL == "" {
		ps.add("LINEKEEPER_DATABASE_URL", "is required")
	}
	ps.join(d.values())
	return ps.err()
}

func (d Database) values() error {
	var ps problems
	if d.DatabaseURL != "" {
		if err := d.DatabaseURL.postgres(); err != nil {
			ps.add("LINEKEEPER_DATABASE_URL", "%w", err)
		}
	}
	return ps.err()
}

// splitListen takes host:port apart. Port 0 is allowed: the system picks one.
func splitListen(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("is %q, not host:port", addr)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("is %q, whose port is not between 0 and 65535", addr)
	}
	return host, int(n), nil
}

// loopback tells whether only this machine can reach host. A name other than
// localhost may resolve to anything.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
