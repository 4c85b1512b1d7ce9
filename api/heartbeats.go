package api

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Hearer notes that members are still there, 500 at most per call; with none,
// that the room can hear.
type Hearer interface {
	Heard(ctx context.Context, room string, members []string) error
}

// heartbeats gathers whom this process has heard near the front, so that a
// poll writes nothing. They are sent every second, and once more at the end.
type heartbeats struct {
	hearer Hearer
	mu     sync.Mutex
	rooms  map[string]map[string]struct{}

	flushes int // of run alone
}

const (
	heardEvery   = time.Second
	heardPerCall = 500
	// heardUnasked is every how many flushes a room is told that it can hear which
	// nobody has asked this process about: within the 10 s after which silence no
	// longer counts, or those who have left for good would never be forgotten.
	heardUnasked = 5
)

func newHeartbeats(h Hearer) *heartbeats {
	return &heartbeats{hearer: h, rooms: map[string]map[string]struct{}{}}
}

func (h *heartbeats) note(room, member string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	members := h.rooms[room]
	if members == nil {
		members = map[string]struct{}{}
		h.rooms[room] = members
	}
	members[member] = struct{}{}
}

// run sends what was gathered until ctx ends. Every room of the list gets calls,
// also empty ones: they say that the room can hear.
func (h *heartbeats) run(ctx context.Context, list *rooms, log *slog.Logger) error {
	tick := time.NewTicker(heardEvery)
	defer tick.Stop()
	down := false // Postgres: said once
	for {
		err := list.refresh(ctx, heardEvery/2)
		if err != nil && !down && ctx.Err() == nil {
			log.WarnContext(ctx, "rooms can't be listed, the last known are served", "err", err)
		}
		down = err != nil
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			h.flush(last, list, log)
			return nil
		case <-tick.C:
			h.flush(ctx, list, log)
		}
	}
}

// flush never fails a poll: what could not be sent is dropped, and the next
// poll says it again.
func (h *heartbeats) flush(ctx context.Context, list *rooms, log *slog.Logger) {
	h.flushes++
	h.mu.Lock()
	gathered := h.rooms
	h.rooms = map[string]map[string]struct{}{}
	h.mu.Unlock()
	for name, e := range *list.names.Load() {
		asked := e.view.Load() != nil || gathered[name] != nil
		if !asked && h.flushes%heardUnasked != 0 {
			continue
		}
		if err := h.send(ctx, name, gathered[name]); err != nil {
			log.WarnContext(ctx, "heartbeats not written", "room", name, "err", err)
		}
	}
}

func (h *heartbeats) send(ctx context.Context, room string, members map[string]struct{}) error {
	batch := make([]string, 0, min(len(members), heardPerCall))
	for m := range members {
		if batch = append(batch, m); len(batch) == heardPerCall {
			if err := h.hearer.Heard(ctx, room, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return h.hearer.Heard(ctx, room, batch)
}
