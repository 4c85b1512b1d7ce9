package load

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
)

// maxTries is how often a person repeats what was not decided.
const maxTries = 10

// step does what is due and settles what comes next.
func (r *run) step(l *line, e entry) {
	e.who.mu.Lock()
	c := e.who.call(r.target, e.act, r.plan.Forwarded)
	e.who.mu.Unlock()
	sent := r.agenda.now()
	a := l.ask(c)
	done := r.agenda.now()
	e.who.mu.Lock()
	defer e.who.mu.Unlock()
	said := readRefusal(a)
	if e.act != tidyUp {
		r.tally.called(called{kind: c.kind, due: e.due, sent: sent, done: done, status: a.status, code: said})
	}
	if e.act == enter && e.who.tries[enter] == 0 && e.who.fate != intruder {
		e.who.came = e.due
		r.tally.came(sent)
	}
	v := visit{run: r, who: e.who, act: e.act, due: e.due, sent: sent, done: done, answer: a, code: said}
	v.settle()
}

// visit is one call of a person, answered.
type visit struct {
	*run
	who             *person
	act             act
	due, sent, done time.Duration
	answer          answer
	code            string // of a refusal, or why there was no answer
}

// readRefusal is the code of a problem; of no answer, why.
func readRefusal(a answer) string {
	if a.status == 0 {
		return a.fault
	}
	if a.status < 400 {
		return ""
	}
	var p struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(a.body, &p) != nil || p.Code == "" {
		return "no problem of Linekeeper"
	}
	return p.Code
}

// undecided tells an answer after which one asks again: there was none, or it
// says so.
func (v visit) undecided() bool {
	return slices.Contains([]int{0, 429, 500, 502, 503, 504}, v.answer.status) || v.code == "order-in-progress"
}

// settle decides what comes next.
func (v visit) settle() {
	switch v.act {
	case enter, enterAgain:
		v.entered()
	case poll:
		v.polled()
	case order, orderTwin, orderAgain:
		v.ordered()
	case leave:
		v.left()
	case sneak:
		v.sneaked()
	case tidyUp:
		v.tidied()
	}
}

// next puts an act on the agenda, so long from now; when the run is ending, the
// last one.
func (v visit) next(a act, in time.Duration) {
	if v.ending.Load() && a != tidyUp {
		v.tidy(v.who)
		return
	}
	v.agenda.add(entry{v.done + in, v.who, a})
}

// again repeats the act when the answer says, with some chance in it so that not
// all come back at once; false where that has been tried often enough.
func (v visit) again() bool {
	v.who.tries[v.act]++
	if v.who.tries[v.act] >= maxTries {
		return false
	}
	v.next(v.act, v.pause())
	return true
}

func (v visit) pause() time.Duration {
	pause := max(v.answer.retryAfter, time.Second)
	return time.Duration(float64(min(pause, 30*time.Second)) * (1 + 0.2*v.who.rng.Float64()))
}

func (v visit) entered() {
	switch {
	case v.undecided() && v.again():
	case v.answer.status == 200 || v.answer.status == 201:
		v.positioned()
	case v.act == enterAgain:
		v.next(poll, time.Second) // the place is not lost by it
	default:
		v.end(TurnedAway)
	}
}

// polled goes on asking whatever happens: who waits does not give up for a
// failure of the server.
func (v visit) polled() {
	switch {
	case v.undecided():
		v.next(poll, v.pause())
	case v.answer.status == 200:
		v.positioned()
	default:
		v.end(Lost)
	}
}

// positioned follows a position: of an enter, or of a poll.
func (v visit) positioned() {
	var p spec.Position
	if err := json.Unmarshal(v.answer.body, &p); err != nil {
		v.tally.odd(v.act, "no position")
		v.next(poll, v.pause())
		return
	}
	if t := kept(p.QueueTicket); t != "" {
		v.who.ticket = t
	}
	v.judge.position(v, p)
	v.expect(p)
	switch p.Status {
	case queue.Waiting:
		v.waits(time.Duration(p.NextPollAfterMs) * time.Millisecond)
	case queue.Ready, queue.Claimed:
		v.holds(p)
	case queue.Consumed:
		v.end(Ordered)
	default:
		v.nowhere(p)
	}
}

// nowhere is who has no place: not yet, because the room wants to see something
// first, or no more.
func (v visit) nowhere(p spec.Position) {
	_, ordered := v.who.orders.id()
	switch {
	case ordered:
		v.end(Ordered)
	case v.who.place != coming:
		v.end(Lost)
	case p.MustShow != nil:
		v.tally.odd(v.act, "must show a proof of work or a challenge")
		v.end(TurnedAway)
	case v.who.ticket == "" || v.who.tries[enter] >= maxTries:
		v.end(TurnedAway)
	default: // the ticket was all that was wanted
		v.who.tries[enter]++
		v.next(enter, 0)
	}
}

