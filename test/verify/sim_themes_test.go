//go:build faults

package verify

import (
	"strings"
	"time"
)

// theme is what goes wrong in a history above all. Faults that are spread
// evenly seldom meet where it hurts: a theme brings many of one kind together.
type theme struct {
	name   string
	hot    []string // beginnings of what most of its faults happen to
	heat   float64  // share of these stops that go wrong
	slow   bool     // its delays are long ones
	redis  []fate   // of what is said to Redis, where not just any will do
	blows  []string // of the table blows, beside those drawn from all
	people func(p *plan)
	// stocked rooms are bound by a small stock, as some are under other themes.
	stocked bool

	scheduled bool // the room opens, admits and closes at times of its own
}

// themes follow each other from seed to seed, so that each gets its share.
var themes = []theme{
	{name: "anything"},
	{name: "commits", heat: 0.25, slow: true, blows: []string{"relays asleep"},
		hot: []string{"commit", "O7", "claim", "release"}},
	{name: "ticks", heat: 0.08, hot: []string{"reserve", "issue", "reap", "T", "L", "INSERT INTO room_progress"},
		blows: []string{"lock lost", "term rolled back"}},
	{name: "members", heat: 0.1, hot: []string{"enter", "standing", "pickup", "leave", "heard", "pipeline", "hget", "E", "P"},
		blows: []string{"redis away"}},
	{name: "events", heat: 0.2, slow: true, hot: []string{"X", "consume", "UPDATE outbox", "WITH due"},
		blows: []string{"relays asleep", "postgres away", "node killed"}},
	{name: "losses", heat: 0.45, slow: true, redis: []fate{echoed, echoed, late, replyLost}, hot: []string{"restore", "R1", "E7-before-restore"},
		blows: []string{"total loss", "partial loss", "total loss"}, people: restless},
	{name: "clocks", heat: 0.05, hot: []string{"pickup", "claim", "issue"}, blows: []string{"clock back", "clock forward", "clock a little back"}},
	{name: "comings and goings", heat: 0.4, slow: true, redis: []fate{echoed, echoed, echoed, late}, hot: []string{"leave", "enter"}, people: restless},
	{name: "sold out", heat: 0.3, slow: true, hot: []string{"release", "order batch", "O13"},
		people: func(p *plan) {
			p.stocked, p.stock, p.stubborn, p.settings.EntryTokenTTLSeconds = false, 3, true, 120 // more are let in than find a piece
		}},
	{name: "little room", heat: 0.05, hot: []string{"claim", "consume", "release", "O"}, blows: []string{"relays asleep", "settings changed"},
		people: func(p *plan) { p.stocked, p.stock, p.settings.Capacity, p.settings.BatchSize = false, 1000, 3, 20 }},
	{name: "lanes", heat: 0.05, hot: []string{"reserve", "issue", "enter"}, blows: []string{"weights changed", "lock lost"}, people: crowdedLanes},
	{name: "stock", heat: 0.1, hot: []string{"reserve", "SELECT r.name", "consume", "commit", "X"}, stocked: true,
		blows: []string{"stock put in", "stock put in"}, people: func(p *plan) { p.settings.BatchSize, p.settings.Capacity = 20, 0 }},
	{name: "schedules", heat: 0.08, scheduled: true, hot: []string{"reserve", "configure", "issue", "tune"},
		blows: []string{"paused", "closing moved", "settings changed", "clock a little back"}},
	{name: "straight in", heat: 0.1, redis: []fate{echoed, replyLost, twice, late}, hot: []string{"enter", "pickup", "issue", "reserve"},
		blows: []string{"switched off", "released by hand", "total loss", "paused"}, people: trickling},
	{name: "draws", heat: 0.15, hot: []string{"listed", "entrants", "INSERT INTO draw_pieces", "UPDATE draws", "SELECT listed_at", "SELECT seed", "reserve"},
		blows: []string{"node killed", "draw moved"}},
	{name: "groups", heat: 0.08, slow: true, hot: []string{"commit", "order batch", "O9", "O7"}, blows: []string{"postgres away"},
		people: func(p *plan) { // many order at once, and some find nothing left
			p.stocked, p.stock, p.stubborn, p.members, p.spread = false, 12, true, 40, time.Second
			p.settings.BatchSize, p.settings.Capacity, p.settings.MaxInFlightOrders, p.settings.EntryTokenTTLSeconds = 20, 0, 0, 120
		}},
}

func themeOf(seed uint64) theme { return themes[seed%uint64(len(themes))] }

// restless has people leave and come back, in a line that moves slowly.
func restless(p *plan) {
	p.restless, p.tickets, p.settings.BatchSize, p.settings.IntervalMs = true, true, 1, 2000
}

// trickling has people come one by one to a room that lets them straight in while
// nobody waits, now and then faster than its rate.
func trickling(p *plan) {
	p.restless, p.tickets, p.spread, p.length = true, true, 60*time.Second, 90*time.Second
	p.settings.DirectAdmission, p.settings.OneOrderPerMember, p.settings.SettleSeconds = true, false, 0
	p.settings.BatchSize, p.settings.IntervalMs = 2, 2000
}

// odds is the share of stops like s that go wrong.
func (p *plan) odds(s *stop) float64 {
	for _, h := range p.theme.hot {
		if strings.HasPrefix(s.what, h) {
			return p.theme.heat
		}
	}
	return p.trouble
}

// delay draws how long something is late, within the plan's longest.
func (w *world) delay() time.Duration {
	if w.plan.theme.slow && w.rnd.IntN(2) == 0 {
		return w.plan.longest/2 + time.Duration(w.rnd.Int64N(int64(w.plan.longest/2)))
	}
	return w.upTo(w.plan.longest)
}
