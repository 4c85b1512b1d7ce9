package ratelimit

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Algorithm is how a limit counts. The package comment says what each promises.
type Algorithm string

// The algorithms.
const (
	Fixed   Algorithm = "fixed"
	Sliding Algorithm = "sliding"
	Token   Algorithm = "token"
	Leaky   Algorithm = "leaky"
)

// Limit is how often something may be done.
type Limit struct {
	Algorithm Algorithm
	N         int           // 1 to MaxN
	Per       time.Duration // MinPer to MaxPer
}

// The bounds of a Limit. Below these the counts of the scripts are whole
// numbers that a double holds exactly.
const (
	MaxN   = 10_000
	MinPer = 10 * time.Millisecond
	MaxPer = 24 * time.Hour
)

// shape is how a limit is written: "sliding:60/1m".
var shape = regexp.MustCompile(`^(fixed|sliding|token|leaky):([0-9]{1,5})/(.+)$`)

// Parse reads a limit as it is written in settings: algorithm:N/duration, such
// as "sliding:60/1m" or "token:3/1s".
func Parse(text string) (Limit, error) {
	m := shape.FindStringSubmatch(text)
	if m == nil {
		return Limit{}, fmt.Errorf("must be fixed, sliding, token or leaky with a number and a duration, as sliding:60/1m, got %q", text)
	}
	l := Limit{Algorithm: Algorithm(m[1])}
	l.N, _ = strconv.Atoi(m[2])
	if l.N < 1 || l.N > MaxN {
		return Limit{}, fmt.Errorf("must allow 1 to %d, got %s in %q", MaxN, m[2], text)
	}
	var err error
	if l.Per, err = time.ParseDuration(m[3]); err != nil || l.Per < MinPer || l.Per > MaxPer {
		return Limit{}, fmt.Errorf("must have a duration from %s to %s, as 10s or 1m, got %q in %q", MinPer, MaxPer, m[3], text)
	}
	return l, nil
}

// none is how no limit at all is written.
const none = "off"

// Off tells whether l is the zero value, which limits nothing.
func (l Limit) Off() bool { return l == Limit{} }

// UnmarshalText reads a setting: what Parse reads, or "off".
func (l *Limit) UnmarshalText(text []byte) error {
	if string(text) == none {
		*l = Limit{}
		return nil
	}
	read, err := Parse(string(text))
	if err == nil {
		*l = read
	}
	return err
}

// MarshalText is String.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// String writes a limit as UnmarshalText reads it.
func (l Limit) String() string {
	if l.Off() {
		return none
	}
	return fmt.Sprintf("%s:%d/%s", l.Algorithm, l.N, short(l.Per))
}

// short is a duration without the zeros at its end: 1m, not 1m0s.
func short(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d >= u.unit && d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return d.String()
}

// depth is how many can be let through at once.
func (l Limit) depth() int {
	if l.Algorithm == Leaky {
		return 1
	}
	return l.N
}

// Reply is the answer to one question, whichever the algorithm.
type Reply struct {
	Allowed    bool
	Limit      int           // N
	Remaining  int           // how many more would be allowed at this moment
	RetryAfter time.Duration // until one more is allowed; 0 while some remain
	Reset      time.Duration // until as many are allowed as after a long pause
}