// expect remembers the first wait that the person is told.
func (v visit) expect(p spec.Position) {
	t := &v.who.told
	if t.at > 0 || p.Status != queue.Waiting || p.EstimatedWaitSeconds == nil || len(p.EstimatedWaitRange) != 2 {
		return
	}
	*t = told{
		at: v.done, wait: time.Duration(*p.EstimatedWaitSeconds) * time.Second,
		least: time.Duration(p.EstimatedWaitRange[0]) * time.Second, most: time.Duration(p.EstimatedWaitRange[1]) * time.Second,
	}
}

// waits is somebody in line, who asks again when told.
func (v visit) waits(pause time.Duration) {
	first := v.who.place == coming
	v.move(v.who, waiting)
	switch {
	case v.who.fate == intruder:
		v.next(sneak, 0)
	case first && v.who.twice:
		v.next(enterAgain, v.who.think)
	case v.who.polls > 0 || v.who.fate != vanisher && v.who.fate != leaver:
		v.who.polls--
		v.next(poll, pause)
	case v.who.fate == vanisher:
		v.end(Vanished)
	default:
		v.next(leave, 0)
	}
}

// holds is somebody who is shown a token.
func (v visit) holds(p spec.Position) {
	if _, ordered := v.who.orders.id(); ordered {
		v.follow(time.Duration(p.NextPollAfterMs) * time.Millisecond)
		return
	}
	first := v.who.place != holding
	v.who.token = kept(p.EntryToken)
	v.move(v.who, holding)
	if first {
		v.tally.admitted(v.done, v.who.came, v.who.told)
	}
	switch {
	case v.who.token == "": // which the judge has seen
		v.end(Lost)
	case v.who.fate == intruder:
		v.next(sneak, 0)
	case v.who.fate == vanisher:
		v.end(Vanished)
	case v.who.fate == idler:
		v.end(Unused)
	case v.who.fate == leaver:
		v.next(leave, v.who.think)
	case v.who.twice && first:
		v.next(poll, v.who.think) // the page is loaded again: the token must be the same
	case v.who.twice:
		v.press(0)
	default:
		v.press(v.who.think)
	}
}

// press presses the button, twice at the same moment for those who do.
func (v visit) press(in time.Duration) {
	v.who.pending = 1
	v.next(order, in)
	if v.who.twice {
		v.who.pending = 2
		v.next(orderTwin, in)
	}
}

// ordered settles a press of the button. Of two at once, one is told to wait for
// the other; who presses does not go on with it then, but sees what comes of the
// other. Once they know, those who do all twice send the order once more.
func (v visit) ordered() {
	if v.answer.status == 200 || v.answer.status == 201 {
		v.judge.order(v)
	}
	_, ordered := v.who.orders.id()
	if v.undecided() && v.who.pending == 1 && (!ordered || v.act == orderAgain) && v.again() {
		return
	}
	v.who.pending--
	switch {
	case v.who.pending > 0:
	case ordered && v.who.twice && v.act != orderAgain:
		v.who.pending = 1
		v.next(orderAgain, 0)
	case ordered && v.who.twice:
		v.follow(time.Second)
	case ordered:
		v.end(Ordered)
	case v.code == "sold-out":
		v.end(SoldOut)
	case v.undecided():
		v.end(Undecided)
	default:
		v.end(Lost)
	}
}

// follow polls until the line knows of the order, as a page that is loaded again
// does; not for ever, since the relay may take its time.
func (v visit) follow(in time.Duration) {
	v.who.tries[poll]++
	if v.who.tries[poll] > 2 {
		v.end(Ordered)
		return
	}
	v.next(poll, in)
}

func (v visit) left() {
	switch {
	case v.undecided() && v.again():
	case v.who.fate == intruder:
		v.end(Intruded)
	case v.answer.status != 204:
		v.end(Lost)
	case v.who.token != "":
		v.next(sneak, 0) // it must be worth nothing now
	default:
		v.end(Left)
	}
}

func (v visit) sneaked() {
	v.judge.sneaked(v)
	switch {
	case v.who.fate != intruder:
		v.end(Left)
	case v.who.ticket != "":
		v.next(leave, 0)
	default:
		v.end(Intruded)
	}
}

// tidied repeats a leave that was not decided, a few times.
func (v visit) tidied() {
	if v.undecided() && v.who.tries[tidyUp] < 3 {
		v.who.tries[tidyUp]++
		v.next(tidyUp, v.pause())
		return
	}
	v.tidying.Add(-1)
}

// end is the end of a person's way.
func (v visit) end(where place) {
	v.move(v.who, where)
}
