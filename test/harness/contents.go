package harness

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// Contents is all that Redis holds under keys that match pattern, by what it
// means: two that are equal say the same. (DUMP does not: a hash that is being
// resized is written down in another order from one moment to the next.)
func Contents(t testing.TB, rdb *redis.Client, pattern string) map[string]any {
	t.Helper()
	ctx := t.Context()
	keys, err := rdb.Keys(ctx, pattern).Result()
	if err != nil {
		t.Fatalf("list keys of %s: %v", pattern, err)
	}
	all := make(map[string]any, len(keys))
	for _, key := range keys {
		kind, err := rdb.Type(ctx, key).Result()
		switch {
		case err != nil:
		case kind == "hash":
			all[key], err = rdb.HGetAll(ctx, key).Result()
		case kind == "zset":
			all[key], err = rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		default:
			all[key], err = rdb.Dump(ctx, key).Result()
		}
		if err != nil {
			t.Fatalf("read %s: %v", key, err)
		}
	}
	return all
}
