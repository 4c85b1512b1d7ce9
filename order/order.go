// Package order places orders for members whom the waiting line has let
// through.
//
// # Promises
//
// One grant pays for one order at most. Redis makes that fast, by letting one
// attempt at a time claim a grant; Postgres makes it true, with a unique index
// on the grant that an order was placed with. So nothing that Redis loses, and
// no lease that runs out too early, makes a second order.
//
// An attempt ends in one of three ways, and the claim follows:
//
//	placed             the outbox event spends the grant after COMMIT
//	definitely failed  nothing was written and nothing will be: the claim is released
//	unknown            COMMIT was sent and no answer tells: the claim is kept
//
// A claim that was kept ends with its lease, and the retry finds out: the
// grant, in its entry token, is itself an idempotency key.
//
// "There is no order" is decided by what decides orders. When a grant can't be
// claimed any more and no order is found, a void row takes the place that the
// order would have, so that a transaction still on its way meets it and fails.
//
// # Not here
//
// The package imports no driver: pgstore keeps orders, redisstore keeps grants.
// It does not verify entry tokens, does not compare the member with an identity
// shown beside the token, and does not spend the grant.
package order

import (
	"context"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// Item is a product and how many of it.
type Item struct {
	SKU      string
	Quantity int
}

// Order is something that a member has bought.
type Order struct {
	ID             string // UUIDv7; the claim of its attempt has the same id
	Grant          string // that it was placed with; no other order has it
	Room           string
	Sale           int64
	Generation     int64
	Member         string
	Once           bool        // the room allowed one order per member and sale
	Fingerprint    Fingerprint // of room and items
	IdempotencyKey string      // empty if none was sent
	Items          []Item      // in the order of their SKUs, each SKU once
	TotalCents     int64       // by the prices of the moment it was placed
	Currency       string      // ISO 4217
	CreatedAt      time.Time   // by the clock of Postgres
	Terms          *Terms      // of an order for which no claim was asked; else nil. They are not kept
}

// Terms are what a claim would have seen to, and a Store has to where none was asked.
type Terms struct {
	Expiry     time.Time // of the grant; compared with the clock of Postgres
	Generation int64     // that the room must have; 0: any of the sale
}

// Request is one wish to place an order.
type Request struct {
	Grant          queue.Grant // from an entry token whose signature is verified
	Items          []Item      // in any order, a SKU may repeat
	IdempotencyKey string      // optional; its scope is the room and the member
	Once           bool        // the room's oneOrderPerMember
	Lease          time.Duration
	// Unclaimed says that no claim is to be had: Redis is out of reach and the room
	// passes people all the same, or it knows nothing of this grant. What the claim
	// would have seen to is then checked in the transaction.
	Unclaimed bool
	// RoomGone says that the room has been deleted: nothing new is ordered, and
	// an order that was placed is found.
	RoomGone bool
	// Barred says the same of a member whom an operator keeps out. The grant, if it
	// has paid for nothing, never will.
	Barred bool
}

// Placed is the answer to a Request: a new order, or the one that an earlier
// attempt has placed.
type Placed struct {
	Order
	Replayed bool
}

// Grants is what placing an order asks of the waiting line.
type Grants interface {
	// Claim lets the attempt named claim use g for the time of lease, or says
	// queue.ErrBusy, queue.ErrGone, queue.ErrNoRoom or queue.ErrLimit. Claiming
	// again under one name succeeds, so an unknown answer, queue.ErrUnavailable,
	// can be asked again.
	Claim(ctx context.Context, g queue.Grant, claim string, lease time.Duration) error
	// Release lets go of g if claim still holds it, and of nothing else.
	Release(ctx context.Context, g queue.Grant, claim string) error
}

// Store keeps orders.
type Store interface {
	// Create writes o, takes its stock and appends its outbox event, all or
	// nothing, and returns it with total, currency and time. An order that is
	// there already for o's grant, or for o's Idempotency-Key, is returned
	// instead, whatever its content; ErrTokenInvalid says that the grant is
	// void, and ErrLapsed that o's Terms do not hold. An error that is ErrOutcomeUnknown says that the order may be there,
	// or come; any other that it is not and never will be.
	Create(ctx context.Context, o Order) (Order, error)
	// ByGrant returns the order placed with a grant, ErrNotFound if there is
	// none yet, or ErrTokenInvalid if there never will be.
	ByGrant(ctx context.Context, grant string) (Order, error)
	// Void settles that there is no order for g and never will be, and says so
	// with ErrTokenInvalid. If there is one after all, it is returned. Any other
	// error leaves both open.
	Void(ctx context.Context, g queue.Grant) (Order, error)
}
