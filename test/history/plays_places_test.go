package history

import (
	"strconv"
	"time"
)

const theMinute = time.Minute

var placePlays = []play{
	{
		check: "I6 a place keeps its score",
		bad: func(s *stage) {
			s.enter("ann")
			step := s.members["ann"]
			step.Score++
			s.members["ann"] = step // reserve takes her from a place that is not hers
			s.reserve("ann")
		},
		good: func(s *stage) {
			s.enter("ann")
			s.reserve("ann")
		},
	},
	{
		check: "I6 the score told is the place's",
		bad: func(s *stage) {
			s.enters("ann")
			s.told("ann", Event{Status: "WAITING", Score: s.members["ann"].Score + 1, Rank: 0, Total: 1})
		},
		good: func(s *stage) {
			s.enters("ann")
			s.told("ann", Event{Status: "WAITING", Score: s.members["ann"].Score, Rank: 0, Total: 1})
		},
	},
	{
		check: "I6 a lost place comes back as its ticket says",
		bad:   func(s *stage) { restore(s, 1_764_499_999_500_000, false) },
		good:  func(s *stage) { restore(s, 1_764_499_999_500_000, true) },
	},
	{
		check: "I6 a lost place comes back as its ticket says", name: "and no other does",
		bad:  func(s *stage) { restore(s, 1_764_499_998_000_000, true) },
		good: func(s *stage) { restore(s, 1_764_499_998_000_000, false) },
	},
	{
		check: "I7 who enters later stands behind",
		bad: func(s *stage) {
			s.enters("ann")
			s.pass(time.Second)
			s.now -= 2 * second // a process that is behind counts the places
			at := s.state.Last - 5
			s.call(Event{F: Enter, Member: "bob"}, Event{Type: OK, Code: "201", Status: "WAITING", Score: at, Rank: 0, Total: 2}, func() {
				s.now += 2 * second
				s.step("enter", []string{"bob", "0"}, s.ok(), map[string]Member{"bob": inLane(at)})
			})
		},
		good: func(s *stage) {
			s.enters("ann")
			s.enters("bob")
		},
		also: []string{"I7 a new place is behind all others"},
	},
	{
		check: "I7 a new place is behind all others",
		bad: func(s *stage) {
			s.enter("ann")
			s.state.Last += 600 * second // the clock of a process as score
			s.enter("bob")
		},
		good: func(s *stage) { s.enter("ann", "bob") },
	},
	{
		check: "I7 the first in line is taken first",
		bad: func(s *stage) {
			s.enter("ann", "bob")
			s.reserve("bob")
		},
		good: func(s *stage) {
			s.enter("ann", "bob")
			s.reserve("ann")
		},
	},
	{
		check: "I7 the first in line is taken first", name: "who is not silent",
		bad:  func(s *stage) { passOver(s, 80*time.Second) },
		good: func(s *stage) { passOver(s, 90*time.Second) },
	},
	{
		check: "I7 nobody goes AWAY who was not silent",
		bad:   func(s *stage) { vanish(s, 80*time.Second) },
		good:  func(s *stage) { vanish(s, 90*time.Second) },
	},
	{
		check: "I7 nobody goes AWAY who was not silent", name: "nor was never listened for",
		bad: func(s *stage) {
			s.enter("ann")
			s.listening(2 * theMinute)
			s.goAway("ann")
		},
		good: func(s *stage) {
			s.enter("ann")
			s.listening(2 * theMinute)
			s.listen("ann")
			s.listening(2 * theMinute)
			s.goAway("ann")
		},
	},
}

func restore(s *stage, score int64, back bool) {
	args := []string{"7", "ann", "6", "0", strconv.FormatInt(score, 10), "0", "0"}
	if !back {
		s.step("restore", args, []any{"GONE", "generation", "7"}, nil)
		return
	}
	s.step("restore", args, s.ok(), map[string]Member{"ann": inLane(score)})
}

// listening passes time in which the room can hear, and hears nobody.
func (s *stage) listening(d time.Duration) {
	for ; d > 0; d -= 5 * time.Second {
		s.pass(min(d, 5*time.Second))
		if s.now-s.state.HeardAt > 10*second {
			s.state.ListenSince = s.now
		}
		s.hear()
	}
}

func (s *stage) goAway(name string) {
	m := s.members[name]
	s.reap(map[string]Member{name: {Away: s.now, AwayPlace: &Place{0, m.Score}}})
}

// vanish is a member who is not heard of for some time.
func vanish(s *stage, d time.Duration) {
	s.enter("ann")
	s.listening(20 * time.Second)
	s.listen("ann")
	s.listening(d)
	s.goAway("ann")
}

// passOver is a member who is not heard of, and stays where others are taken.
func passOver(s *stage, d time.Duration) {
	s.enter("ann", "bob")
	s.listening(20 * time.Second)
	s.listen("ann")
	s.listening(d)
	s.reserve("bob")
}
