package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// subject is what the suite tries: one more, at a time.
type subject func(at time.Time) Reply

// promise is one thing that a limiter must keep to. keeps gets a limiter that
// nobody has asked yet, and returns what is wrong.
type promise struct {
	name  string
	keeps func(l Limit, ask subject, rnd *rand.Rand) error
}

// epoch is a time at which a stretch of every tested length begins.
var epoch = time.UnixMicro(1_800_000_000_000_000)

// suite is what every limiter promises, whichever its algorithm.
var suite = []promise{
	{"no window has more than the algorithm promises", windowsAreKept},
	{"whoever waits as long as told is let through, and not sooner", retryAfterIsExact},
	{"the last one is told when there is another", lastIsTold},
	{"remaining is how many more would be let through", remainingIsExact},
	{"after reset it is as after a long pause", resetIsExact},
	{"what is refused costs nothing", refusalsAreFree},
	{"all of one moment are counted", oneMomentCounts},
	{"whoever asks all the time gets the whole rate", wholeRate},
	{"whoever comes evenly, at the rate, is never refused", evenPace},
	{"a clock set back locks nobody out for more than a period", clockBack},
	{"a clock that is a little behind lets nobody through twice", clockBehind},
}

// trace is a random row of questions: bursts, pauses, and the edges of windows.
func trace(l Limit, rnd *rand.Rand) []time.Time {
	at, out := epoch.Add(time.Duration(rnd.Int64N(int64(l.Per)))).Truncate(time.Microsecond), []time.Time(nil)
	for len(out) < 40*min(l.N, 5)+60 {
		switch rnd.IntN(6) {
		case 0: // all at once
			for range rnd.IntN(l.N + 3) {
				out = append(out, at)
			}
		case 1: // to the edge of a stretch, or just before
			at = at.Truncate(l.Per).Add(l.Per - time.Duration(rnd.IntN(2))*time.Microsecond)
		case 2:
			at = at.Add(time.Duration(rnd.Int64N(int64(2 * l.Per))))
		default:
			at = at.Add(time.Duration(rnd.Int64N(int64(l.Per)/int64(l.N) + 1)))
		}
		at = at.Truncate(time.Microsecond)
		out = append(out, at)
	}
	return out
}

// allowance is how many may be let through in any time of w, from its first to
// its last.
func allowance(l Limit, first, last time.Time) float64 {
	switch l.Algorithm {
	case Fixed:
		stretches := last.Truncate(l.Per).Sub(first.Truncate(l.Per))/l.Per + 1
		return float64(l.N) * float64(stretches)
	case Sliding: // the window is open at its beginning
		return float64(l.N) * float64(last.Sub(first)/l.Per+1)
	default:
		return float64(l.depth()) + float64(l.N)*float64(last.Sub(first))/float64(l.Per)
	}
}

func windowsAreKept(l Limit, ask subject, rnd *rand.Rand) error {
	var let []time.Time
	for _, at := range trace(l, rnd) {
		if ask(at).Allowed {
			let = append(let, at)
		}
	}
	for i := range let {
		for k := i; k < len(let); k++ {
			if n := k - i + 1; float64(n) > allowance(l, let[i], let[k])+1e-9 {
				return fmt.Errorf("%d were let through in %s", n, let[k].Sub(let[i]))
			}
		}
	}
	return nil
}

// exhaust asks at one moment until it is refused.
func exhaust(l Limit, ask subject, at time.Time) (Reply, error) {
	for range 2*l.N + 2 {
		r := ask(at)
		if !r.Allowed {
			return r, nil
		}
		if r.RetryAfter != 0 && r.Remaining > 0 {
			return r, fmt.Errorf("%d remain, and was told to wait %s", r.Remaining, r.RetryAfter)
		}
	}
	return Reply{}, fmt.Errorf("more than %d were let through at one moment", 2*l.N)
}

func retryAfterIsExact(l Limit, ask subject, rnd *rand.Rand) error {
	at := epoch.Add(time.Duration(rnd.Int64N(int64(l.Per)))).Truncate(time.Microsecond)
	for range 6 {
		r, err := exhaust(l, ask, at)
		if err != nil {
			return err
		}
		if r.RetryAfter <= 0 || r.Remaining != 0 {
			return fmt.Errorf("was refused with %+v", r)
		}
		early := at.Add(r.RetryAfter - time.Microsecond)
		if ask(early).Allowed {
			return fmt.Errorf("was told to wait %s, and let through before", r.RetryAfter)
		}
		at = at.Add(r.RetryAfter)
		if got := ask(at); !got.Allowed {
			return fmt.Errorf("waited %s as told, and was refused again: %+v", r.RetryAfter, got)
		}
	}
	return nil
}

func lastIsTold(l Limit, ask subject, rnd *rand.Rand) error {
	at := epoch.Add(time.Duration(rnd.Int64N(int64(l.Per)))).Truncate(time.Microsecond)
	for range 6 {
		r := ask(at)
		for i := 0; i < 20*l.N && r.Remaining > 0; i, r = i+1, ask(at) {
			at = at.Add(time.Duration(rnd.Int64N(int64(l.Per)/int64(2*l.N) + 1))).Truncate(time.Microsecond)
		}
		if !r.Allowed || r.RetryAfter <= 0 {
			return fmt.Errorf("the last one was answered %+v", r)
		}
		if ask(at.Add(r.RetryAfter - time.Microsecond)).Allowed {
			return fmt.Errorf("was told to wait %s, and let through before", r.RetryAfter)
		}
		at = at.Add(r.RetryAfter)
	}
	return nil
}

