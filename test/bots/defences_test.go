package bots

import (
	"time"

	"github.com/linekeeper/linekeeper/room"
)

// lobby is how long people line up before a draw.
const lobby = 5 * time.Minute

// defence is a row of the table: what is switched on.
type defence struct {
	name     string
	settings func(*room.Settings)
	limits   bool // those that are on by default
	lobby    bool // people come over the time of the lobby
}

// works asks for so many bits, as actors are charged for them.
func works(bits, most int) func(*room.Settings) {
	return func(s *room.Settings) {
		s.ProofOfWorkBits = bits - scaled
		if most > 0 {
			s.ProofOfWorkMaxBits = most - scaled
		}
	}
}

func draws(s *room.Settings) {
	at := start.Add(lobby)
	s.Draw, s.AdmitsAt = true, &at
}

func challenges(s *room.Settings) { s.OutsideChallenge = true }

func both(first, second func(*room.Settings)) func(*room.Settings) {
	return func(s *room.Settings) {
		first(s)
		second(s)
	}
}

// defences are those of the table, in its order.
var defences = []defence{
	{name: "none"},
	{name: "`enterNeedsTicket`", settings: func(s *room.Settings) { s.EnterNeedsTicket = true }},
	{name: "the limits that are on by default", limits: true},
	{name: "the limits and `enterNeedsTicket`", limits: true, settings: func(s *room.Settings) { s.EnterNeedsTicket = true }},
	{name: "proof of work, 18 bits", settings: works(18, 0)},
	{name: "proof of work, 20 bits", settings: works(20, 0)},
	{name: "proof of work, 22 bits", settings: works(22, 0)},
	{name: "proof of work, 18 to 24 bits", settings: works(18, 24)},
	{name: "outside challenge", settings: challenges},
	{name: "outside challenge and 20 bits", settings: both(challenges, works(20, 0))},
	{name: "lobby of 5 minutes and a draw", settings: draws, lobby: true},
	{name: "the same and an outside challenge", settings: both(draws, challenges), lobby: true},
}

func named(name string) defence {
	for _, d := range defences {
		if d.name == name {
			return d
		}
	}
	panic("there is no defence " + name)
}
