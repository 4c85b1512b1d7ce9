package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
)

// The whole way on two replicas, each step on another one, with every log
// turned on: what a shopper and an operator must keep secret is nowhere in it.
func TestTheWholeWayLeavesAnOrderAndNoSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	loud := []string{"LINEKEEPER_LOG_LEVEL=debug", "LINEKEEPER_LOG_TRANSITIONS=true"}
	a, b := w.start(loud...), w.start(loud...)
	w.open(settings{"paused": true})
	ann, bob := w.shopper(), w.shopper()

	p := ann.enter(a).is(201).position()
	require.Equal(t, queue.Waiting, p.Status)
	require.EqualValues(t, 0, *p.Rank, "the first has nobody ahead")
	require.EqualValues(t, 1, *p.CurrentTotalWaitingCount)
	require.Equal(t, queue.Paused, p.RoomState)
	require.Nil(t, p.EntryToken)
	require.Nil(t, p.EstimatedWaitSeconds, "nobody knows how long a pause is")
	require.EqualValues(t, 1, *bob.enter(b).is(201).position().Rank)
	again := ann.enter(b).is(200).position()
	require.Equal(t, *p.Score, *again.Score, "entering again must not change the place")

	w.do("resume")
	ready := ann.until(b, queue.Ready)
	require.Nil(t, ready.Rank)
	for _, process := range []*process{a, b, a, b} {
		p := ann.poll(process).is(200).position()
		require.Equal(t, *ready.EntryToken, *p.EntryToken, "one grant, one token, on every process")
		require.Equal(t, *ready.EntryTokenExpiresAt, *p.EntryTokenExpiresAt, "polling must not lengthen it")
	}

	made := ann.order(a, "demo", 2).is(201)
	o := made.order()
	require.Equal(t, "/v1/orders/"+o.ID, made.header.Get("Location"))
	require.Equal(t, []spec.Item{{SKU: "demo", Quantity: 2}}, o.Items)
	require.EqualValues(t, 3980, o.TotalCents)
	done := ann.until(b, queue.Consumed)
	require.Equal(t, o.ID, *done.OrderID)
	require.Nil(t, done.EntryToken, "a spent token is not shown")

	for _, process := range []*process{a, b} {
		require.Equal(t, o, ann.orderByID(process, o.ID).is(200).order())
		bob.orderByID(process, o.ID).is(404, "order-not-found")
		w.shopper().orderByID(process, o.ID).is(404, "order-not-found")
	}
	byToken := *ann
	byToken.ticket = ""
	w.ask("GET", a.public+"/v1/orders/"+o.ID, map[string][]string{"X-Entry-Token": {ann.token}}, "").is(200)

	_, key, _ := strings.Cut(w.keys, ":")
	w.keptSecret(a, b, map[string]string{
		"ticket": ann.ticket, "another ticket": bob.ticket, "entry token": ann.token, "admin token": w.adminToken,
		"signing key": key, "member id": o.Member, "signature": ann.token[strings.LastIndex(ann.token, ".")+1:],
	})
}

// keptSecret looks for secrets in all that two processes have said and show.
func (w *world) keptSecret(a, b *process, secrets map[string]string) {
	w.t.Helper()
	for _, p := range []*process{a, b} {
		metrics := w.ask("GET", p.admin+"/metrics", nil, "").is(200)
		require.Contains(w.t, string(metrics.body), "linekeeper_", "these are no metrics of ours")
		for what, secret := range secrets {
			require.NotEmpty(w.t, secret, what)
			if strings.Contains(p.said(), secret) {
				w.t.Errorf("a process has logged the %s", what)
			}
			if strings.Contains(string(metrics.body), secret) {
				w.t.Errorf("/metrics shows the %s", what)
			}
		}
	}
	moves := append(a.logged("member changed state"), b.logged("member changed state")...)
	require.NotEmpty(w.t, moves, "the log of transitions is off, so this test shows nothing")
}
