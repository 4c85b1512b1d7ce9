// Package outbox carries what a transaction has decided to where it must have
// its effect, however often something crashes between.
//
// # Promises
//
// An event appended in a transaction exists exactly if the transaction
// committed, once per order and kind. It is delivered at least once, and ends
// done or visibly dead:
//
//	pending --delivered--> done --retention--> deleted
//	   |  ^
//	   |  +-- not delivered: again at next_attempt_at
//	   +--- poison, too often --> dead --requeue--> pending
//
// A transport error, for instance a Redis that is away, never makes an event
// dead, however long it lasts. An event that is itself at fault is poison: it
// is told apart from those delivered with it, and dies alone.
//
// # Not here
//
// Events have no order among each other: a relay takes whatever is due, never
// what has a higher id than the last, because ids become visible in the order
// of COMMIT. Delivery is at least once, so a Sink has to bear repetition. Time
// is the clock of Postgres only.
package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// KindConsume says that an order has used up its grant.
const KindConsume = "consume"

// Event is one thing to be told to a Sink.
type Event struct {
	OrderID string
	Kind    string // at most one event per order and kind
	Room    string
	Payload []byte // JSON
}

// Consume is the payload of a KindConsume event.
type Consume struct {
	Member string `json:"member"`
	Grant  string `json:"grant"`
}

// NewConsume is the event that spends the grant an order was placed with.
func NewConsume(order, room string, c Consume) (Event, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return Event{}, fmt.Errorf("consume event of order %s: %w", order, err)
	}
	return Event{OrderID: order, Kind: KindConsume, Room: room, Payload: payload}, nil
}

// Consume decodes the payload of a KindConsume event. An error is ErrPoison:
// no repetition will mend it.
func (e Event) Consume() (Consume, error) {
	var c Consume
	if e.Kind != KindConsume {
		return c, Poison(fmt.Errorf("event of order %s is of kind %q", e.OrderID, e.Kind))
	}
	if err := json.Unmarshal(e.Payload, &c); err != nil {
		return c, Poison(fmt.Errorf("consume event of order %s: %w", e.OrderID, err))
	}
	if c.Member == "" || c.Grant == "" {
		return c, Poison(fmt.Errorf("consume event of order %s names no member or no grant", e.OrderID))
	}
	return c, nil
}

// ErrPoison marks an error as the fault of the event, not of the way to the
// sink.
var ErrPoison = errors.New("outbox: poison event")

// Poison returns err as ErrPoison.
func Poison(err error) error { return fmt.Errorf("%w: %w", ErrPoison, err) }

// Sink is where events go.
type Sink interface {
	// Deliver takes 1 to 500 events of one room. It may be called again with any
	// of them. An ErrPoison says that at least one is itself at fault, and they
	// are tried one by one; any other error says that none is known to be, and
	// all come again later.
	Deliver(ctx context.Context, room string, events []Event) error
}

// Observer is told what a Relay does, for metrics. Fields may be nil.
type Observer struct {
	Delivered func(events int)
	Failed    func(events int) // come again later, or dead
	Died      func(events int)
}

func (o Observer) delivered(n int) { tell(o.Delivered, n) }
func (o Observer) failed(n int)    { tell(o.Failed, n) }
func (o Observer) died(n int)      { tell(o.Died, n) }

func tell(f func(int), n int) {
	if f != nil && n > 0 {
		f(n)
	}
}

const insertEvent = `INSERT INTO outbox (order_id, kind, room, payload) VALUES ($1, $2, $3, $4)`

// Append adds e in the transaction of the caller: it is there if that commits,
// and not otherwise.
func Append(ctx context.Context, tx pgx.Tx, e Event) error {
	if _, err := tx.Exec(ctx, insertEvent, e.OrderID, e.Kind, e.Room, e.Payload); err != nil {
		return fmt.Errorf("append %s event of order %s: %w", e.Kind, e.OrderID, err)
	}
	return nil
}

// Queue is Append for a caller who sends the statements of a transaction in one
// batch, and reads the answers.
func Queue(b *pgx.Batch, e Event) {
	b.Queue(insertEvent, e.OrderID, e.Kind, e.Room, e.Payload)
}

const insertEvents = `
INSERT INTO outbox (order_id, kind, room, payload)
SELECT order_id, kind, room, payload::jsonb
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS e (order_id, kind, room, payload)`

// QueueAll is Queue for many events, in one statement.
func QueueAll(b *pgx.Batch, events []Event) {
	n := len(events)
	orders, kinds, rooms, payloads := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, e := range events {
		orders[i], kinds[i], rooms[i], payloads[i] = e.OrderID, e.Kind, e.Room, string(e.Payload)
	}
	b.Queue(insertEvents, orders, kinds, rooms, payloads)
}

// Status is where an event stands.
type Status string

// The statuses. The package comment has the arrows between them.
const (
	Pending Status = "pending"
	Done    Status = "done"
	Dead    Status = "dead"
)

// Row is an event with its history, for operators.
type Row struct {
	Event
	ID          int64
	Status      Status
	Attempts    int // deliveries begun
	Faults      int // of these, failed as poison
	NextAttempt time.Time
	LastError   string
	CreatedAt   time.Time
	DoneAt      time.Time // zero until done
}

// Stats is the state of the outbox as a whole.
type Stats struct {
	Pending   int64
	Dead      int64
	OldestAge time.Duration // of the oldest pending event; 0 if there is none
}
