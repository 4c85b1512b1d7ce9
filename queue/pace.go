package queue

import "time"

// LongestPoll is the longest time that anybody is ever told to wait between
// two polls. The scripts' horizon and the lower bound of awayAfterSeconds rest
// on it.
const LongestPoll = 30 * time.Second

// PollInterval is how long a member with that many ahead waits between polls
// while nothing is slow: often near the front, rarely at the back.
func PollInterval(ahead int64) time.Duration {
	switch {
	case ahead < 100:
		return time.Second
	case ahead < 1000:
		return 3 * time.Second
	default:
		return 5 * time.Second
	}
}

// Stretched is a poll interval made longer by a stretch of 1 or more, as far as
// intervals go.
func Stretched(d time.Duration, stretch float64) time.Duration {
	return min(time.Duration(float64(d)*stretch), LongestPoll)
}

// Horizon is how many members at the front of a lane the room listens to: those
// who could be served before an absent member would be noticed. The scripts
// compute the same number; heartbeats of members behind it are not sent.
func (r Rules) Horizon() int64 {
	perSecond := float64(r.Batch) / r.Interval.Seconds()
	n := int64(perSecond * (r.AwayAfter + 2*LongestPoll).Seconds())
	return min(max(n, 1000), 100_000)
}

// PollAfter is PollInterval, stretched, and bounded for those near the front, so
// that a member who polls as told can neither be taken for absent nor miss a
// pick-up, however busy we are.
func (r Rules) PollAfter(ahead int64, stretch float64) time.Duration {
	return min(Stretched(PollInterval(ahead), stretch), r.latestPoll(ahead))
}

// Spread moves a poll by up to a fifth either way, so that polls do not come at
// once, but never beyond what PollAfter allows. chance is from [0, 1).
func (r Rules) Spread(d time.Duration, ahead int64, chance float64) time.Duration {
	latest := min(d*6/5, r.latestPoll(ahead))
	earliest := min(d*4/5, latest)
	return earliest + time.Duration(chance*float64(latest-earliest))
}

// latestPoll is the longest that somebody with that many ahead may be told to wait.
func (r Rules) latestPoll(ahead int64) time.Duration {
	if ahead < r.Horizon() {
		return min(LongestPoll, r.AwayAfter/3, r.PickupTTL/3)
	}
	return LongestPoll
}