func remainingIsExact(l Limit, ask subject, rnd *rand.Rand) error {
	at := epoch
	for range 8 {
		at = at.Add(time.Duration(rnd.Int64N(int64(l.Per)))).Truncate(time.Microsecond)
		left := ask(at).Remaining
		for ; left > 0; left-- {
			if r := ask(at); !r.Allowed || r.Remaining != left-1 || r.Limit != l.N {
				return fmt.Errorf("%d should have remained, and the next was answered %+v", left, r)
			}
		}
		if ask(at).Allowed {
			return fmt.Errorf("none remained, and one more was let through")
		}
	}
	return nil
}

func resetIsExact(l Limit, ask subject, rnd *rand.Rand) error {
	at := epoch.Add(time.Duration(rnd.Int64N(int64(l.Per)))).Truncate(time.Microsecond)
	var r Reply
	for range rnd.IntN(2*l.N) + 1 {
		r = ask(at)
		at = at.Add(time.Duration(rnd.Int64N(int64(l.Per)/int64(2*l.N) + 1))).Truncate(time.Microsecond)
	}
	// The last question was asked at most that much before at.
	at = at.Add(r.Reset)
	for i := range l.depth() {
		if got := ask(at); !got.Allowed {
			return fmt.Errorf("%s after %+v only %d of %d were let through", r.Reset, r, i, l.depth())
		}
	}
	return nil
}

func refusalsAreFree(l Limit, ask subject, _ *rand.Rand) error {
	first, err := exhaust(l, ask, epoch)
	if err != nil {
		return err
	}
	for i := range 50 { // knocks all the time
		if at := time.Duration(i) * first.RetryAfter / 50; at < first.RetryAfter && ask(epoch.Add(at)).Allowed {
			return fmt.Errorf("was let through %s after it was told %s", at, first.RetryAfter)
		}
	}
	if r := ask(epoch.Add(first.RetryAfter)); !r.Allowed {
		return fmt.Errorf("knocked while waiting %s, and was refused for it: %+v", first.RetryAfter, r)
	}
	return nil
}

func oneMomentCounts(l Limit, ask subject, _ *rand.Rand) error {
	n := 0
	for range 3 * l.N {
		if ask(epoch).Allowed {
			n++
		}
	}
	if n != l.depth() {
		return fmt.Errorf("%d were let through at one moment, not %d", n, l.depth())
	}
	return nil
}

func wholeRate(l Limit, ask subject, _ *rand.Rand) error {
	n, periods := 0, 8
	for at, end := epoch, epoch.Add(time.Duration(periods)*l.Per); at.Before(end); {
		r := ask(at)
		if r.Allowed {
			if n++; n > 2*periods*l.N+l.N {
				return fmt.Errorf("more than %d were let through in %d periods", n, periods)
			}
			continue
		}
		if r.RetryAfter <= 0 {
			return fmt.Errorf("was refused, and told to come back at once: %+v", r)
		}
		at = at.Add(r.RetryAfter)
	}
	if n < periods*l.N {
		return fmt.Errorf("%d were let through in %d periods, not %d", n, periods, periods*l.N)
	}
	return nil
}

func evenPace(l Limit, ask subject, _ *rand.Rand) error {
	step := (l.Per/time.Duration(l.N) + time.Microsecond - 1).Truncate(time.Microsecond)
	for i := range 5 * l.N {
		if r := ask(epoch.Add(time.Duration(i) * step)); !r.Allowed {
			return fmt.Errorf("number %d, one each %s, was refused: %+v", i+1, step, r)
		}
	}
	return nil
}

func clockBack(l Limit, ask subject, _ *rand.Rand) error {
	for range 2 * l.N {
		ask(epoch.Add(time.Hour))
	}
	if r := ask(epoch); !r.Allowed && r.RetryAfter > l.Per {
		return fmt.Errorf("was told to wait %s", r.RetryAfter)
	}
	if r := ask(epoch.Add(2 * l.Per)); !r.Allowed {
		return fmt.Errorf("two periods after the step: %+v", r)
	}
	return nil
}

func clockBehind(l Limit, ask subject, _ *rand.Rand) error {
	at := epoch.Add(l.Per / 2)
	if _, err := exhaust(l, ask, at); err != nil {
		return err
	}
	if r := ask(at.Add(-l.Per / 4)); r.Allowed {
		return fmt.Errorf("was let through again by a clock that is a quarter of a period behind")
	}
	if l.Algorithm == Fixed { // a stretch that has begun goes on
		at = epoch.Add(l.Per)
		if _, err := exhaust(l, ask, at); err != nil {
			return err
		}
		if r := ask(epoch.Add(l.Per - time.Microsecond)); r.Allowed {
			return fmt.Errorf("was let through in the last stretch after this one has begun")
		}
	}
	return nil
}
