//go:build faults

package point_test

import "fmt"

// lanes gives the room lanes of these weights.
func (s *stage) lanes(weights ...int) {
	s.life.Rules.Weights = weights
	s.limit(s.life.Rules.Capacity)
}

// lanesOf has members enter both of two lanes, and says from which lane the next n
// are taken, two at a time.
func (s *stage) lanesOf(n int) (order string) {
	for i := range n + 2 {
		for lane := range 2 {
			_, err := s.Enter(s, s.room, fmt.Sprintf("%d-%d", lane, i), lane)
			s.must(err)
		}
	}
	for len(order) < n {
		s.pass(s.life.Rules.Interval)
		s.take()
		for _, c := range s.held {
			order += fmt.Sprint(c.Place.Lane)
		}
		_, err := s.give(s.step)
		s.must(err)
	}
	return order
}
