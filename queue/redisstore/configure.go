package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// Create begins the generation of life in Redis, on an empty line. Where that
// generation, or a newer one, is there already it changes nothing. It must be
// called only with a number just won in Postgres.
func (s *Store) Create(ctx context.Context, life queue.Life) error {
	_, err := s.run(ctx, createScript, life.Room, configureArgs("create", life)...)
	return err
}

// Update puts the settings of life in force, unless newer ones are. It returns
// queue.ErrNoRoom or ErrGeneration where there is nothing to update: it never
// begins a room.
func (s *Store) Update(ctx context.Context, life queue.Life) error {
	_, err := s.run(ctx, updateScript, life.Room, configureArgs("update", life)...)
	return err
}

// Drop removes all that Redis has of a deleted room, unless a newer generation
// has begun: then the room has been made again.
func (s *Store) Drop(ctx context.Context, life queue.Life) error {
	_, err := s.run(ctx, updateScript, life.Room, "drop", life.Generation, life.Version, life.LastScore)
	return err
}

func configureArgs(mode string, life queue.Life) []any {
	args := []any{mode, life.Generation, life.Version, life.LastScore}
	fields := confFields(life)
	if mode == "create" {
		fields = append(fields, floorFields(life)...)
	}
	for _, f := range fields {
		args = append(args, f.name, f.value)
	}
	return args
}

// floorFields are fixed when a generation begins: unlike a watermark, a floor
// must not move while people come back. Whether the sale's draw is listed is known
// from before as well.
func floorFields(life queue.Life) []confField {
	out := []confField{{"listed", flag(life.Listed)}}
	for lane, floor := range life.Floors {
		out = append(out, confField{"floor" + strconv.Itoa(lane), itoa(floor)})
	}
	return out
}

type confField struct{ name, value string }

// confFields is a room's conf hash: what the scripts obey, in microseconds,
// and the settings as the operator wrote them.
func confFields(life queue.Life) []confField {
	r := life.Rules
	out := []confField{
		{"sale", itoa(life.Sale)},
		{"restorable_from", itoa(life.RestorableFrom)},
		{"settings", string(life.Settings)},
		{"batch", itoa(r.Batch)},
		{"interval", micros(r.Interval)},
		{"token_ttl", micros(r.TokenTTL)},
		{"pickup_ttl", micros(r.PickupTTL)},
		{"claim_lease", micros(r.ClaimLease)},
		{"processing_timeout", micros(r.ProcessingTimeout)},
		{"away_after", micros(r.AwayAfter)},
		{"forget_after", micros(r.ForgetAfter)},
		{"done_ttl", micros(r.DoneTTL)},
		{"settle", micros(r.Settle)},
		{"capacity", itoa(r.Capacity)},
		{"max_in_flight", itoa(r.MaxInFlight)},
		{"max_waiting", itoa(r.MaxWaiting)},
		{"opens_at", unixMicro(r.OpensAt)},
		{"admits_at", unixMicro(r.AdmitsAt)},
		{"closes_at", unixMicro(r.ClosesAt)},
		{"paused", flag(r.Paused)},
		{"draining", flag(r.Draining)},
		{"one_order", flag(r.OneOrder)},
		{"adaptive", flag(r.Adaptive)},
		{"draw", flag(r.Draw)},
		{"lottery", flag(r.Lottery)},
		{"off", flag(r.Off)},
		{"direct", flag(r.Direct)},
		{"eager", flag(r.Eager)},
		{"released", itoa(life.Released)},
		{"lanes", itoa(len(r.Weights))},
		{"one_line", flag(r.OneLine)},
		{"max_wait", micros(r.MaxWait)},
		{"stock", r.Stock},
		{"overbook", itoa(r.Overbook)},
	}
	for lane, weight := range r.Weights {
		n := strconv.Itoa(lane)
		out = append(out, confField{"weight" + n, itoa(weight)}, confField{"boost" + n, micros(r.Boost(lane))})
	}
	return out
}

func itoa[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }
func micros(d time.Duration) string  { return itoa(d.Microseconds()) }
func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// unixMicro is 0 for the zero time: no such limit.
func unixMicro(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return itoa(t.UnixMicro())
}
