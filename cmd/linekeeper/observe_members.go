package main

import (
	"context"

	"github.com/linekeeper/linekeeper/internal/telemetry"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// evicted tells of a place that an operator has taken away, as the scheduler tells
// of those whom it refuses.
func (s *server) evicted(ctx context.Context, name string, who room.Subject) {
	s.metrics.Departed(name, "evicted", 1)
	s.moves.Log(ctx, telemetry.Transition{Member: who.Member, Room: name, Lane: who.Lane, From: who.State,
		To: string(queue.OutcomeEvicted), Score: who.Score})
}
