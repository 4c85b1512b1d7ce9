package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// With the lock one replica ticks; without it both do, and must agree.
func TestBatchSizeActsWithinASecondOnBothReplicas(t *testing.T) {
	t.Parallel()
	for name, ttl := range map[string]string{"lock on": "2s", "lock off": "0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a, b := w.start("LINEKEEPER_LEADER_TTL="+ttl), w.start("LINEKEEPER_LEADER_TTL="+ttl)
			w.open(settings{"paused": true, "batchSize": 1, "pickupTtlSeconds": 60})
			w.line(400, a, b)
			w.do("resume")
			w.untilSnapshot("the line moves", func(s snapshot) bool { return s.admitted() >= 2 })

			w.changeBatch(a, b, 50)
			admitted, elapsed := w.measure(b)
			require.GreaterOrEqual(t, admitted, 50.0, "the higher rate is not in force")
			require.LessOrEqual(t, admitted, 50*elapsed+50, "more than one batch per interval over both replicas")

			w.changeBatch(b, a, 1)
			admitted, elapsed = w.measure(a)
			require.LessOrEqual(t, admitted, elapsed+1, "the lower rate is not in force everywhere")
			w.conserved(w.snapshot())
		})
	}
}

// changeBatch changes the batch size at one process and waits until the line
// obeys, as both tell.
func (w *world) changeBatch(at, other *process, size int) {
	w.t.Helper()
	patched := decoded[snapshot](w.patch(at, settings{"batchSize": size}))
	harness.Eventually(w.t, time.Second+slack, "the new batch size is in force", func() bool {
		return w.snapshotAt(at).Version == patched.Version && w.snapshotAt(other).Version == patched.Version
	})
}

// measure tells how many are admitted in about two seconds, by Redis time.
func (w *world) measure(p *process) (admitted, seconds float64) {
	w.t.Helper()
	first := w.snapshotAt(p)
	last := w.untilSnapshot("two seconds have passed", func(s snapshot) bool {
		return s.RedisTime.Sub(first.RedisTime) > 2*time.Second
	})
	return float64(last.admitted() - first.admitted()), last.RedisTime.Sub(first.RedisTime).Seconds()
}

func TestOfTwoOperatorsWithOneETagOneIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(nil)
	etag := w.operateAt(a, "GET", roomPath(), nil).is(200).header.Get("ETag")
	require.NotEmpty(t, etag)
	sizes := []int{70, 90}
	answers := make([]answer, 2)
	together(2, func(i int) {
		answers[i] = w.operateAt([]*process{a, b}[i], "PATCH", roomPath(), settings{"batchSize": sizes[i]}, "If-Match", etag)
	})
	won := 0
	if answers[0].status != 200 {
		won = 1
	}
	answers[won].is(200)
	answers[1-won].is(412, "precondition-failed")
	got := decoded[struct {
		Settings struct {
			BatchSize int `json:"batchSize"`
		} `json:"settings"`
	}](w.operate("GET", roomPath(), nil).is(200))
	require.Equal(t, sizes[won], got.Settings.BatchSize)

	w.operate("PATCH", roomPath(), settings{"batchSize": 1}).is(428, "precondition-required")
	w.operate("PATCH", roomPath(), settings{"batchSize": 0}, "If-Match", "*").is(422, "invalid-settings")
	require.Equal(t, 2, sql[int](w, "SELECT count(*) FROM room_changes WHERE target = $1", room), "one row per change, none for a refusal")
	strangers := w.ask("GET", a.admin+roomPath(), nil, "")
	strangers.is(401, "unauthorized")
}

func TestPauseLetsNobodyThroughAndResumeDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(nil)
	w.do("pause")
	for _, p := range []*process{a, b} {
		harness.Eventually(t, time.Second+slack, "everybody sees the pause", func() bool {
			return decoded[struct {
				RoomState queue.RoomState `json:"roomState"`
			}](w.ask("GET", p.public+"/v1/rooms/"+room, nil, "").is(200)).RoomState == queue.Paused
		})
	}
	before := w.untilSnapshot("the line knows of the pause", func(s snapshot) bool { return s.RoomState == "PAUSED" })
	ann := w.shopper()
	ann.enter(a).is(201)
	w.ticks(2)
	require.Equal(t, before.admitted(), w.snapshot().admitted(), "nobody is let through while paused")
	require.Equal(t, queue.Waiting, ann.poll(b).is(200).position().Status)
	w.do("resume")
	ann.until(b, queue.Ready)
}

