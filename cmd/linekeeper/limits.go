package main

import (
	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/ratelimit"
)

// limits are those of the settings, counted in Redis under the prefix of this
// installation.
func (s *server) limits() api.Limits {
	return api.Limits{
		EnterAddress: s.conf.LimitEnterAddress, EnterNetwork: s.conf.LimitEnterNetwork, EnterMember: s.conf.LimitEnterMember,
		OrderMember: s.conf.LimitOrderMember, PollMember: s.conf.LimitPollMember, WrongCredential: s.conf.LimitWrongCredential,
		Counts: ratelimit.New(s.rdb, s.conf.KeyPrefix), Decisions: s.metrics.RateLimitDecision,
	}
}
