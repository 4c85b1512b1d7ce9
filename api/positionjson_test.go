package api

import (
	"encoding/json"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// waiting is what most polls are answered with.
func waiting() (*view, queue.Standing) {
	now := time.Unix(1_700_000_000, 0)
	s := room.Defaults()
	v := &view{
		Snapshot: queue.Snapshot{Room: "default", Now: now, Began: now, Rules: queue.Rules{Batch: 50, Interval: time.Second, AwayAfter: 2 * time.Minute, PickupTTL: 30 * time.Second, Weights: []int{1}},
			Lanes: []queue.LaneSnapshot{{Waiting: 100_000}}},
		settings: s, read: time.Now(), pace: make([]queue.Pace, 1),
	}
	return v, queue.Standing{Status: queue.Waiting, Place: queue.Place{Score: now.UnixMicro()}, Rank: 5000, InLane: 5000}
}

// A poll makes a position, and writes it.
func TestAPositionIsMadeAndWrittenWithFewAllocations(t *testing.T) {
	v, st := waiting()
	b := make([]byte, 0, 2048)
	n := testing.AllocsPerRun(1000, func() {
		p := position(v, st, 1)
		if _, err := appendPosition(b, &p); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, n, 1.0, "what it points to, in one piece")
}

func BenchmarkPosition(b *testing.B) {
	v, st := waiting()
	p := position(v, st, 1)
	buffer := make([]byte, 0, 2048)
	b.Run("way=append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = appendPosition(buffer, &p)
		}
	})
	b.Run("way=library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = json.Marshal(p)
		}
	})
}

// A field that is added to the position must be added there too: every field is
// drawn, by reflection, and compared with what encoding/json writes.
func TestPositionsAreWrittenAsTheLibraryWritesThem(t *testing.T) {
	t.Parallel()
	instants := rapid.Custom(func(t *rapid.T) any {
		return time.Unix(rapid.Int64Range(0, 253402300799).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond")).UTC()
	})
	positions := rapid.MakeCustom[spec.Position](rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{reflect.TypeFor[time.Time](): instants}})
	rapid.Check(t, func(t *rapid.T) {
		p := positions.Draw(t, "position")
		want, err := json.Marshal(p)
		require.NoError(t, err)
		rec := httptest.NewRecorder()
		require.NoError(t, writePosition(rec, 201, &p))
		require.Equal(t, string(want), rec.Body.String())
		require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
		require.Equal(t, 201, rec.Code)
	})
}
