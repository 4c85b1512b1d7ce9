package stack

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/linekeeper/linekeeper/migrations"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/room/pgstore"
)

// start runs an image and returns host:port of its one port.
func start(t *testing.T, image, port string, env map[string]string, ready wait.Strategy) string {
	t.Helper()
	c, err := testcontainers.GenericContainer(t.Context(), testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			Image: image, ExposedPorts: []string{port}, Env: env, WaitingFor: ready,
		},
		Started: true,
	})
	testcontainers.CleanupContainer(t, c)
	require.NoError(t, err)
	addr, err := c.Endpoint(t.Context(), "")
	require.NoError(t, err)
	return addr
}

// The line and the books work on the servers of the stack's own images, not
// only on those of this machine.
func TestLineAndBooksWorkOnTheImagesOfTheStack(t *testing.T) {
	wanted(t)
	testcontainers.SkipIfProviderIsNotHealthy(t)
	rdb := redis.NewClient(&redis.Options{Addr: start(t, "redis:7.0", "6379/tcp", nil, wait.ForListeningPort("6379/tcp"))})
	t.Cleanup(func() { _ = rdb.Close() })
	dsn := "postgres://test:test@" + start(t, "postgres:15-alpine", "5432/tcp",
		map[string]string{"POSTGRES_USER": "test", "POSTGRES_PASSWORD": "test"},
		wait.ForAll(wait.ForListeningPort("5432/tcp"), wait.ForLog("ready to accept connections").WithOccurrence(2)).WithDeadline(time.Minute)) + "/test"

	_, err := migrations.Up(t.Context(), dsn)
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	books, line := pgstore.New(pool), redisstore.New(rdb, "stack")
	_, err = books.Create(t.Context(), "sale", room.Defaults(), room.Actor{Name: "test"})
	require.NoError(t, err)
	life, err := books.Begin(t.Context(), "sale", 0)
	require.NoError(t, err)
	require.NoError(t, line.Create(t.Context(), life))
	st, err := line.Enter(t.Context(), "sale", "ann", 0)
	require.NoError(t, err)
	require.Equal(t, queue.Waiting, st.Status)
	step := queue.Step{Generation: life.Generation, Term: 1, Leader: "test", Seq: 1}
	r, err := line.Reserve(t.Context(), "sale", step, queue.Take{Keep: 1, Effective: 50, Max: 500})
	require.NoError(t, err)
	require.Len(t, r.Taken, 1)
	require.NoError(t, books.Advance(t.Context(), []queue.Progress{{Room: "sale", Sale: 1, Floors: []int64{st.Place.Score, 0, 0, 0}, LastScore: r.LastScore}}))
	issued, err := line.Issue(t.Context(), "sale", step, []queue.Decision{{Member: "ann", Grant: "g"}})
	require.NoError(t, err)
	require.Equal(t, 1, issued.Granted)
}
