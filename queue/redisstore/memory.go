package redisstore

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// memory remembers, for a second, whether the server of a room is near its
// limit. INFO needs no right to CONFIG.
type memory struct {
	mu   sync.Mutex
	last map[string]reading // by server
}

type reading struct {
	at   time.Time
	full string
}

// state is "1" when the room's server has used 90 % of its memory, "0" when it
// has not, and "" when it does not say.
func (m *memory) state(ctx context.Context, s *Store, room string) string {
	node, name := s.server(ctx, room)
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.last[name]; ok && time.Since(r.at) < time.Second {
		return r.full
	}
	info, err := node.Info(ctx, "memory").Result()
	if err != nil {
		return ""
	}
	if m.last == nil {
		m.last = map[string]reading{}
	}
	m.last[name] = reading{time.Now(), nearLimit(info)}
	return m.last[name].full
}

// server is the node that holds the room, with a name for it.
func (s *Store) server(ctx context.Context, room string) (redis.Cmdable, string) {
	cluster, ok := s.rdb.(*redis.ClusterClient)
	if !ok {
		return s.rdb, ""
	}
	node, err := cluster.MasterForKey(ctx, confKey(s.prefix, room))
	if err != nil {
		return s.rdb, ""
	}
	return node, node.Options().Addr
}

func nearLimit(info string) string {
	used, limit := infoField(info, "used_memory"), infoField(info, "maxmemory")
	switch {
	case used == 0 || limit < 0:
		return ""
	case limit > 0 && used >= limit/10*9:
		return "1"
	default:
		return "0"
	}
}

// infoField reads one number of an INFO reply; -1 if it is not there.
func infoField(info, name string) int64 {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}
