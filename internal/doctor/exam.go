package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/internal/pooler"
	"github.com/linekeeper/linekeeper/migrations"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/room/pgstore"
)

// exam is what several checks look at, asked for once.
type exam struct {
	Patient
	store *pgstore.Store
	line  *redisstore.Store

	nodes     []node // the servers of Redis that take writes
	redisErr  error
	facts     facts
	pgErr     error
	schemaErr error
	wards     []*ward
	wardsErr  error
}

// node is one server of Redis, by what INFO says.
type node struct {
	addr string
	info map[string]string
}

func (n node) int(field string) int64 {
	v, _ := strconv.ParseInt(n.info[field], 10, 64)
	return v
}

// ward is one room as both sides have it.
type ward struct {
	name    string
	room    room.Room
	err     error // of Postgres
	snap    queue.Snapshot
	snapErr error // of Redis
}

// errUnset is a part that the settings do not name, or not in a way that can be
// connected to: the check "settings" says what is wrong.
var errUnset = errors.New("the settings name none")

func look(ctx context.Context, p Patient) *exam {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if p.Now == nil {
		p.Now = time.Now
	}
	if p.OpenFiles == nil {
		p.OpenFiles = maxOpenFiles
	}
	e := &exam{Patient: p, redisErr: errUnset, pgErr: errUnset}
	if p.Redis != nil {
		e.line = redisstore.New(p.Redis, p.Conf.KeyPrefix)
		e.nodes, e.redisErr = nodes(ctx, p.Redis)
	}
	if p.Postgres != nil {
		e.store = pgstore.New(p.Postgres)
		e.facts, e.pgErr = factsOf(ctx, p.Postgres)
	}
	if e.pgErr == nil {
		e.schemaErr = migrations.Check(ctx, p.Postgres)
	}
	if e.lacking(schema) == "" {
		e.wards, e.wardsErr = e.visit(ctx)
	}
	return e
}

// lacking is why a check can't be made; empty if it can.
func (e *exam) lacking(n need) string {
	asksPostgres := n == postgresUp || n == schema || n == lines
	switch {
	case (n == redisUp || n == lines) && e.redisErr != nil:
		return "Redis does not answer"
	case asksPostgres && errors.Is(e.pgErr, pooler.Err):
		return "a pooler answers for Postgres"
	case asksPostgres && e.pgErr != nil:
		return "Postgres does not answer"
	case (n == schema || n == lines) && e.schemaErr != nil:
		return "the schema is another one"
	}
	return ""
}

// eachMaster calls f for every server that takes writes, one at a time.
func eachMaster(ctx context.Context, rdb redis.UniversalClient, f func(ctx context.Context, c redis.Cmdable, addr string) error) error {
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		return f(ctx, rdb, "redis")
	}
	var mu sync.Mutex // go-redis asks them side by side
	return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		return f(ctx, c, c.Options().Addr)
	})
}

func nodes(ctx context.Context, rdb redis.UniversalClient) ([]node, error) {
	var out []node
	err := eachMaster(ctx, rdb, func(ctx context.Context, c redis.Cmdable, addr string) error {
		// All of it: before Redis 7.0, INFO takes no list of sections.
		text, err := c.Info(ctx).Result()
		if err != nil {
			return err
		}
		n := node{addr, map[string]string{}}
		for line := range strings.Lines(text) {
			if name, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				n.info[name] = v
			}
		}
		out = append(out, n)
		return nil
	})
	return out, err
}

// visit reads every room on both sides. A room that can't be read is a ward
// with its error, and hides no other.
func (e *exam) visit(ctx context.Context) ([]*ward, error) {
	rooms, err := e.store.Generations(ctx)
	if err != nil {
		return nil, err
	}
	wards := make([]*ward, 0, len(rooms))
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		wards = append(wards, e.read(ctx, name))
	}
	return wards, nil
}

func (e *exam) read(ctx context.Context, name string) *ward {
	w := &ward{name: name, snapErr: errUnset}
	w.room, w.err = e.store.Get(ctx, name)
	if e.redisErr == nil {
		w.snap, w.snapErr = e.line.Snapshot(ctx, name)
	}
	return w
}

// bytes writes a size as people compare sizes.
func bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	default:
		return fmt.Sprintf("%d MB", (n+1<<20-1)>>20)
	}
}
