// Package admin is the operators' API: rooms and their settings, the sale of a
// room, products, the outbox and the audit list, on a listener of its own.
//
// It promises that every call shows a bearer token whose role covers it, that
// every change has an audit row with who, from where, before and after, that a
// change of settings made from an old version is refused, and that what can't
// be undone must be confirmed with the room's name.
//
//	viewer  < operator                               < admin
//	GET       PATCH, pause, resume, drain, off,        POST rooms, flush, DELETE rooms,
//	          release, evict, block, unblock,          profiles
//	          PUT products, codes, requeue
//
// It has no sessions and no cookies, so there is nothing for a foreign page to
// ride on; cross-origin requests of browsers are refused all the same. It takes
// places away and gives none, and never shows an entry token. Members are in the
// audit list and in no log.
package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/ratelimit"
	"github.com/linekeeper/linekeeper/room"
)

// Rooms keeps rooms and their settings. Errors are those of package room.
type Rooms interface {
	List(ctx context.Context) ([]room.Room, error)
	Get(ctx context.Context, name string) (room.Room, error)
	Create(ctx context.Context, name string, settings room.Settings, by room.Actor) (room.Room, error)
	// Update gives the room what change makes of its settings. ifVersion 0
	// stands for any; another version than that in force is room.ErrVersion.
	Update(ctx context.Context, name string, ifVersion int64, change func(room.Settings) (room.Settings, error), by room.Actor) (room.Room, error)
	// Release lets count of those in line go beyond the rate. It treats ifVersion
	// as Update does, and makes a new version.
	Release(ctx context.Context, name string, count int, ifVersion int64, by room.Actor) (room.Room, error)
}

// Sales ends the sale of a room, with or without the room.
type Sales interface {
	Flush(ctx context.Context, name string, by room.Actor) (room.Room, error)
	Delete(ctx context.Context, name string, by room.Actor) error
}

// Exclusions keeps members out of rooms. Doing so twice is doing it once.
type Exclusions interface {
	KeptOut(ctx context.Context, name, member string) (room.Exclusion, error)
	// Evict is for the sale that runs, Block for all. Neither ends a place.
	Evict(ctx context.Context, name string, who room.Subject, by room.Actor) error
	Block(ctx context.Context, name string, who room.Subject, by room.Actor) error
	// Unblock ends a block and evictions.
	Unblock(ctx context.Context, name string, who room.Subject, by room.Actor) error
}

// Products keeps what is sold.
type Products interface {
	Product(ctx context.Context, sku string) (room.Product, error)
	// PutProduct treats ifVersion as Rooms.Update does.
	PutProduct(ctx context.Context, p room.Product, ifVersion int64, by room.Actor) (put room.Product, created bool, err error)
}

// Audit is the list of changes.
type Audit interface {
	// Changes returns up to limit rows with ids below before (0: from the newest
	// on), newest first, of one target or, with an empty target, of all.
	Changes(ctx context.Context, target string, before int64, limit int) ([]room.Change, error)
	// Record adds a row for a change that another store makes.
	Record(ctx context.Context, by room.Actor, target string, before, after any) error
}

// Store is what Postgres does for operators; room/pgstore has all of it.
type Store interface {
	Rooms
	Sales
	Exclusions
	Products
	Codes
	Audit
}

// Lines is rooms as Redis has them.
type Lines interface {
	// Snapshot returns queue.ErrNoRoom for a room that was never begun.
	Snapshot(ctx context.Context, name string) (queue.Snapshot, error)
	// Look says where a member is and changes nothing, or queue.ErrNoRoom.
	Look(ctx context.Context, name, member string) (queue.Sight, error)
	// Leave takes a member out of the place with that score, 0 for any. It returns
	// queue.ErrBusy while an order is running.
	Leave(ctx context.Context, name, member string, score int64, outcome queue.Outcome) (bool, error)
}

// ErrNotDead is what Outbox.Requeue returns where there is nothing to requeue.
var ErrNotDead = errors.New("admin: no dead outbox entry of that id")

// Outbox shows the events that orders left behind.
type Outbox interface {
	// List returns up to limit entries of a status (pending, done, dead) with ids
	// above after, lowest id first.
	List(ctx context.Context, status string, limit int, after int64) ([]Entry, error)
	// Requeue gives a dead entry all its attempts again, or returns ErrNotDead.
	Requeue(ctx context.Context, id int64) error
}

// Entry is one outbox event. Its payload is left out: it names members and
// grants.
type Entry struct {
	ID            int64      `json:"id"`
	OrderID       string     `json:"orderId"`
	Kind          string     `json:"kind"`
	Room          string     `json:"room"`
	Status        string     `json:"status"`
	Attempts      int        `json:"attempts"`
	NextAttemptAt time.Time  `json:"nextAttemptAt"`
	LastError     string     `json:"lastError"`
	CreatedAt     time.Time  `json:"createdAt"`
	DoneAt        *time.Time `json:"doneAt"` // nil until it is done
}

