//go:build faults

package verify

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/linekeeper/linekeeper/room"
)

// plan is what a seed decides about a world before it begins.
type plan struct {
	theme    theme
	settings room.Settings
	stock    int64
	members  int
	spread   time.Duration // over which people arrive
	late     time.Duration // those of one lane come later by this
	length   time.Duration // of the troubled part
	locked   bool          // the schedulers use a lock
	trouble  float64       // share of the stops at the gate that go wrong, where the theme does not say
	longest  time.Duration // delay of one
	crashes  int           // nodes that may die, at most
	blows    int           // faults of servers, clocks and operators, beside the theme's
	restless bool          // people leave and come back, in several tabs
	stubborn bool          // people go on ordering what is sold out
	tickets  bool          // people show their tickets, so lost places come back
	stocked  bool          // the room is bound by the stock of its product
	singles  bool          // people order one piece at a time
	group    int           // orders in a transaction, at most
	schedule schedule
}

// schedule is when a room opens, admits and closes, after the beginning; 0: it
// does so always, or never.
type schedule struct{ opens, admits, closes time.Duration }

func newPlan(seed uint64, rnd *rand.Rand) plan {
	s := room.Defaults()
	s.BatchSize = draw(rnd, 1, 2, 5, 20)
	s.IntervalMs = draw(rnd, 200, 1000, 2000)
	s.Capacity = draw(rnd, 0, 0, 3, 8)
	s.MaxInFlightOrders = draw(rnd, 0, 0, 2)
	s.EntryTokenTTLSeconds = draw(rnd, 15, 30, 120)
	s.PickupTTLSeconds = draw(rnd, 10, 30)
	s.AwayAfterSeconds, s.ForgetAfterSeconds, s.DoneTTLSeconds = 90, draw(rnd, 60, 600), draw(rnd, 60, 600)
	s.SettleSeconds = draw(rnd, 0, 10)
	s.ProcessingTimeoutSeconds = draw(rnd, 1, 5)
	s.OneOrderPerMember = rnd.IntN(3) == 0
	s.MaxWaiting = draw(rnd, 100_000, 100_000, 15)
	p := plan{
		theme: themeOf(seed), settings: s, stock: int64(draw(rnd, 1000, 1000, 5)), members: 8 + rnd.IntN(25),
		spread: draw(rnd, time.Second, 10*time.Second), length: draw(rnd, 20*time.Second, 60*time.Second, 120*time.Second),
		locked: rnd.IntN(2) == 0, trouble: draw(rnd, 0, 0.01, 0.03), longest: draw(rnd, time.Second, 10*time.Second, 25*time.Second),
		crashes: rnd.IntN(4), blows: rnd.IntN(4), tickets: rnd.IntN(4) > 0,
	}
	p.drawLanes(seed)
	if p.stocked = p.theme.stocked || rnd.IntN(5) == 0; p.stocked {
		p.stock, p.singles = int64(draw(rnd, 3, 6, 12)), rnd.IntN(3) > 0
	}
	p.settings.Adaptive = rnd.IntN(3) == 0
	if rnd.IntN(6) == 0 || p.theme.scheduled {
		p.schedule.opens, p.schedule.admits = draw(rnd, 0, 3*time.Second), draw(rnd, 5*time.Second, 15*time.Second)
		if after := draw(rnd, 0, 10*time.Second, 40*time.Second); after > 0 {
			p.schedule.closes = p.schedule.admits + after
		}
	}
	switch rnd.IntN(12) {
	case 0:
		p.draws(rnd)
	case 1:
		p.settings.Priority = "lottery"
	}
	if p.theme.name == "draws" {
		p.draws(rnd)
	}
	if p.theme.slow {
		p.longest, p.length = 25*time.Second, 90*time.Second
	}
	p.settings.DirectAdmission, p.settings.Eager = rnd.IntN(3) == 0, rnd.IntN(3) == 0
	if p.theme.people != nil {
		p.theme.people(&p)
	}
	p.reconcile()
	if p.stocked {
		p.settings.Overbook = draw(rnd, 1, 1, 1, 1.5)
	}
	p.group = draw(rnd, 1, 2, 64)
	if p.theme.name == "groups" {
		p.group = draw(rnd, 2, 64)
	}
	return p
}

// reconcile takes back what rooms refuse beside each other.
func (p *plan) reconcile() {
	s := &p.settings
	s.DirectAdmission = s.DirectAdmission && !s.OneOrderPerMember && !s.Draw
	if s.Draw {
		p.schedule = schedule{}
		if s.Priority == "boost" {
			s.Priority = "ratio"
		}
	}
	if s.ByLot() {
		s.MaxWaitSeconds = 0
	}
	if s.Priority != "boost" {
		for i := range s.Lanes {
			s.Lanes[i].BoostSeconds = 0
		}
	}
}

// draws makes the room one that draws, while some still come and some are late.
func (p *plan) draws(rnd *rand.Rand) {
	at := time.Now().Add(draw(rnd, 2*time.Second, 5*time.Second, 15*time.Second))
	p.settings.Draw, p.settings.AdmitsAt, p.settings.Priority = true, &at, draw(rnd, "ratio", "lottery")
}

func TestEveryPlanIsOfARoomThatCanBe(t *testing.T) {
	for seed := range uint64(3000) {
		p := newPlan(seed, rand.New(rand.NewPCG(seed, 0x11e5)))
		p.schedule.at(&p.settings, time.Now())
		if sku := "demo"; p.stocked {
			p.settings.Stock = &sku
		}
		if err := p.settings.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
