package main

import (
	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/challenge"
	"github.com/linekeeper/linekeeper/internal/config"
)

// challenges is the outside service that is set, or none.
func challenges(c config.Challenge) api.Challenges {
	if c.ChallengeURL == "" {
		return nil
	}
	return challenge.New(challenge.Options{
		URL: c.ChallengeURL.Reveal(), Secret: c.ChallengeSecret.Reveal(),
		Hostname: c.ChallengeHostname, Action: c.ChallengeAction, Private: c.ChallengePrivate,
	})
}
