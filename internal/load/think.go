package load

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"
)

// Think is how long people take to think: always the same time, evenly between
// two, or exponentially around a mean.
type Think struct {
	Least, Most time.Duration // equal: always this
	Mean        time.Duration // above 0: exponential, and the others count for nothing
}

// longestThink is by how many times the mean an exponential time is cut: nobody
// takes a minute for what takes others two seconds, and one in 20,000 would.
const longestThink = 10

// draw is the time of one person.
func (t Think) draw(r *rand.Rand) time.Duration {
	if t.Mean > 0 {
		return time.Duration(min(r.ExpFloat64(), longestThink) * float64(t.Mean))
	}
	return t.Least + time.Duration(r.Float64()*float64(t.Most-t.Least))
}

// String is the time as UnmarshalText reads it.
func (t Think) String() string {
	switch {
	case t.Mean > 0:
		return "exp:" + t.Mean.String()
	case t.Least == t.Most:
		return t.Least.String()
	default:
		return t.Least.String() + "-" + t.Most.String()
	}
}

// MarshalText is String.
func (t Think) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

var errThink = errors.New("must be like 2s (always), 1s-5s (evenly between) or exp:2s (exponential, 2s on average)")

// UnmarshalText reads 2s, 1s-5s or exp:2s.
func (t *Think) UnmarshalText(text []byte) error {
	if mean, ok := strings.CutPrefix(string(text), "exp:"); ok {
		d, err := time.ParseDuration(mean)
		if err != nil || d <= 0 || d > time.Hour {
			return errThink
		}
		*t = Think{Mean: d}
		return nil
	}
	least, most, ok := strings.Cut(string(text), "-")
	if !ok {
		most = least
	}
	a, err := time.ParseDuration(least)
	b, err2 := time.ParseDuration(most)
	if err != nil || err2 != nil || a < 0 || b < a || b > time.Hour {
		return errThink
	}
	*t = Think{Least: a, Most: b}
	return nil
}
