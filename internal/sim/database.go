package sim

import (
	"math"
	"time"
)

// Database is the model of what is behind the room: so many connections, each
// with one order at a time, and a queue in front of them. Service times are
// exponential. It is the M/M/c queue of the textbooks, but that its orders give
// up after a deadline, and that its speed may change.
//
// Its response time bends as that of real ones does: flat while connections are
// free, steep once they are not.
type Database struct {
	Connections int
	Service     time.Duration // of one order on an idle database, on average
}

// orderDeadline is how long an order waits for the database (order/pgstore
// gives an attempt as much).
const orderDeadline = 8 * time.Second

// slowOrder is the mean response time up to which the database is said to bear
// its load: the upper edge of what leaves the batch as it is.
const slowOrder = 500 * time.Millisecond

// Latency is the mean response time at a steady rate of orders a second, by
// Erlang's C formula; false where the queue would grow for ever.
func (d Database) Latency(rate, speed float64) (time.Duration, bool) {
	if speed <= 0 {
		return 0, false
	}
	c, service := float64(d.Connections), d.Service.Seconds()/speed
	load := rate * service // in connections
	if load >= c {
		return 0, false
	}
	// Erlang B by its recursion, which does not overflow; C follows from it.
	b := 1.0
	for n := 1.0; n <= c; n++ {
		b = load * b / (n + load*b)
	}
	busy := load / c
	waits := b / (1 - busy*(1-b))
	return time.Duration((service + waits*service/(c-load)) * float64(time.Second)), true
}

// Bears is the highest steady rate of orders a second at which the mean response
// time is at most half a second. A database that takes longer even when idle is
// taken at what it can do at all.
func (d Database) Bears(speed float64) float64 {
	if speed <= 0 {
		return 0
	}
	all := float64(d.Connections) * speed / d.Service.Seconds()
	if idle, _ := d.Latency(0, speed); idle > slowOrder {
		return all
	}
	low, high := 0.0, all
	for range 50 {
		mid := (low + high) / 2
		if took, ok := d.Latency(mid, speed); ok && took <= slowOrder {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// server is a Database at work.
type server struct {
	model Database
	shape Shape
	sim   *run
	queue []sent // who waits; those who gave up are passed over
	head  int
	busy  int
}

// sent is one order of a person.
type sent struct{ who, try int }

// submit takes an order in.
func (d *server) submit(who int) {
	d.queue = append(d.queue, sent{who, d.sim.people[who].tries})
	d.sim.after(orderDeadline, deadline, who)
	d.serve()
}

// serve gives free connections work, if the database is up.
func (d *server) serve() {
	speed := d.shape.speed(d.sim.now)
	for d.busy < d.model.Connections && speed > 0 && d.head < len(d.queue) {
		next := d.queue[d.head]
		d.head++
		p := &d.sim.people[next.who]
		if p.doing != queued || p.tries != next.try || d.sim.now-p.sent >= orderDeadline {
			continue
		}
		p.doing = inService
		d.busy++
		took := d.sim.rand.ExpFloat64() * d.model.Service.Seconds() / speed
		d.sim.after(seconds(took), served, next.who)
	}
	if d.head > 1024 && d.head > len(d.queue)/2 {
		d.queue = append(d.queue[:0], d.queue[d.head:]...)
		d.head = 0
	}
}

// end is the answer to an order: placed, or failed if the database has gone away
// meanwhile.
func (d *server) end(who int) {
	d.busy--
	d.sim.answered(who, d.shape.speed(d.sim.now) > 0)
	d.serve()
}

// giveUp ends an order that still waits at its deadline.
func (d *server) giveUp(who int) {
	p := &d.sim.people[who]
	if p.doing == queued && d.sim.now-p.sent >= orderDeadline {
		d.sim.answered(who, false)
	}
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
