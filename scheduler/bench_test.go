package scheduler_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/scheduler"
	"github.com/linekeeper/linekeeper/test/harness"
)

// BenchmarkThousandRooms runs a thousand empty rooms for three seconds an
// iteration, and reports how late their ticks begin.
func BenchmarkThousandRooms(b *testing.B) {
	const rooms = 1000
	rdb, db := harness.Redis(b), harness.Database(b)
	_, err := db.Exec(b.Context(), `INSERT INTO rooms (name, settings) SELECT 'r' || i, $2 FROM generate_series(1, $1) AS i`,
		rooms, room.Defaults())
	require.NoError(b, err)
	store := redisstore.New(rdb, uuid.NewString())

	var mu sync.Mutex
	ticked, late := map[string]bool{}, []time.Duration{}
	s := scheduler.New(scheduler.Config{
		Line: store, Batches: store, Rooms: store, Books: pgstore.New(db), Admissions: pgstore.New(db), Terms: store.Terms(), Leader: "only",
		NewGrant: uuid.NewString, Log: slog.New(slog.DiscardHandler),
		Observer: scheduler.Observer{Ticked: func(k scheduler.Tick) {
			mu.Lock()
			defer mu.Unlock()
			ticked[k.Room] = true
			late = append(late, k.Late)
		}},
	})
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx)
	}()
	defer func() { stop(); <-done }()
	harness.Eventually(b, 30*time.Second, "all rooms have begun", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(ticked) == rooms
	})
	time.Sleep(2 * time.Second) // the rush of the beginning is over

	mu.Lock()
	late = late[:0]
	mu.Unlock()
	for b.Loop() {
		time.Sleep(3 * time.Second)
	}
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "p99-late-ms")
	b.ReportMetric(float64(len(late))/b.Elapsed().Seconds(), "ticks/s")
}
