package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const minRedis = 7

func redisReached(_ context.Context, e *exam) Finding {
	if e.redisErr != nil {
		return fail("start Redis, or correct LINEKEEPER_REDIS_URL", "%s", strings.TrimPrefix(fmt.Sprintf("%v: %s", e.Conf.RedisURL, oneLine(e.redisErr)), ": "))
	}
	return good("answers, %d server(s) that take writes", len(e.nodes))
}

// everyNode runs a question about one server on all, and answers with the first
// fault.
func (e *exam) everyNode(ask func(n node) Finding) Finding {
	var last Finding
	for _, n := range e.nodes {
		if last = ask(n); last.Level != OK {
			if len(e.nodes) > 1 {
				last.Found = n.addr + ": " + last.Found
			}
			return last
		}
	}
	return last
}

func redisVersion(_ context.Context, e *exam) Finding {
	return e.everyNode(func(n node) Finding {
		version := n.info["redis_version"]
		var major int
		if _, err := fmt.Sscanf(version, "%d.", &major); err != nil || major < minRedis {
			return fail("upgrade to Redis 7.0 or newer, or to Valkey", "version %q is too old", version)
		}
		return good("%s", version)
	})
}

func redisRole(_ context.Context, e *exam) Finding {
	return e.everyNode(func(n node) Finding {
		if role := n.info["role"]; role != "master" {
			return fail("point LINEKEEPER_REDIS_URL at the primary, or at its Sentinels", "role is %s: it takes no writes", role)
		}
		return good("takes writes, %s replica(s)", n.info["connected_slaves"])
	})
}

func redisEviction(_ context.Context, e *exam) Finding {
	const set = "set maxmemory-policy noeviction"
	return e.everyNode(func(n node) Finding {
		policy := n.info["maxmemory_policy"]
		switch {
		case policy == "noeviction":
			return good("noeviction")
		case e.Conf.AllowEviction:
			return warn(set, "%s may evict people's places, as LINEKEEPER_ALLOW_EVICTION has it", policy)
		}
		return fail(set, "%s may evict people's places, so no process starts", policy)
	})
}

func redisPersistence(_ context.Context, e *exam) Finding {
	return e.everyNode(func(n node) Finding {
		switch {
		case n.info["aof_enabled"] != "1":
			return warn("set appendonly yes", "no append-only file: a restart loses every place, to be restored from tickets")
		case n.info["aof_last_write_status"] != "ok":
			return fail("make room on the disk of Redis, and look at its log", "the append-only file can't be written: Redis refuses writes")
		case n.info["aof_last_bgrewrite_status"] != "ok":
			return warn("make room on the disk of Redis, and look at its log", "the last rewrite of the append-only file failed: it grows for ever")
		}
		return good("append-only file")
	})
}

// redisRights runs a script that writes, as every step of the line does.
func redisRights(ctx context.Context, e *exam) Finding {
	if err := e.line.Probe(ctx); err != nil {
		return fail("give the user of LINEKEEPER_REDIS_URL the line of docs/operations.md, section \"A user of its own\", with ~"+e.Conf.KeyPrefix+":* (ACL SETUSER)",
			"a script that writes is refused: %s", oneLine(err))
	}
	return good("scripts run, and write")
}

// Of memory: what a waiting member takes in the lane, near the front and with
// the allocator's waste; what Redis and finished members take beside them; and
// the share of maxmemory at which entry closes.
const (
	memberBytes = 260
	baseBytes   = 64 << 20
	entryShare  = 0.9
)

func redisMemory(_ context.Context, e *exam) Finding {
	var members, limit, system int64
	for _, w := range e.wards {
		members += int64(w.room.Settings.MaxWaiting)
	}
	unlimited := false
	for _, n := range e.nodes {
		unlimited = unlimited || n.int("maxmemory") == 0
		limit += n.int("maxmemory")
		system += n.int("total_system_memory")
	}
	need := int64(float64(members*memberBytes+baseBytes) / entryShare)
	sum := fmt.Sprintf("%d room(s) hold up to %d members x %d B = %s, + %s, / 0.9 (entry closes at 90 %%) = %s",
		len(e.wards), members, memberBytes, bytes(members*memberBytes), bytes(baseBytes), bytes(need))
	set := "set maxmemory to at least " + bytes(need) + ", or lower maxWaiting"
	switch {
	case unlimited && system > 0 && need > system:
		return fail(set, "%s; the machine has %s", sum, bytes(system))
	case unlimited:
		return warn(set, "%s; no maxmemory: the system kills a Redis that grows too large, instead of entry closing", sum)
	case need > limit:
		return fail(set, "%s; maxmemory is %s: people are turned away before the room is full", sum, bytes(limit))
	}
	return good("%s; maxmemory is %s", sum, bytes(limit))
}

// leader asks for the lock; whether ticks come of it is the rooms' to tell.
func leader(ctx context.Context, e *exam) Finding {
	if e.Conf.LeaderTTL == 0 {
		return good("no lock, as LINEKEEPER_LEADER_TTL has it: every scheduler ticks")
	}
	const start = "start a process with the role scheduler (`linekeeper serve`), with the same LINEKEEPER_KEY_PREFIX"
	left, err := e.Redis.PTTL(ctx, e.Conf.KeyPrefix+":leader").Result()
	switch {
	case err != nil:
		return fail(start, "the lock can't be read: %s", oneLine(err))
	case left < 0:
		return fail(start, "nobody holds the scheduler's lock: nobody is let through")
	}
	return good("the lock is held, for %v more unless extended", left.Round(100*time.Millisecond))
}

// list joins the first few of many names.
func list(names []string) string {
	const shown = 5
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}
