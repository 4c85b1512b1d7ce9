package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/identity"
	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/ratelimit"
)

// Limits are how often people may do what. The zero value limits nothing.
type Limits struct {
	// Newcomers per address, IPv6 by its /64, and per /48. Where a trusted proxy
	// says who members are these do not count: many may share an address, and
	// nobody makes up members.
	EnterAddress, EnterNetwork ratelimit.Limit
	// Enters of one member to one room.
	EnterMember ratelimit.Limit
	// Orders of one member with one entry token: a new token begins anew, so that
	// nobody waits for what they did with an old one.
	OrderMember ratelimit.Limit
	// Polls of one member of one room, in this process alone. A token bucket.
	PollMember ratelimit.Limit
	// Tokens and tickets from one address that are not good, in this process alone.
	// A token bucket. A good one is never refused for it.
	WrongCredential ratelimit.Limit

	Counts *ratelimit.Limiter // where all processes count; needed by the first four
	// Decisions returns what to call each time that policy decides so; result is
	// allowed, refused, or unknown (Redis did not say). May be nil.
	Decisions func(policy, algorithm, result string) func()
	Now       func() time.Time // nil: time.Now. For tests alone
}

var (
	errTooMany     = errors.New("api: more requests than a limit allows")
	errPollTooFast = errors.New("api: more polls than a limit allows")
)

const (
	// keysAtOnce is how many addresses or members a process remembers for each
	// limit: 10 MB, if so many are busy.
	keysAtOnce = 200_000
	// askTimeout is how long a limit may keep a request waiting. Whom Redis does not
	// answer by then is not held up by a limit; the line has its own word to say.
	askTimeout = 300 * time.Millisecond
	// askPause is how long no request asks after one was not answered, so that a
	// Redis that hangs costs people this time once, and not each of them.
	askPause = time.Second
)

// guard asks the limits. They decide only about what is too often: where Redis
// is away or full the request goes on, and meets there whatever it would have
// met without a limit.
type guard struct {
	address, network, member, order *policy
	polls                           *local[seat]
	wrong                           *local[netip.Prefix]

	trusted  clientip.Trusted
	named    bool         // members are who a trusted proxy says
	began    time.Time    // asksFrom counts from here
	asksFrom atomic.Int64 // from when Redis is asked again, a time.Duration
	now      func() time.Time
}

// policy is a limit that all processes share, and its name in headers and metrics.
type policy struct {
	terms
	shared *ratelimit.Shared
}

// local is a limit of this process.
type local[K comparable] struct {
	terms
	limit  ratelimit.Limit
	bucket *ratelimit.Local[K]
}

// seat is whose polls are counted.
type seat struct{ room, member string }

func newGuard(o Options) *guard {
	l := o.Limits
	if l.Decisions == nil {
		l.Decisions = func(string, string, string) func() { return func() {} }
	}
	if l.Now == nil {
		l.Now = time.Now
	}
	return &guard{
		address: newPolicy(l, "enter-address", l.EnterAddress), network: newPolicy(l, "enter-network", l.EnterNetwork),
		member: newPolicy(l, "enter-member", l.EnterMember), order: newPolicy(l, "order-member", l.OrderMember),
		polls: newLocal[seat](l, "poll-member", l.PollMember), wrong: newLocal[netip.Prefix](l, "wrong-credential", l.WrongCredential),
		trusted: o.Trusted, named: o.MemberHeader || o.Users != nil, began: l.Now(), now: l.Now,
	}
}

func newPolicy(l Limits, name string, limit ratelimit.Limit) *policy {
	if limit.Off() {
		return nil
	}
	return &policy{newTerms(l, name, limit), ratelimit.NewShared(l.Counts, limit, keysAtOnce, l.Now)}
}

func newLocal[K comparable](l Limits, name string, limit ratelimit.Limit) *local[K] {
	if limit.Off() {
		return nil
	}
	return &local[K]{newTerms(l, name, limit), limit, ratelimit.NewLocal[K](limit, keysAtOnce, l.Now)}
}

// question is one more, of somebody under a policy.
type question struct {
	*policy
	key string
}

// about asks p of whoever these words name, in this order. What is kept of them
// is a hash: an address or a member is not to be read in Redis, and the name of
// the policy keeps one kind apart from another.
func (p *policy) about(words ...string) []question {
	if p == nil {
		return nil
	}
	h := sha256.New()
	for _, w := range words {
		h.Write([]byte(w))
		h.Write([]byte{0}) // which no room, grant or address has in it
	}
	return []question{{p, p.name + ":" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])}}
}

