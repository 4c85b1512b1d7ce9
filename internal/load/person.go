package load

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// act is what a person does next.
type act int

const (
	enter      act = iota
	enterAgain     // the page is loaded again
	poll           // asks where they stand
	order          // presses the button
	orderTwin      // the second press, at the same moment
	orderAgain     // the same order, once one knows that it was placed
	leave          // gives the place up
	sneak          // tries to order without a grant
	tidyUp         // leaves at the end of the run, for the sake of the room
	lastOfActs     // not one
)

// fate is what becomes of a person unless the server decides otherwise.
type fate int

const (
	shopper  fate = iota
	idler         // is let through, and never orders
	vanisher      // stops asking
	leaver        // gives the place up
	intruder      // tries to order without a grant
)

// Where people are. Those that end a person's way come last.
type place int

const (
	coming     place = iota // not entered yet
	waiting                 // in line
	holding                 // with an entry token
	Ordered                 // has an order
	Left                    // gave the place up
	Vanished                // stopped asking
	Unused                  // let the token lapse
	SoldOut                 // found nothing left
	TurnedAway              // did not get in
	Lost                    // had a place or token, and has it no more
	Undecided               // never heard what became of the order
	Intruded                // an intruder, done
	InLine                  // still waiting at the end of the run
	WithToken               // still holding a token at the end of the run
	NeverCame               // had not entered when the run ended
	numPlaces
)

func (p place) over() bool { return p >= Ordered }

// person is one of the crowd. Only the worker that does something for them, and
// who counts at the end, touch them; two may when the button is pressed twice.
type person struct {
	mu      sync.Mutex
	n       int // address and order of coming
	fate    fate
	twice   bool
	think   time.Duration
	polls   int // until a vanisher or leaver does so
	rng     *rand.Rand
	place   place
	tries   [lastOfActs]int
	pending int // presses of the button not decided yet

	came    time.Duration // when they were due to enter
	leaving bool          // at the end of the run, for the sake of the room

	ticket string
	token  string
	seen   seen // what the server has said, to hold later answers against
	orders bought
	told   told
}

// told is the wait that a person was told first, and what came of it.
type told struct {
	at          time.Duration // 0: none was told yet
	wait        time.Duration
	least, most time.Duration
}

// longestPatience is after how many polls those who vanish or leave have done so.
const longestPatience = 10

// newPerson makes person n: the same one for the same seed.
func newPerson(p Plan, n int) *person {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(n)))
	who := &person{n: n, rng: rng, seen: seen{rank: -1}}
	who.twice = rng.Float64() < p.People.Twice
	who.think = p.People.Think.draw(rng)
	who.polls = rng.IntN(longestPatience)
	switch at := rng.Float64(); {
	case at < p.People.Vanish:
		who.fate = vanisher
	case at < p.People.Vanish+p.People.Leave:
		who.fate = leaver
	case rng.Float64() >= p.People.Order:
		who.fate = idler
	}
	return who
}

// newIntruder makes intruder n of their own numbers, behind those of the people.
func newIntruder(p Plan, n int) *person {
	return &person{
		n: p.Arrivals.People + n, fate: intruder, polls: n % len(sneaks), seen: seen{rank: -1},
		rng: rand.New(rand.NewPCG(p.Seed, uint64(p.Arrivals.People+n))),
	}
}

// Address is that of person n: one of the network that is set aside for
// benchmarks (RFC 2544). Who limits by address sees a crowd and not one client.
func Address(n int) string {
	return fmt.Sprintf("198.%d.%d.%d", 18+n>>16&1, n>>8&255, n&255)
}

// sneaks are the ways to try to pass the line.
var sneaks = []string{"no token", "an invented token", "a queue ticket"}

// inventedToken says in its header that it needs no signature.
const inventedToken = "eyJhbGciOiJub25lIn0.eyJqdGkiOiIxIn0."

// call is what an act asks of the server.
func (w *person) call(t target, a act, forwarded bool) call {
	c := call{kind: kindOf[a], method: "POST", path: t.room + "/entries", header: "X-Queue-Ticket", value: w.ticket}
	switch a {
	case poll:
		c.method, c.path = "GET", c.path+"/me"
	case leave, tidyUp:
		c.method, c.path = "DELETE", c.path+"/me"
	case order, orderTwin, orderAgain, sneak:
		c.path, c.header, c.value, c.body = t.prefix+"/v1/orders", "X-Entry-Token", w.token, t.order
	}
	if a == sneak && w.fate == intruder {
		c.value = []string{"", inventedToken, w.ticket}[w.polls]
	}
	if c.value == "" {
		c.header = ""
	}
	if forwarded {
		c.address = Address(w.n)
	}
	return c
}

// sneaking is what the person tries to order with.
func (w *person) sneaking() string {
	if w.fate == intruder {
		return sneaks[w.polls]
	}
	return "a token that was given back"
}

// kept is a credential as it may be sent in a header; what could not be is none.
func kept(s *string) string {
	if s == nil || strings.ContainsFunc(*s, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	return *s
}
