//go:build faults

package verify

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/linekeeper/linekeeper/room"
)

// drawLanes gives some rooms two or three lanes: mostly by weight, some as one
// line with boosts, some with a longest wait that people do wait for. It draws
// from a seed of its own, so that the rest of a plan is as it would be without.
func (p *plan) drawLanes(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0x1a4e))
	if rnd.IntN(3) > 0 {
		return
	}
	p.manyLanes(rnd)
}

func (p *plan) manyLanes(rnd *rand.Rand) {
	s := &p.settings
	s.Lanes = nil
	for i := range 2 + rnd.IntN(2) {
		s.Lanes = append(s.Lanes, room.Lane{Name: fmt.Sprint("lane", i), Weight: draw(rnd, 1, 2, 3, 7, 10)})
	}
	if rnd.IntN(3) == 0 {
		s.Priority = "boost"
		for i := range s.Lanes[1:] {
			s.Lanes[i+1].BoostSeconds = draw(rnd, 0, 2, 10, 60)
		}
	}
	s.MaxWaitSeconds = draw(rnd, 0, 0, 3, 15)
	s.TimeZone = draw(rnd, "UTC", "Asia/Kolkata", "America/Los_Angeles")
}

// crowdedLanes has many come to lanes at once that move slowly, so that each has
// somebody waiting for long, and weights change meanwhile. In half of the rooms one
// lane has nobody for the first seconds, while the others are served.
func crowdedLanes(p *plan) {
	rnd := rand.New(rand.NewPCG(uint64(p.members), uint64(p.settings.BatchSize)))
	p.manyLanes(rnd)
	p.settings.BatchSize, p.settings.IntervalMs, p.settings.MaxWaiting = draw(rnd, 2, 5), 2000, 100_000
	p.members = 30
	if rnd.IntN(2) == 0 {
		p.late, p.spread, p.schedule = 6*time.Second, time.Second, schedule{}
		p.settings.BatchSize, p.settings.Capacity, p.settings.Priority, p.settings.MaxWaitSeconds = 2, 0, "ratio", 0
	}
}

// lane is where a person belongs.
func (p *plan) lane(number int) int { return number % len(p.settings.Lanes) }

// arrival is how long after the beginning a person comes, of the first lane later
// than others where that is planned.
func (p *plan) arrival(number int, rnd *rand.Rand) time.Duration {
	at := time.Duration(rnd.Int64N(int64(p.spread)))
	if p.lane(number) == 0 {
		at += p.late
	}
	return at
}

// laneFor is what a proxy says of a person: their own lane, but for a few times
// another, which the place that they have outweighs.
func (p *person) laneFor() string {
	lanes := p.w.plan.settings.Lanes
	if len(lanes) == 1 {
		return ""
	}
	if p.chance(5) {
		return lanes[p.rnd.IntN(len(lanes))].Name
	}
	return lanes[p.w.plan.lane(p.number)].Name
}

// changeWeights has the lanes of a room share in another way from now on.
func (w *world) changeWeights() {
	if len(w.plan.settings.Lanes) == 1 || w.plan.settings.ByLot() {
		return // the weights of a draw and of a lottery are fixed
	}
	w.set(func(s *room.Settings) {
		s.Lanes = append([]room.Lane(nil), s.Lanes...)
		for i := range s.Lanes {
			s.Lanes[i].Weight = draw(w.rnd, 1, 2, 5, 9)
		}
	})
}
