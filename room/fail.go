package room

import "time"

// failsOpen refuses to pass people by in a room whose places go by lot: a draw that
// anybody can verify would be worth nothing to those who have lost against them.
// Nor may a room be told to ask for something, and then not to ask.
func (s Settings) failsOpen() Problems {
	switch {
	case s.Fail != "open":
		return nil
	case s.ByLot():
		return problem(`must be "closed" where places go by lot`).under("fail")
	case s.InvitedOnly:
		return problem(`must be "closed" where only those enter who are invited`).under("fail")
	case s.ProofOfWorkBits > 0 || s.OutsideChallenge:
		return problem(`must be "closed" where newcomers must show a proof of work or pass a challenge`).under("fail")
	}
	return nil
}

// FailOpenAfter is how long Redis has to be out of reach, without a break, until
// people pass; 0: they never do.
func (s Settings) FailOpenAfter() time.Duration {
	if s.Fail != "open" || len(s.failsOpen()) > 0 {
		return 0
	}
	return seconds(s.FailOpenAfterSeconds)
}
