package main

import (
	"context"
	"errors"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
)

// sink ends the grants of orders that have been placed.
type sink struct{ line *redisstore.Store }

// Deliver consumes the grants of one room's events in one call. Only damage to
// the room's data is the events' own fault; a Redis that is away, full,
// changing hands or locked is not.
func (s sink) Deliver(ctx context.Context, room string, events []outbox.Event) error {
	spent := make([]queue.Spent, len(events))
	for i, e := range events {
		c, err := e.Consume()
		if err != nil {
			return err
		}
		spent[i] = queue.Spent{Member: c.Member, Grant: c.Grant, Order: e.OrderID}
	}
	_, err := s.line.Consume(ctx, room, spent)
	if errors.Is(err, queue.ErrDamaged) {
		return outbox.Poison(err)
	}
	return err
}

// outboxAdmin shows the outbox to operators, without its payloads.
type outboxAdmin struct{ *outbox.Admin }

// List implements admin.Outbox.
func (o outboxAdmin) List(ctx context.Context, status string, limit int, after int64) ([]admin.Entry, error) {
	rows, err := o.Admin.List(ctx, outbox.Status(status), limit, after)
	out := make([]admin.Entry, len(rows))
	for i, r := range rows {
		out[i] = admin.Entry{
			ID: r.ID, OrderID: r.OrderID, Kind: r.Kind, Room: r.Room, Status: string(r.Status), Attempts: r.Attempts,
			NextAttemptAt: r.NextAttempt, LastError: r.LastError, CreatedAt: r.CreatedAt,
		}
		if !r.DoneAt.IsZero() {
			out[i].DoneAt = &r.DoneAt
		}
	}
	return out, err
}

// Requeue implements admin.Outbox.
func (o outboxAdmin) Requeue(ctx context.Context, id int64) error {
	err := o.Admin.Requeue(ctx, id)
	if errors.Is(err, outbox.ErrNotDead) {
		return admin.ErrNotDead
	}
	return err
}
