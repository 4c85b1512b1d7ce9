package telemetry_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/telemetry"
)

// ofRooms counts the series that only a leader exports.
func ofRooms(series map[string]string) (n int) {
	for name := range series {
		for _, metric := range []string{"queue_", "batch_", "scheduler_last_tick"} {
			if strings.HasPrefix(name, metric) {
				n++
			}
		}
	}
	return n
}

func tell(m *telemetry.Metrics, room string) {
	m.SetRoom(room, map[string]float64{"waiting": 1}, 1)
	m.SetBatch(room, 50)
	m.SetBatchInForce(room, 7, "bad")
	m.Ticked(room, "ok", 0, time.Unix(1000, 0))
}

func TestOnlyTheLeaderExportsRooms(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	tell(m, "a")
	require.Zero(t, ofRooms(scrape(t, m)), "before it leads")
	m.Led(1, true)
	tell(m, "a")
	require.Equal(t, 6, ofRooms(scrape(t, m)))
	m.Led(2, true)
	require.Equal(t, 6, ofRooms(scrape(t, m)), "a new term of the same leader forgets nothing")
	m.Led(2, false)
	require.Zero(t, ofRooms(scrape(t, m)), "after it led")
	tell(m, "a")
	got := scrape(t, m)
	require.Zero(t, ofRooms(got), "an answer that came late revives nothing")
	require.Equal(t, "0", got["scheduler_leader"])
	require.Equal(t, "2", got["scheduler_term"])
}

func TestRoomsThatAreGoneAreForgotten(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	m.Led(1, true)
	for _, room := range []string{"a", "b", "c"} {
		tell(m, room)
	}
	m.ForgetRooms([]string{"b"})
	got := scrape(t, m)
	require.Equal(t, 6, ofRooms(got))
	require.Contains(t, got, `batch_size{room="b"}`)
	m.ForgetAll()
	require.Zero(t, ofRooms(scrape(t, m)))
}

func TestSizesAreCopied(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	m.Led(1, true)
	sizes := map[string]float64{"waiting": 1}
	m.SetRoom("a", sizes, 0)
	sizes["waiting"] = 2
	require.Equal(t, "1", scrape(t, m)[`queue_members{room="a",state="waiting"}`])
}

func TestStockIsShownOfRoomsThatHaveOne(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	m.Led(1, true)
	left := func(n float64) *float64 { return &n }
	m.SetStock("a", left(0))
	m.SetStock("b", nil)
	for i := range 200 {
		m.SetBatch(fmt.Sprintf("r%03d", i), 1)
	}
	m.SetStock("r198", left(7))
	m.SetStock("r199", left(5))
	got := scrape(t, m)
	require.Equal(t, "0", got[`stock_left{room="a"}`])
	require.NotContains(t, got, `stock_left{room="b"}`)
	require.Equal(t, "5", got[`stock_left{room="other"}`], "the one that sells out first")
	m.SetStock("a", nil)
	require.NotContains(t, scrape(t, m), `stock_left{room="a"}`)
}

func TestRoomsBeyondTheLimitAddUp(t *testing.T) {
	t.Parallel()
	m := telemetry.New("v")
	m.Led(1, true)
	for i := range 203 {
		room := fmt.Sprintf("r%03d", i)
		m.SetRoom(room, map[string]float64{"waiting": float64(i)}, float64(500-i))
		m.SetBatch(room, 10)
		m.SetBatchInForce(room, 3, []string{"quiet", "bad", ""}[i%3])
		m.Ticked(room, "ok", 0, time.Unix(int64(1000-i), 0))
	}
	for range 2 { // the second scrape must not give another answer
		got := scrape(t, m)
		require.Equal(t, "199", got[`queue_members{room="r199",state="waiting"}`])
		require.Equal(t, "603", got[`queue_members{room="other",state="waiting"}`], "200 + 201 + 202 wait")
		require.Equal(t, "300", got[`queue_head_age_seconds{room="other"}`], "the longest wait")
		require.Equal(t, "30", got[`batch_size{room="other"}`])
		require.Equal(t, "9", got[`batch_in_force{room="other"}`])
		require.Equal(t, "1", got[`batch_verdict{room="other",verdict="bad"}`], "of 200, 201 and 202, the second; the third is not adaptive")
		require.Equal(t, "798", got[`scheduler_last_tick_timestamp_seconds{room="other"}`], "the oldest tick")
	}
}
