package sim

import (
	"math"
	"time"
)

// doing is where a person inside is.
type doing uint8

const (
	thinking doing = iota
	queued         // an order waits for a connection
	inService
	gone // ordered, or the grant has ended
)

// person is somebody who was let through.
type person struct {
	granted time.Duration
	sent    time.Duration // the order on its way
	tries   int
	doing   doing
}

const (
	// spread is the sigma of think times, which are log-normal: half of all people
	// take between two thirds and one and a half of the median.
	spread = 0.6
	// pollEvery is how often those at the front ask whether they are let through.
	pollEvery = time.Second
	// retryAfter is when somebody whose order failed sends it again.
	retryAfter = 5 * time.Second
)

// admit lets somebody through.
func (s *run) admit(waited time.Duration, lane int) {
	who := len(s.people)
	s.people = append(s.people, person{granted: s.now})
	s.inside++
	s.round.Granted++
	s.result.Lanes[lane].waited(waited)
	s.after(s.plan.Room.GrantTTL, expire, who)
	if s.rand.Float64() < s.plan.People.NoShows {
		return
	}
	s.after(seconds(s.rand.Float64()*pollEvery.Seconds())+s.think(), order, who)
}

func (s *run) think() time.Duration {
	median := s.plan.People.Think.Seconds() / math.Exp(spread*spread/2)
	return seconds(median * math.Exp(spread*s.rand.NormFloat64()))
}

// order sends somebody's order.
func (s *run) order(who int) {
	p := &s.people[who]
	if p.doing != thinking {
		return
	}
	p.doing, p.sent = queued, s.now
	if p.tries++; p.tries == 1 {
		s.round.First++
	} else {
		s.round.Again++
	}
	s.db.submit(who)
}

// answered is how an order ended. Who failed tries again while the token lives.
func (s *run) answered(who int, placed bool) {
	p := &s.people[who]
	took, delay := s.now-p.sent, p.sent-p.granted
	if placed {
		s.round.Orders.Placed(took, delay)
		s.round.Took += took
		p.doing = gone
		s.inside--
		return
	}
	s.round.Orders.Fail(delay)
	p.doing = thinking
	if s.now >= p.granted+s.plan.Room.GrantTTL {
		p.doing = gone
		s.inside--
		return
	}
	s.after(seconds(retryAfter.Seconds()*(0.8+0.4*s.rand.Float64())), order, who)
}

// expire ends a grant. An order on its way is left to its end, as a claim is.
func (s *run) expire(who int) {
	p := &s.people[who]
	if p.doing != thinking {
		return
	}
	p.doing = gone
	s.inside--
	s.round.Unused++
}
