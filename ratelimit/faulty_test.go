package ratelimit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// faulty are ways to get each algorithm wrong that have been published, or are
// easily written. The suite has to find each.
var faulty = []struct {
	name  string
	limit string
	make  func(l Limit) subject
}{
	{"fixed: a stretch begins anew with each that is let through", "fixed:3/1s", expiryPushedOut},
	{"fixed: a count that nothing ends", "fixed:3/1s", neverEnds},
	{"sliding: two of one moment are one entry", "sliding:3/1s", entriesByTime},
	{"sliding: what is refused is counted", "sliding:3/1s", refusedCounts},
	{"sliding: the window is as long as the last stretch", "sliding:3/1s", func(l Limit) subject { return model(Limit{Fixed, l.N, l.Per}) }},
	{"token: a token is looked at and not taken", "token:3/1s", notTaken},
	{"token: as many as a pause was long", "token:3/1s", noBottom},
	{"leaky: whoever is refused goes to the end of the row", "leaky:4/1s", reserves},
	{"leaky: the server's time in whole seconds", "leaky:4/1s", wholeSeconds},
}

func TestTheSuiteFindsEachFaultyLimiter(t *testing.T) {
	for _, f := range faulty {
		l, err := Parse(f.limit)
		require.NoError(t, err)
		var found []string
		for _, p := range suite {
			if err := p.keeps(l, f.make(l), rand.New(rand.NewPCG(5, 6))); err != nil {
				found = append(found, p.name+": "+err.Error())
			}
		}
		require.NotEmpty(t, found, f.name)
		t.Log(f.name, found[0])
	}
}

func expiryPushedOut(l Limit) subject {
	var n int
	var until time.Time
	return func(at time.Time) Reply {
		if !at.Before(until) {
			n = 0
		}
		if n >= l.N {
			return Reply{Limit: l.N, RetryAfter: until.Sub(at), Reset: until.Sub(at)}
		}
		n, until = n+1, at.Add(l.Per)
		return Reply{Allowed: true, Limit: l.N, Remaining: l.N - n, Reset: l.Per}
	}
}

func neverEnds(l Limit) subject {
	n := 0
	return func(at time.Time) Reply {
		left := at.Truncate(l.Per).Add(l.Per).Sub(at)
		if n >= l.N {
			return Reply{Limit: l.N, RetryAfter: left, Reset: left}
		}
		n++
		return Reply{Allowed: true, Limit: l.N, Remaining: l.N - n, Reset: left}
	}
}

func entriesByTime(l Limit) subject {
	entries := map[time.Time]bool{}
	return func(at time.Time) Reply {
		for e := range entries {
			if !e.After(at.Add(-l.Per)) {
				delete(entries, e)
			}
		}
		if len(entries) >= l.N {
			return Reply{Limit: l.N, RetryAfter: l.Per}
		}
		entries[at] = true
		return Reply{Allowed: true, Limit: l.N, Remaining: l.N - len(entries), Reset: l.Per}
	}
}

func refusedCounts(l Limit) subject {
	var entries []time.Time
	return func(at time.Time) Reply {
		for len(entries) > 0 && !entries[0].After(at.Add(-l.Per)) {
			entries = entries[1:]
		}
		entries = append(entries, at)
		if n := len(entries); n > l.N {
			return Reply{Limit: l.N, RetryAfter: entries[n-l.N].Add(l.Per).Sub(at), Reset: l.Per}
		}
		return Reply{Allowed: true, Limit: l.N, Remaining: l.N - len(entries), Reset: l.Per}
	}
}

// notTaken has a token put in every so often, and a taker who only counts them.
func notTaken(l Limit) subject {
	return func(time.Time) Reply { return Reply{Allowed: true, Limit: l.N, Remaining: 1} }
}

func noBottom(l Limit) subject {
	last, tokens := epoch, float64(l.N)
	return func(at time.Time) Reply {
		tokens += max(0, at.Sub(last).Seconds()) / l.Per.Seconds() * float64(l.N)
		last = at
		if tokens < 1 {
			return Reply{Limit: l.N, RetryAfter: time.Duration((1 - tokens) * float64(l.Per) / float64(l.N))}
		}
		tokens--
		return Reply{Allowed: true, Limit: l.N, Remaining: int(tokens)}
	}
}

// reserves gives each that asks the next free moment, also those it sends away.
func reserves(l Limit) subject {
	var next time.Time
	return func(at time.Time) Reply {
		wait := max(0, next.Sub(at))
		next = at.Add(wait).Add(l.Per / time.Duration(l.N))
		return Reply{Allowed: wait == 0, Limit: l.N, RetryAfter: wait, Reset: next.Sub(at)}
	}
}

func wholeSeconds(l Limit) subject {
	ask := model(l)
	return func(at time.Time) Reply { return ask(at.Truncate(time.Second)) }
}

// model is each algorithm as its definition has it, on a list of all that were
// let through, and nothing else.
func model(l Limit) subject {
	var let []time.Time
	var latest time.Time
	allowed := func(at time.Time) bool {
		n := 0
		for _, e := range let {
			switch l.Algorithm {
			case Fixed:
				if e.Truncate(l.Per).Equal(at.Truncate(l.Per)) {
					n++
				}
			case Sliding:
				if e.After(at.Add(-l.Per)) {
					n++
				}
			}
		}
		return n < l.N
	}
	if l.Algorithm == Token || l.Algorithm == Leaky {
		allowed = func(at time.Time) bool { return bucketAllows(l, let, at) }
	}
	return func(at time.Time) Reply {
		if latest.Sub(at) > l.Per {
			let = nil
		} else if at.Before(latest) {
			at = latest
		}
		if !allowed(at) {
			return Reply{Limit: l.N}
		}
		let = append(let, at)
		latest = at
		return Reply{Allowed: true, Limit: l.N}
	}
}

// bucketAllows: one more passes, if no time up to now had more than its depth
// and what has come in. It is counted in parts of a microsecond.
func bucketAllows(l Limit, let []time.Time, at time.Time) bool {
	for i, e := range let {
		more := int64(len(let)-i) + 1 - int64(l.depth())
		if more > 0 && at.Sub(e).Microseconds()*int64(l.N) < more*l.Per.Microseconds() {
			return false
		}
	}
	return true
}

// The scripts against the definitions, on random questions.
func TestEachAlgorithmDecidesAsItsDefinition(t *testing.T) {
	for _, algorithm := range algorithms {
		for _, text := range limits {
			l, err := Parse(string(algorithm) + ":" + text)
			require.NoError(t, err)
			t.Run(l.String(), func(t *testing.T) {
				t.Parallel()
				next := fresh(t)
				for seed := range uint64(5) {
					ask, want := next(l), model(l)
					for i, at := range trace(l, rand.New(rand.NewPCG(seed, 7))) {
						require.Equal(t, want(at).Allowed, ask(at).Allowed, "seed %d, question %d at %s", seed, i, at)
					}
				}
			})
		}
	}
}
