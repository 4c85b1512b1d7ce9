// Package api is the public HTTP API: enter, poll, leave, and place an order.
//
// It promises that every error is a problem of package problem; that a member
// is who a verified credential says, never who a body says; that a poll of
// somebody who waits costs one round trip to Redis and no write; and that without an
// answer of Redis nobody enters and nothing is ordered, but in a room that fails open.
//
//	request -> room view (cached 250 ms) -> identity (ticket | header | jwt) -> limits -> line | orders
//
// It holds no state of its own that matters: any process can answer any
// request. It does not decide who comes next (the line's scripts do) nor
// whether an order stands (Postgres does).
package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
)

// Line is where people stand.
type Line interface {
	// EnterWith gives member a place, or says where they stand already. Where
	// places go by lot, the lot must be of the room's sale; the zero one finds only
	// who has a place, and is queue.ErrGeneration for everybody else. A fresh grant
	// is given at once to a new member who need not wait.
	EnterWith(ctx context.Context, room, member string, e queue.Entry) (queue.Standing, error)
	// Poll says where member stands; it is the hot path. place is what the
	// member's ticket says, which may be older than the place they have.
	Poll(ctx context.Context, room, member string, place queue.Place) (queue.Standing, error)
	// PollLine is Poll in a room whose so many lanes are one line.
	PollLine(ctx context.Context, room, member string, place queue.Place, lanes int) (queue.Standing, error)
	// Standing is Poll for who shows no place.
	Standing(ctx context.Context, room, member string) (queue.Standing, error)
	// Leave gives up the place with that score, 0 for any, and tells whether
	// there was one.
	Leave(ctx context.Context, room, member string, score int64, outcome queue.Outcome) (bool, error)
}

// Returns brings members what is theirs: a grant, or a place that was lost.
type Returns interface {
	// PickUp fixes the expiry and key of a grant at the first call and returns
	// the same ever after, or queue.ErrGone.
	PickUp(ctx context.Context, g queue.Grant, keyID string) (queue.Grant, error)
	// Restore puts a member back to a place that a ticket proves, or says
	// queue.ErrGone.
	Restore(ctx context.Context, room string, l queue.Lost) (queue.Standing, error)
}

// Books is what Postgres knows of rooms.
type Books interface {
	// Generations lists the rooms there are, with the generation of each.
	Generations(ctx context.Context) (map[string]int64, error)
	// Restorable says whether member may be put back into the room, and the
	// highest score that was ever admitted in the lane.
	Restorable(ctx context.Context, room string, sale int64, member string, lane int) (floor int64, ok bool, err error)
	// Barred tells which members may not be let through: blocked, evicted from
	// the sale, or, with oneOrder, with an order in it.
	Barred(ctx context.Context, room string, sale int64, members []string, oneOrder bool) (map[string]bool, error)
	// FailOpen lists the rooms that pass people while Redis is out of reach, and when
	// they were such, by the clock of Postgres. Beside an error it lists those that
	// can be read.
	FailOpen(ctx context.Context) ([]queue.Life, time.Time, error)
}

// Orders places orders.
type Orders interface {
	Place(ctx context.Context, r order.Request) (order.Placed, error)
}

// OrderBook reads orders, and voids grants.
type OrderBook interface {
	// ByID returns order.ErrNotFound where there is no such order.
	ByID(ctx context.Context, id string) (order.Order, error)
	// Void settles that there is no order for g (order.ErrTokenInvalid), or
	// returns the one there is.
	Void(ctx context.Context, g queue.Grant) (order.Order, error)
}

// Observer is told what happened to whom; every field may be nil.
type Observer struct {
	Entered func(room, result string)
	// StraightIn is called for each new member who got a grant by entering.
	StraightIn func(room, lane string)
	Polled     func(room string, status queue.Status)
	// Restored is called for each ticket of a place that the room does not know:
	// restored, passed (restored, behind others who have been let through), or
	// refused (used, given up, or too old).
	Restored func(room, result string)
	// OtherNetwork is called for each ticket or token that is shown in another
	// network than the one it was given in, where the room wants to know.
	OtherNetwork func(room, credential string, passed bool)
	// Waited is called for a sample of those who are let through: how long they
	// were first told that they would wait, and how long they have.
	Waited func(room string, told, waited time.Duration)
	Moved  func(ctx context.Context, m Move)
	// FailedOpen is called when a room begins to pass people because Redis is out of
	// reach, and when that is over; PassedOpen for each token handed out in between.
	FailedOpen func(room string, open bool)
	PassedOpen func(room string)
	// Stretched is called each second with how much longer than usual those who wait
	// are told to wait between polls, from 1 to queue.MostStretch.
	Stretched func(stretch float64)
}

