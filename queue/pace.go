package queue

import "time"

// LongestPoll is the longest time that anybody is ever told to wait between
// two polls. The scripts' horizon and the lower bound of awayAfterSeconds rest
// on it.
const LongestPoll = 30 * time.Second

// PollInterval is how long a member with that many ahead waits between polls:
// often near the front, rarely at the back.
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

// Horizon is how many members at the front of a lane the room listens to: those
// who could be served before an absent member would be noticed. The scripts
// compute the same number; heartbeats of members behind it are not sent.
func (r Rules) Horizon() int64 {
	perSecond := float64(r.Batch) / r.Interval.Seconds()
	n := int64(perSecond * (r.AwayAfter + 2*LongestPoll).Seconds())
	return min(max(n, 1000), 100_000)
}

// PollAfter is PollInterval bounded for those near the front, so that a member
// who polls as told can neither be taken for absent nor miss a pick-up.
func (r Rules) PollAfter(ahead int64) time.Duration {
	d := PollInterval(ahead)
	if ahead < r.Horizon() {
		d = min(d, r.AwayAfter/3, r.PickupTTL/3)
	}
	return d
}