// Options are the parts that the API is made of; all are needed, but for those
// that say otherwise.
type Options struct {
	Store  Store
	Lines  Lines
	Outbox Outbox
	Tokens *Tokens
	// Operators knows tokens of others; nil: there are none.
	Operators Operators
	Log       *slog.Logger
	// Trusted are the proxies that may say where a request comes from.
	Trusted clientip.Trusted
	// Failed is told of each request without a credential that is known: unknown, or
	// limited where its address has had too many of them. It may be nil.
	Failed func(result string)
	// Evicted is told of each member who has lost a place or a grant by a call, and
	// where it was. It may be nil.
	Evicted func(ctx context.Context, name string, who room.Subject)
	// HashMember is what stands for a member in logs; nil: nothing does.
	HashMember func(member string) string
	Metrics    http.Handler                      // nil: no /metrics. It asks for no token: scrapers have none
	Use        []func(http.Handler) http.Handler // may be empty; inside the router, so that they see route patterns
}

// server has the handlers. Between calls it keeps nothing but who has failed.
type server struct {
	Options
	failures *ratelimit.Local[string]
}

// callTimeout is above any lock wait that Postgres allows, and bounds what an
// operator waits for a database that does not answer.
const callTimeout = 10 * time.Second

// New makes the handler of the admin listener.
func New(o Options) http.Handler {
	s := &server{o, newFailures()}
	mux := chi.NewRouter()
	// The id first: every later refusal names it.
	mux.Use(problem.RequestIDs, noStore, sameOrigin)
	mux.Use(o.Use...)
	problem.Unrouted(mux)
	if o.Metrics != nil {
		mux.Method(http.MethodGet, "/metrics", o.Metrics)
	}
	mux.Route("/admin/v1", s.routes)
	return mux
}

// routes has every call beside the role that it asks for.
func (s *server) routes(r chi.Router) {
	// Who asks is settled before the router says what exists.
	r.Use(s.authenticate)
	r.With(need(Admin)).Get("/profiles/{profile}", s.handle(s.profile)) // takes as long as it is told to
	r = r.With(deadline)
	view, operate, administer := r.With(need(Viewer)), r.With(need(Operator)), r.With(need(Admin))

	view.Get("/rooms", s.handle(s.listRooms))
	administer.Post("/rooms", s.handle(s.createRoom))
	view.Get("/rooms/{room}", s.handle(s.getRoom))
	operate.Patch("/rooms/{room}", s.handle(s.patchRoom))
	administer.Delete("/rooms/{room}", s.handle(s.deleteRoom))

	operate.Post("/rooms/{room}/pause", s.handle(s.turn("room.pause", pause)))
	operate.Post("/rooms/{room}/resume", s.handle(s.turn("room.resume", resume)))
	operate.Post("/rooms/{room}/drain", s.handle(s.turn("room.drain", drain)))
	operate.Post("/rooms/{room}/off", s.handle(s.turn("room.off", off)))
	operate.Post("/rooms/{room}/release", s.handle(s.releaseByHand))
	administer.Post("/rooms/{room}/flush", s.handle(s.flushRoom))
	view.Get("/rooms/{room}/snapshot", s.handle(s.snapshot))

	view.Get("/rooms/{room}/members/{member}", s.handle(s.getMember))
	operate.Delete("/rooms/{room}/members/{member}", s.handle(s.evictMember))
	operate.Put("/rooms/{room}/members/{member}/block", s.handle(s.blockMember))
	operate.Delete("/rooms/{room}/members/{member}/block", s.handle(s.unblockMember))
	view.Get("/rooms/{room}/codes", s.handle(s.listCodes))
	operate.Post("/rooms/{room}/codes", s.handle(s.makeCodes))
	operate.Post("/rooms/{room}/codes/revoke", s.handle(s.revokeCodes))

	view.Get("/products/{sku}", s.handle(s.getProduct))
	operate.Put("/products/{sku}", s.handle(s.putProduct))
	view.Get("/outbox", s.handle(s.listOutbox))
	operate.Post("/outbox/{id}/requeue", s.handle(s.requeue))
	view.Get("/audit", s.handle(s.listChanges))
}

// deadline bounds a call as a whole: a driver alone might wait for a
// connection for ever.
func deadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// noStore keeps settings and problems out of every cache between here and the
// operator.
func noStore(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses what a page of another site makes a browser send.
func sameOrigin(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, problem.New("forbidden").WithDetail("Pages of other origins may not use this API."))
	}))
	return protection.Handler(next)
}