// enter asks whether the caller may enter once more, who may have been counted as a
// newcomer already. The wait is how long nobody should be told to come back before.
func (g *guard) enter(w http.ResponseWriter, r *http.Request, c caller, v *view, counted bool) (wait time.Duration, err error) {
	var q []question
	// Who shows a place of this sale has been counted as a newcomer, and makes no
	// more members: a page that is loaded again is not to be refused for neighbours.
	known := c.hasTicket && c.ticket.Place.Score > 0 && c.ticket.Sale == v.Sale
	if !known && !counted && !g.named {
		from := g.trusted.Of(r)
		// The narrow one first: one subscriber at the limit uses up nothing of the others'.
		q = append(q, g.address.about(clientip.Network(from, 32, 64).String())...)
		if from.Is6() {
			q = append(q, g.network.about(clientip.Network(from, 32, 48).String())...)
		}
	}
	if c.member != "" { // not yet somebody: nobody has asked as them before
		q = append(q, g.member.about(v.Room, c.member)...)
	}
	return g.ask(r.Context(), w, q)
}

// place asks whether one more order may be tried with gr.
func (g *guard) place(w http.ResponseWriter, r *http.Request, gr queue.Grant) (wait time.Duration, err error) {
	return g.ask(r.Context(), w, g.order.about(gr.Room, gr.ID, gr.Member))
}

// ask puts the questions, until one is refused, and shows the answers in w.
func (g *guard) ask(ctx context.Context, w http.ResponseWriter, questions []question) (time.Duration, error) {
	var told standing
	for _, q := range questions {
		told.policies = append(told.policies, q.item)
	}
	defer func() { told.show(w.Header()) }()
	for _, q := range questions { // first what costs nothing
		if reply, refused := q.shared.Known(q.key); refused {
			return told.refused(q.terms, reply, errTooMany)
		}
	}
	for _, q := range questions {
		reply, err := g.count(ctx, q)
		switch {
		case err != nil:
			q.unknown()
		case !reply.Allowed:
			return told.refused(q.terms, reply, errTooMany)
		default:
			q.allowed()
			told.add(q.terms, reply)
		}
	}
	return told.wait, nil
}

var errNotAsked = errors.New("api: Redis is not asked about limits, it hangs")

func (g *guard) count(ctx context.Context, q question) (ratelimit.Reply, error) {
	if g.now().Sub(g.began) < time.Duration(g.asksFrom.Load()) {
		return ratelimit.Reply{}, errNotAsked
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	reply, err := q.shared.Allow(asking, q.key)
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		g.asksFrom.Store(int64(g.now().Sub(g.began) + askPause))
	}
	return reply, err
}

// poll asks whether the member may poll once more. It is on the hot path: one
// look into a map, and nothing that an answer would carry.
func (g *guard) poll(w http.ResponseWriter, room string, c caller) error {
	if g.polls == nil {
		return nil
	}
	reply := g.polls.bucket.Allow(seat{room, c.member})
	if reply.Allowed {
		g.polls.allowed()
		return nil
	}
	return refuse(w, g.polls.terms, reply, errPollTooFast)
}

// pace lets nobody be told to poll sooner than they may.
func (g *guard) pace(p *spec.Position) {
	if g.polls == nil {
		return
	}
	step := g.polls.limit.Per / time.Duration(g.polls.limit.N)
	p.NextPollAfterMs = max(p.NextPollAfterMs, int(math.Ceil(float64(step)/float64(time.Millisecond))))
	p.PollingIntervalSeconds = max(p.PollingIntervalSeconds, seconds(step))
}

// judged counts err, if it is that a credential was no good. Only then is
// anything asked, so a good one passes whatever its neighbours do. However far it
// got, and for whatever reason it was refused, its answer is the same.
func (g *guard) judged(w http.ResponseWriter, r *http.Request, err error) error {
	if !errors.Is(err, order.ErrTokenInvalid) && !errors.Is(err, errTicketInvalid) && !errors.Is(err, identity.ErrInvalid) {
		return err
	}
	w.Header().Del(policyHeader)
	w.Header().Del(limitHeader)
	if g.wrong == nil {
		return err
	}
	reply := g.wrong.bucket.Allow(clientip.Network(g.trusted.Of(r), 32, 64))
	if reply.Allowed {
		g.wrong.allowed()
		return err
	}
	return refuse(w, g.wrong.terms, reply, errTooMany)
}
