// Package load is a crowd that one lets loose on a room, to see how it fares and
// whether it keeps its promises meanwhile.
//
// It promises that people come when the plan says, however slow the answers are
// (an open model: who waits for an answer holds up nobody else); that each is
// heard from when the server has told them to ask again; that a latency is
// measured from the moment at which a call was due, so that a server that stalls
// can't hide it by being asked less; and that whatever is reported as a broken
// promise was seen in answers of the server.
//
//	Plan --> agenda: what is due when --> a worker for each connection --> the server
//	           ^                               |  answer
//	           +--- what the person does next -+--> tally (latencies), judge (promises)
//	operators' API --> watch: settings and snapshots of the room --> judge
//
// It changes nothing of the room's settings and knows none of its insides: it is
// told by the public API and, where somebody gives it a token, the operators'. It
// solves no proof of work, shows no user tokens and no access codes.
package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"
)

// Plan is what is to be done to which room.
type Plan struct {
	URL         string // of the public API, without a slash at the end
	Room, SKU   string
	Arrivals    Arrivals
	People      People
	Tail        time.Duration // how long to go on after the last has come, at most
	Connections int           // at once, at most
	Forwarded   bool          // each person shows an address of their own in X-Forwarded-For
	Tidy        bool          // who still has a place at the end leaves
	Seed        uint64        // the same seed makes the same people
	Operator    Operator      // nil: what only operators can see is not judged
}

// Operator shows what operators see, as JSON of the operators' API.
type Operator interface {
	// Snapshot is the room at one moment.
	Snapshot(ctx context.Context, room string) ([]byte, error)
	// Settings is the room with its settings and their version.
	Settings(ctx context.Context, room string) ([]byte, error)
}

// People is how they behave: shares of all, from 0 to 1, and how long they think.
type People struct {
	Order  float64 // of those with an entry token, order
	Twice  float64 // load the page again, and press the button twice
	Vanish float64 // stop asking, in line
	Leave  float64 // give their place up, in line or with the token
	Think  Think   // from the token to the order
	// Intruders come on top, so many for each who comes, and try to order without a
	// grant.
	Intruders float64
}

// MaxPeople bounds a run: each takes some 2 KB, and an address of the 131,072 of
// the network for benchmarks.
const MaxPeople = 1_000_000

// Validate returns all that is wrong with a plan, joined, in the words of the
// command line.
func (p Plan) Validate() error {
	var wrong []error
	say := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	u, err := url.Parse(p.URL)
	say(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "",
		"--url: must be a plain http://host:port or https://host:port")
	say(p.Arrivals.People >= 1 && p.Arrivals.People <= MaxPeople, "--arrivals: must be from 1 to %d, got %d", MaxPeople, p.Arrivals.People)
	say(p.Arrivals.Over >= 0 && p.Arrivals.Over <= 24*time.Hour, "--over: must be from 0s to 24h, got %v", p.Arrivals.Over)
	say(p.Tail >= 0 && p.Tail <= 24*time.Hour, "--tail: must be from 0s to 24h, got %v", p.Tail)
	say(p.Connections >= 1 && p.Connections <= 10_000, "--connections: must be from 1 to 10000, got %d", p.Connections)
	for _, s := range []struct {
		flag  string
		share float64
	}{{"--order", p.People.Order}, {"--twice", p.People.Twice}, {"--vanish", p.People.Vanish}, {"--leave", p.People.Leave}, {"--intruders", p.People.Intruders}} {
		say(s.share >= 0 && s.share <= 1, "%s: must be a share from 0 to 1, got %v", s.flag, s.share)
	}
	say(p.People.Vanish+p.People.Leave <= 1, "--vanish and --leave: must be 1 at most together, got %v", p.People.Vanish+p.People.Leave)
	return errors.Join(wrong...)
}

// intruders is how many come on top.
func (p Plan) intruders() int {
	return int(math.Ceil(p.People.Intruders * float64(p.Arrivals.People)))
}

// Unreachable says that there is nothing to load: no answer, or one that is not
// Linekeeper's.
type Unreachable struct{ Err error }

// Error is one line with what to do.
func (u Unreachable) Error() string { return u.Err.Error() }

// Unwrap is what was the matter.
func (u Unreachable) Unwrap() error { return u.Err }

// ErrNoRoom says that the server has no such room.
var ErrNoRoom = errors.New("load: no such room")
