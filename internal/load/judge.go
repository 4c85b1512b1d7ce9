package load

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
)

// promise is one of those that are looked at.
type promise int

const (
	noOrderWithoutGrant promise = iota
	oneOrderPerToken
	withinTheRate
	placeStays
	rankFalls
	tokenInTurn
	tokenStays
	numPromises
)

var promiseNames = [numPromises]string{
	noOrderWithoutGrant: "no order without a grant",
	oneOrderPerToken:    "no two orders with one entry token",
	withinTheRate:       "admissions within the rate",
	placeStays:          "a place never changes",
	rankFalls:           "a rank grows by those who came back alone",
	tokenInTurn:         "an entry token when it is one's turn, and only then",
	tokenStays:          "an entry token is the same at every poll",
}

// Violation is a promise that was broken, and what was seen.
type Violation struct {
	Promise   string  `json:"promise"`
	AtSeconds float64 `json:"atSeconds"`
	Saw       string  `json:"saw"`
}

// maxViolations are kept of each promise; all are counted.
const maxViolations = 20

// judge holds answers against the promises.
type judge struct {
	now    func() time.Duration
	mu     sync.Mutex
	looks  [numPromises]int64
	broken [numPromises]int64
	kept   []Violation
	orders map[string]int // whose an order is
	rises  []rise         // of ranks, which the next snapshot explains or does not
	risen  risen
}

// seen is what a person was shown last.
type seen struct {
	score   int64
	rank    int64 // -1: none
	rankAt  time.Duration
	shown   string // the entry token
	expires time.Time
}

// bought is what came of a person's orders.
type bought struct {
	ids    []string // different ones
	placed int      // answers 201
}

// id is the order, if there is one.
func (b bought) id() (string, bool) {
	if len(b.ids) == 0 {
		return "", false
	}
	return b.ids[0], true
}

func newJudge(now func() time.Duration) *judge {
	return &judge{now: now, orders: map[string]int{}}
}

// hold counts a look at a promise, and keeps what was seen where it is broken.
func (j *judge) hold(p promise, ok bool, saw string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.looks[p]++
	if ok {
		return
	}
	j.broken[p]++
	if j.broken[p] <= maxViolations {
		j.kept = append(j.kept, Violation{promiseNames[p], j.now().Seconds(), fmt.Sprintf(saw, args...)})
	}
}

// violations is how many were seen.
func (j *judge) violations() (n int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, b := range j.broken {
		n += b
	}
	return n
}

// position holds what somebody is shown against what they were shown before.
func (j *judge) position(v visit, p spec.Position) {
	s, who := &v.who.seen, v.who.n
	if p.Score != nil {
		if s.score != 0 {
			j.hold(placeStays, *p.Score == s.score, "person %d had score %d and now has %d", who, s.score, *p.Score)
		}
		s.score = *p.Score
	}
	turn := p.Status == queue.Ready || p.Status == queue.Claimed
	j.hold(tokenInTurn, turn == (p.EntryToken != nil), "person %d is %s, with a token: %t", who, p.Status, p.EntryToken != nil)
	j.token(v, p, turn)
	j.rank(v, p)
	if id, ordered := v.who.orders.id(); ordered && p.OrderID != nil {
		j.hold(oneOrderPerToken, *p.OrderID == id, "person %d placed order %s and the line says %s", who, id, *p.OrderID)
	}
}

// token holds a token against the one shown before, of the same grant: between
// two grants there is a time without. In a room that fails open a person may be
// given a grant that no script knows, beside the one that they have.
func (j *judge) token(v visit, p spec.Position, turn bool) {
	s := &v.who.seen
	if !turn || p.EntryToken == nil || p.EntryTokenExpiresAt == nil || p.RoomState == queue.FailedOpen {
		s.shown = ""
		return
	}
	if s.shown != "" {
		same := subtle.ConstantTimeCompare([]byte(s.shown), []byte(*p.EntryToken)) == 1
		j.hold(tokenStays, same, "person %d was shown another token than before", v.who.n)
		j.hold(tokenStays, s.expires.Equal(*p.EntryTokenExpiresAt), "person %d had a token until %s and now until %s", v.who.n, s.expires, *p.EntryTokenExpiresAt)
	}
	s.shown, s.expires = *p.EntryToken, *p.EntryTokenExpiresAt
}

// order holds an order against those that were placed before.
func (j *judge) order(v visit) {
	var o spec.Order
	if err := json.Unmarshal(v.answer.body, &o); err != nil || o.ID == "" {
		j.hold(oneOrderPerToken, false, "person %d ordered, and the answer %d has no order in it", v.who.n, v.answer.status)
		return
	}
	b := &v.who.orders
	placed := v.answer.status == 201
	if placed {
		b.placed++
	}
	first, had := b.id()
	if !had {
		b.ids = append(b.ids, o.ID)
	}
	v.tally.ordered(v.done, had)
	j.hold(oneOrderPerToken, !had || first == o.ID, "person %d placed order %s, and order %s with the same token", v.who.n, first, o.ID)
	j.hold(oneOrderPerToken, b.placed <= 1, "person %d was answered 201 twice for one token, the second time with order %s", v.who.n, o.ID)
	j.hold(oneOrderPerToken, placed || v.answer.replayed, "person %d was told order %s with 200 and without Idempotency-Replayed", v.who.n, o.ID)
	j.mu.Lock()
	owner, taken := j.orders[o.ID]
	j.orders[o.ID] = v.who.n
	j.mu.Unlock()
	j.hold(oneOrderPerToken, !taken || owner == v.who.n, "person %d was given order %s, which person %d has", v.who.n, o.ID, owner)
}

// sneaked judges an order that must not pass. What got as far as to be sold out or
// wrong in itself has passed the door. No answer, a failure, a limit, or a word of
// something in between shows nothing.
func (j *judge) sneaked(v visit) {
	switch s := v.answer.status; {
	case s == 401 || s == 403:
		j.hold(noOrderWithoutGrant, true, "")
	case s >= 200 && s < 300 || s == 409 || s == 422:
		j.hold(noOrderWithoutGrant, false, "an order with %s was answered %d %s", v.who.sneaking(), s, v.code)
	}
}