// Move is a change of a member's state that a request has made.
type Move struct {
	Room, Member, Lane, From, To, Grant string
	Score, Waiting                      int64
}

// Options are the parts of an API.
type Options struct {
	Line      Line
	Returns   Returns
	Snapshots Snapshots
	Hearer    Hearer
	Health    HealthKeeper // nil: orders are not counted, and no batch can follow them
	Books     Books
	KeptOut   Exclusions // nil: nobody is kept out
	Codes     Codes      // nil: no access code counts
	Reach     Reach      // nil: no room fails open
	Draws     Draws      // nil: rooms whose places go by lot take nobody
	Orders    Orders
	OrderBook OrderBook
	Ring      *credential.Ring
	Log       *slog.Logger
	Observer  Observer
	// Ready lists what keeps this process from being ready; empty: nothing.
	Ready func() []string
	// Users takes the member from user tokens; MemberHeader from X-Member-Id of
	// peers in Trusted. Without either, members are anonymous and known by their
	// tickets.
	Users        Users
	MemberHeader bool
	// Trusted are the proxies that may say who asks, and from where.
	Trusted clientip.Trusted
	// Challenges judges what newcomers of rooms with an outside challenge show; nil:
	// those rooms take nobody new.
	Challenges Challenges
	// Limits are how often people may do what.
	Limits Limits
	// CookieSecure sets cookies for https alone.
	CookieSecure bool
	// Origins are those whose pages may call the API from a browser, each as a
	// browser sends it; none: no other origin.
	Origins []string
	// Middleware stands around all routes, outermost first.
	Middleware []func(http.Handler) http.Handler
}

// API answers public requests. Run must run beside it.
type API struct {
	Options
	rooms   *rooms
	draws   *draws
	heard   *heartbeats
	healths *healths
	waits   *waits
	gate    *gate
	kept    *exclusions
	all     []screen // in the order in which they cost us more
	failing *failing
	guard   *guard
	codes   *codes
	polls   *queue.Polls
}

// New returns an API of these parts.
func New(o Options) *API {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Ready == nil {
		o.Ready = func() []string { return nil }
	}
	return &API{
		Options: o, rooms: newRooms(o.Snapshots, o.Books), draws: newDraws(o.Draws), heard: newHeartbeats(o.Hearer),
		healths: newHealths(o.Health), waits: newWaits(o.Observer.Waited), gate: newGate(o.Books), kept: newExclusions(o.KeptOut),
		all: []screen{proofOfWork{}, newOutside(o)}, failing: newFailing(o), guard: newGuard(o), codes: newCodes(o),
		polls: &queue.Polls{},
	}
}

// Run keeps the list of rooms and the pace of polls, and tells the line each second
// whom this process has heard and how its orders went, until ctx ends; then once more.
func (a *API) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error { return a.heard.run(ctx, a.rooms, a.Log) })
	g.Go(func() error { return a.healths.run(ctx, a.Log) })
	g.Go(func() error { return a.failing.run(ctx) })
	g.Go(func() error { return a.keepPace(ctx) })
	return g.Wait()
}

// Handler returns the routes.
func (a *API) Handler() chi.Router {
	r := chi.NewRouter()
	r.Use(problem.RequestIDs)
	r.Use(a.Middleware...)
	r.Use(headers, crossOrigin(a.Origins))
	problem.Unrouted(r)

	r.Get("/v1/rooms/{room}", a.handle(a.status))
	r.Post("/v1/rooms/{room}/entries", a.handle(a.enter))
	r.Get("/v1/rooms/{room}/entries/me", a.handle(a.timed(a.poll)))
	r.Delete("/v1/rooms/{room}/entries/me", a.handle(a.leave))
	r.Get("/v1/rooms/{room}/draw", a.handle(a.drawStatus))
	r.Get("/v1/rooms/{room}/draw/entrants", a.handle(a.entrants))
	r.Get("/v1/rooms/{room}/draw/proof", a.handle(a.proof))
	r.Post("/v1/orders", a.handle(a.placeOrder))
	r.Get("/v1/orders/{id}", a.handle(a.order))

	r.Get("/livez", a.live)
	r.Get("/readyz", a.ready)
	r.Get("/.well-known/jwks.json", a.jwks)
	r.Method(http.MethodGet, "/openapi.yaml", spec.Handler())
	r.Method(http.MethodGet, "/problems/{slug}", problem.Handler())
	r.Method(http.MethodGet, "/docs", docs)
	r.Method(http.MethodGet, "/docs/{file}", docsFiles)
	return r
}

// headers are those of every answer. A handler whose answer may be kept says so
// itself.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
