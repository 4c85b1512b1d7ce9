package bots

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/linekeeper/linekeeper/test/siteverify"
	"github.com/linekeeper/linekeeper/work"
)

type ctx = context.Context

// scaled is how many bits less are solved for real than actors are charged for.
const scaled = 10

// phone is how many hashes a second a person's device tries, in the middle: half of
// them are within a factor of 1.4 of it.
const phone = 1e6

// crowd is who comes.
type crowd struct {
	people int
	bots   int     // places that the bots want
	power  float64 // of all the bots' machines together, in devices of people
	rate   float64 // requests a second that they make
	solved float64 // challenges a second that they can have solved for them
	keeps  bool    // they do all that clients do; else each request is a first one
}

// thousand people come beside so many bots. What the bots have grows with the
// people in a smaller crowd, so that the shares stay the same.
func thousand(people, bots int, keeps bool) crowd {
	scale := float64(people) / 1000
	return crowd{people: people, bots: bots, power: 100 * scale, rate: 1000 * scale, solved: 5 * scale, keeps: keeps}
}

// person comes some seconds after the opening, and does what the answers say.
type person struct {
	w       *world
	came    time.Duration
	address string
	speed   float64
}

func (w *world) comes(i int, came time.Duration) {
	p := &person{w: w, came: came, speed: phone * math.Exp(w.dice.NormFloat64()/2),
		address: fmt.Sprintf("100.%d.%d.%d", i>>16&255, i>>8&255, i&255)}
	w.at(came, func() { p.ask(nil) })
}

func (p *person) ask(header map[string]string) {
	a := p.w.enter(p.address, header)
	switch {
	case a.status == http.StatusCreated:
		p.w.people = append(p.w.people, p.w.now-p.came)
	case a.status >= 400:
		p.w.at(p.w.now+a.retry, func() { p.ask(nil) })
	default:
		header, hashes := p.w.answerTo(a)
		pause := time.Duration(hashes / p.speed * float64(time.Second))
		if a.MustShow != nil && a.MustShow.ChallengeResponse {
			pause += time.Duration((3 + 2*p.w.dice.Float64()) * float64(time.Second))
		}
		p.w.at(p.w.now+pause, func() { p.ask(header) })
	}
}

// answerTo is what to show where a room asks for something, and for how many hashes
// it is charged.
func (w *world) answerTo(a answer) (header map[string]string, hashes float64) {
	header = map[string]string{"X-Queue-Ticket": *a.QueueTicket}
	if a.MustShow == nil {
		return header, 0
	}
	if puzzle := a.MustShow.ProofOfWork; puzzle != nil {
		nonce, err := work.Solve(w.Context(), puzzle.Challenge, puzzle.Bits)
		if err != nil {
			w.Fatal(err)
		}
		tried, _ := strconv.Atoi(nonce)
		header["X-Proof-Of-Work"], hashes = nonce, float64(tried+1)*(1<<scaled)
	}
	if a.MustShow.ChallengeResponse {
		header["X-Challenge-Response"] = siteverify.Human + "-" + strconv.Itoa(w.asked)
	}
	return header, hashes
}

// farm is who runs all the bots. It wants so many places, one after the other, as
// fast as its machines, and those who solve challenges for it, are.
type farm struct {
	w *world
	crowd
	asked   int
	free    time.Duration // when its machines have nothing to do
	solvers time.Duration // when a solver is free
}

// solving is how long a challenge takes that others solve for it.
const solving = 15 * time.Second

func (w *world) floods(c crowd) {
	f := &farm{w: w, crowd: c}
	w.at(20*time.Millisecond, f.next)
}

// next asks for a place, when the machines can work for it.
func (f *farm) next() {
	if f.asked == f.bots {
		return
	}
	f.asked++
	// Fifty addresses, each of a network of its own.
	address := fmt.Sprintf("203.0.113.%d", f.asked%50)
	a := f.w.enter(address, nil)
	switch {
	case a.status == http.StatusCreated:
		f.w.mark(*a.QueueTicket)
	case a.status == http.StatusOK && f.keeps:
		f.show(a, address)
	}
	f.w.at(max(f.w.now+time.Duration(float64(time.Second)/f.rate), f.free, f.solvers), f.next)
}

func (f *farm) show(a answer, address string) {
	header, hashes := f.w.answerTo(a)
	f.free = max(f.free, f.w.now) + time.Duration(hashes/(f.power*phone)*float64(time.Second))
	done := f.free
	if _, passes := header["X-Challenge-Response"]; passes {
		f.solvers = max(f.solvers, f.w.now) + time.Duration(float64(time.Second)/f.solved)
		done = max(done, f.solvers+solving)
	}
	f.w.mark(*a.QueueTicket)
	f.w.at(done, func() { f.w.enter(address, header) })
}
