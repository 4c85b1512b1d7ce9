//go:build faults

package verify

import (
	"slices"
	"time"
)

// agenda is what happens to a world at times decided beforehand.
type agenda struct{ entries []planned }

type planned struct {
	at time.Time
	do func()
}

func (a *agenda) at(t time.Time, do func()) {
	a.entries = append(a.entries, planned{t, do})
	slices.SortStableFunc(a.entries, func(x, y planned) int { return x.at.Compare(y.at) })
}

func (a *agenda) after(d time.Duration, do func()) { a.at(time.Now().Add(d), do) }

// due does what it is time for.
func (a *agenda) due(now time.Time) {
	for len(a.entries) > 0 && !a.entries[0].at.After(now) {
		e := a.entries[0]
		a.entries = a.entries[1:]
		e.do()
	}
}

// wait is how long until the next entry; a minute at most.
func (a *agenda) wait(now time.Time) time.Duration {
	if len(a.entries) == 0 {
		return time.Minute
	}
	return min(max(a.entries[0].at.Sub(now), 0), time.Minute)
}