func TestDrainServesThoseInLineAndTakesNobodyNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(settings{"paused": true})
	ann := w.shopper()
	place := ann.enter(a).is(201).position()
	w.do("drain")
	w.untilSnapshot("the line drains", func(s snapshot) bool { return w.shopper().enter(b).status == 403 })
	w.shopper().enter(a).is(403, "room-closed")
	require.Equal(t, *place.Score, *ann.enter(b).is(200).position().Score, "who is in line stays in line")
	w.patch(a, settings{"paused": false})
	ann.until(a, queue.Ready)
	ann.order(b, "demo", 1).is(201)
}

func TestFlushEndsEveryPlaceAndMustBeConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.pair()
	w.open(settings{"batchSize": 1, "intervalMs": 60_000})
	first, second, bought := w.shopper(), w.shopper(), w.shopper()
	bought.admitted(a)
	made := bought.order(a, "demo", 1).is(201).order()
	bought.until(b, queue.Consumed)
	w.patch(a, settings{"batchSize": 2, "intervalMs": 100})
	first.admitted(b)
	w.do("pause")
	w.untilSnapshot("the line knows of the pause", func(s snapshot) bool { return s.RoomState == "PAUSED" })
	second.enter(b).is(201)

	before := w.snapshot()
	w.operate("POST", roomPath("flush"), nil).is(422, "confirmation-required")
	w.operate("POST", roomPath("flush"), settings{"confirm": "another"}).is(422, "confirmation-required")
	w.ticks(1)
	require.Equal(t, before.Generation, w.snapshot().Generation, "an unconfirmed flush must change nothing")

	w.operate("POST", roomPath("flush"), confirmed).is(200)
	w.untilSnapshot("the new sale has begun", func(s snapshot) bool { return s.Generation > before.Generation })
	for _, s := range []*shopper{first, second} {
		harness.Eventually(t, time.Second+slack, "the old ticket is worth nothing on both", func() bool {
			x, y := s.poll(a).is(200).position(), s.poll(b).is(200).position()
			return x.Status == queue.NotEntered && y.Status == queue.NotEntered
		})
		p := s.poll(a).is(200).position()
		require.Equal(t, queue.OutcomeReset, *p.LastOutcome)
	}
	first.order(a, "demo", 1).is(401, "entry-token-invalid")
	require.Equal(t, made, bought.orderByID(b, made.ID).is(200).order(), "a flush must not touch orders")
	require.EqualValues(t, 0, w.snapshot().inside())
	require.EqualValues(t, 0, *second.enter(a).is(201).position().Rank, "the new sale begins empty")
	require.Equal(t, 1, w.placed())
}

// The room is deleted while an order's event is still in the outbox.
func TestDeletedRoomIsGoneAndItsOutboxEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.start("LINEKEEPER_ROLES=api,scheduler")
	w.open(nil)
	ann, bob := w.shopper(), w.shopper()
	ann.admitted(a)
	bob.admitted(a)
	made := ann.order(a, "demo", 1).is(201).order()
	w.operate("DELETE", roomPath(), nil).is(422, "confirmation-required")
	w.operate("DELETE", roomPath(), confirmed).is(204)
	w.operate("DELETE", roomPath(), confirmed).is(404, "room-not-found")
	w.operate("GET", roomPath(), nil).is(404, "room-not-found")

	status := a.public + "/v1/rooms/" + room
	harness.Eventually(t, time.Second+slack, "the room is gone", func() bool { return w.ask("GET", status, nil, "").status == 404 })
	w.shopper().enter(a).is(404, "room-not-found")
	ann.poll(a).is(404, "room-not-found")
	ann.leave(a).is(404, "room-not-found")
	bob.order(a, "demo", 1).is(401, "entry-token-invalid")
	require.Equal(t, made, ann.orderByID(a, made.ID).is(200).order(), "an order outlives its room")

	entries := func(status string) int {
		return len(decoded[struct {
			Entries []struct{} `json:"entries"`
		}](w.operate("GET", fmt.Sprint("/admin/v1/outbox?status=", status), nil).is(200)).Entries)
	}
	require.Equal(t, 1, entries("pending"), "no relay runs yet")
	w.start("LINEKEEPER_ROLES=relay")
	harness.Eventually(t, patience, "the outbox has ended", func() bool { return entries("pending") == 0 })
	require.Equal(t, 1, entries("done"))
	require.Zero(t, entries("dead"))

	// The name may be used again, and is another room then.
	w.openRoom(room, nil)
	ann.until(a, queue.NotEntered)
	require.EqualValues(t, 0, *w.shopper().enter(a).is(201).position().Rank)
	require.Equal(t, 1, w.placed())
}
