//go:build faults

package history

import (
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/order"
	"github.com/linekeeper/linekeeper/queue"
)

func (w *walk) order(m string) {
	g, has := w.tokens[m]
	if !has {
		return
	}
	if w.chance(15) { // an attempt that dies
		_ = w.store.Claim(w.ctx, g, uuid.NewString(), w.life.Rules.ClaimLease)
		return
	}
	n, key := 1+w.dice.IntN(2), ""
	if w.chance(40) {
		key = m + strconv.Itoa(w.dice.IntN(3))
	}
	e := Event{F: Order, Member: m, Client: m, Grant: g.ID, Key: key, Content: Content([]Item{{"s", int64(n)}}), Rank: -1, Total: -1}
	op := w.events.Invoke(e)
	p, err := w.place.Place(w.ctx, order.Request{Grant: g, Items: []order.Item{{SKU: "s", Quantity: n}}, IdempotencyKey: key, Lease: w.life.Rules.ClaimLease})
	e.Type, e.OrderID, e.Replayed, e.Code = OK, p.ID, p.Replayed, "201"
	switch {
	case errors.Is(err, order.ErrOutcomeUnknown):
		e.Type = Unknown
	case errors.Is(err, order.ErrTokenInvalid):
		e.Type, e.Code = Fail, "entry-token-invalid"
	case errors.Is(err, order.ErrTokenSpent):
		e.Type, e.Code = Fail, "entry-token-consumed"
	case errors.Is(err, order.ErrIdempotencyMismatch):
		e.Type, e.Code = Fail, "idempotency-mismatch"
	case err != nil:
		e.Type, e.Code = Fail, err.Error()
	}
	w.events.End(op, e)
	if err == nil && w.chance(50) {
		w.deliver()
	}
}

// deliver does what the relay does.
func (w *walk) deliver() {
	f, err := ReadFinal(w.ctx, w.rdb, w.db, w.prefix, "r")
	require.NoError(w, err)
	var spent []queue.Spent
	for _, o := range f.Outbox {
		if o.Status == "pending" {
			spent = append(spent, queue.Spent{Member: o.Member, Grant: o.Grant, Order: o.Order})
		}
	}
	if len(spent) == 0 {
		return
	}
	_, err = w.store.Consume(w.ctx, "r", spent)
	require.NoError(w, err)
	for _, s := range spent {
		w.sql(`UPDATE outbox SET status = 'done' WHERE order_id = $1`, s.Order)
	}
}

// pass lets time go by, and sometimes more than that.
func (w *walk) pass() {
	w.clock = w.clock.Add(time.Duration(w.dice.Int64N(int64(700 * time.Millisecond))))
	switch n := w.dice.IntN(1000); {
	case n < 3:
		w.clock = w.clock.Add(time.Hour)
	case n < 6:
		w.clock = w.clock.Add(-time.Hour)
		w.facts.TimeSteps++
	case n < 9:
		w.clock = w.clock.Add(-30 * time.Second)
		w.facts.TimeSteps++ // two of them may be one of a minute
	case n < 15:
		w.clock = w.clock.Add(20 * time.Second)
	case n < 20:
		w.life.Version++
		w.life.Rules.Batch, w.life.Rules.Capacity = 1+w.dice.IntN(8), w.dice.IntN(15)
		w.life.Rules.Interval = time.Duration(1+w.dice.IntN(3)) * time.Second
		require.NoError(w, w.store.Update(w.ctx, w.life))
	case n < 22:
		w.life.Generation++
		w.facts.Losses = append(w.facts.Losses, Loss{Kind: Flush, Mono: Now()})
		w.begin()
	case n < 24:
		w.loseAll()
	case n < 27:
		w.loseSome()
	case n < 37 || w.kept == nil:
		w.kept = map[string]string{}
		for _, k := range w.keys() {
			w.kept[k] = w.rdb.Dump(w.ctx, k).Val()
		}
	}
}

// keys are all of the room, its journal too.
func (w *walk) keys() []string { return w.rdb.Keys(w.ctx, w.prefix+":{r}:*").Val() }

// begin begins the generation that w.life names.
func (w *walk) begin() {
	require.NoError(w, w.store.Create(w.ctx, w.life))
	for _, s := range w.steps {
		s.Generation = w.life.Generation
	}
}

// loseAll is a Redis that comes back empty, and a leader that begins anew.
func (w *walk) loseAll() {
	require.NoError(w, w.collector.Collect(w.ctx))
	state := w.rdb.HGetAll(w.ctx, w.prefix+":{r}:state").Val()
	w.rdb.Del(w.ctx, w.keys()...)
	w.facts.Losses = append(w.facts.Losses, Loss{Kind: TotalLoss, Mono: Now()})
	w.life.Generation++
	floor, _ := strconv.ParseInt(state["watermark0"], 10, 64)
	w.life.Floors[0] = max(w.life.Floors[0], floor)
	w.life.LastScore, _ = strconv.ParseInt(state["last"], 10, 64)
	w.begin()
	require.NoError(w, w.collector.Collect(w.ctx))
}

// loseSome takes the room back to what it was some time ago.
func (w *walk) loseSome() {
	if w.kept == nil || w.rdb.HGet(w.ctx, w.prefix+":{r}:conf", "generation").Val() == "" {
		return
	}
	require.NoError(w, w.collector.Collect(w.ctx))
	w.rdb.Del(w.ctx, w.keys()...)
	for k, v := range w.kept {
		require.NoError(w, w.rdb.RestoreReplace(w.ctx, k, 0, v).Err())
	}
	w.facts.Losses = append(w.facts.Losses, Loss{Kind: PartialLoss, Mono: Now()})
	require.NoError(w, w.collector.Collect(w.ctx))
	w.begin() // of no effect, unless the generation is lost too
	if w.life.Generation > w.generation() {
		w.Fatal("a generation begun has not begun")
	}
}

func (w *walk) generation() int64 {
	n, _ := w.rdb.HGet(w.ctx, w.prefix+":{r}:conf", "generation").Int64()
	return n
}
