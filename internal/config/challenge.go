package config

import (
	"errors"
	"net/url"
)

// values reports what can't be used. The secret goes to the URL with every question,
// so the two belong together, and nobody in between may read it.
func (c Challenge) values() error {
	var ps problems
	switch {
	case c.ChallengeURL == "" && c.ChallengeSecret != "":
		ps.add("LINEKEEPER_CHALLENGE_SECRET", "is set, and LINEKEEPER_CHALLENGE_URL is not")
	case c.ChallengeURL != "" && c.ChallengeSecret == "":
		ps.add("LINEKEEPER_CHALLENGE_URL", "is set, and LINEKEEPER_CHALLENGE_SECRET is not")
	}
	if err := c.ChallengeURL.siteverify(); c.ChallengeURL != "" && err != nil {
		ps.add("LINEKEEPER_CHALLENGE_URL", "%w", err)
	}
	return ps.err()
}

// siteverify checks an address that secrets are sent to.
func (u URL) siteverify() error {
	parsed, err := url.Parse(string(u))
	switch {
	case err != nil || parsed.Hostname() == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "":
		return errors.New("is not a URL like https://host/path, without user and query")
	case parsed.Scheme == "https", parsed.Scheme == "http" && loopback(parsed.Hostname()):
		return nil
	default:
		return errors.New("must be https, or http on this machine")
	}
}
