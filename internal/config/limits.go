package config

import (
	"time"

	"github.com/linekeeper/linekeeper/ratelimit"
)

// Limits are how often people may do what; docs/limits.md tells what each counts.
// The zero value limits nothing.
type Limits struct {
	LimitEnterAddress    ratelimit.Limit `env:"LINEKEEPER_LIMIT_ENTER_ADDRESS" default:"sliding:60/1m" placeholder:"LIMIT" help:"Newcomers from one address (IPv6: a /64), as fixed, sliding, token or leaky:N/duration, or off. Not counted with LINEKEEPER_IDENTITY=header or jwt."`
	LimitEnterNetwork    ratelimit.Limit `env:"LINEKEEPER_LIMIT_ENTER_NETWORK" default:"sliding:600/1m" placeholder:"LIMIT" help:"Newcomers from one IPv6 /48, as the one before."`
	LimitEnterMember     ratelimit.Limit `env:"LINEKEEPER_LIMIT_ENTER_MEMBER" default:"sliding:10/1m" placeholder:"LIMIT" help:"Enters of one member to one room."`
	LimitOrderMember     ratelimit.Limit `env:"LINEKEEPER_LIMIT_ORDER_MEMBER" default:"leaky:10/1m" placeholder:"LIMIT" help:"Attempts of one member to order with one entry token."`
	LimitPollMember      ratelimit.Limit `env:"LINEKEEPER_LIMIT_POLL_MEMBER" default:"token:3/1s" placeholder:"LIMIT" help:"Polls of one member of one room, in each process by itself: token:N/duration, one in 3s or more, or off."`
	LimitWrongCredential ratelimit.Limit `env:"LINEKEEPER_LIMIT_WRONG_CREDENTIAL" default:"token:30/1m" placeholder:"LIMIT" help:"Tokens and tickets from one address that are not good, in each process by itself: token:N/duration, or off. A good one is never refused for it."`
}

// slowestPoll is the longest that a limit may make people near the front wait: a
// grant is there for 10 s at least, and nobody should miss it for a limit.
const slowestPoll = 3 * time.Second

// Check reports the limits that can't be used.
func (l Limits) Check() error {
	var ps problems
	for setting, limit := range map[string]ratelimit.Limit{"LINEKEEPER_LIMIT_POLL_MEMBER": l.LimitPollMember, "LINEKEEPER_LIMIT_WRONG_CREDENTIAL": l.LimitWrongCredential} {
		if !limit.Off() && limit.Algorithm != ratelimit.Token {
			ps.add(setting, "is %s, and each process counts it by itself, which only token:N/duration can", limit)
		}
	}
	if poll := l.LimitPollMember; poll.Algorithm == ratelimit.Token && poll.Per/time.Duration(poll.N) > slowestPoll {
		ps.add("LINEKEEPER_LIMIT_POLL_MEMBER", "is %s, less than one in %v: people near the front could miss their turn", poll, slowestPoll)
	}
	return ps.err()
}
