package redisstore

import (
	"embed"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFS embed.FS

// Flags of a script. Plain scripts are refused whole when Redis is at its
// memory limit; those that move people on, and so free more than they take,
// are not.
const (
	refusedWhenFull = "#!lua\n"
	allowedWhenFull = "#!lua flags=allow-oom\n"
	readsOnly       = "#!lua flags=no-writes\n"
)

var (
	enterScript     = script("enter", refusedWhenFull, "members", "steps", "stock", "gates")
	restoreScript   = script("restore", refusedWhenFull, "members")
	createScript    = script("configure", refusedWhenFull, "steps")
	updateScript    = script("configure", allowedWhenFull, "steps")
	standingScript  = script("standing", allowedWhenFull, "members")
	heardScript     = script("heard", allowedWhenFull)
	reserveScript   = script("reserve", allowedWhenFull, "members", "steps", "stock", "gates", "shares", "lifts", "lanes")
	issueScript     = script("issue", allowedWhenFull, "members", "steps", "gates")
	reapScript      = script("reap", allowedWhenFull, "members", "steps", "upkeep")
	pickupScript    = script("pickup", allowedWhenFull, "members")
	claimScript     = script("claim", allowedWhenFull, "members")
	releaseScript   = script("release", allowedWhenFull, "members")
	consumeScript   = script("consume", allowedWhenFull, "members")
	leaveScript     = script("leave", allowedWhenFull, "members")
	lookScript      = script("look", readsOnly, "members")
	healthScript    = script("health", allowedWhenFull)
	tuneScript      = script("tune", allowedWhenFull, "steps")
	snapshotScript  = script("snapshot", readsOnly)
	listedScript    = script("listed", allowedWhenFull)
	entrantsScript  = script("entrants", readsOnly)
	raiseTermScript = redis.NewScript(mustRead("raise"))
)

// namedScript is a script with the name that metrics know it by.
type namedScript struct {
	name string
	*redis.Script
}

// script builds lua/name.lua with the prelude, and the parts it shares with
// others, in front.
func script(name, flags string, shared ...string) namedScript {
	src := flags + mustRead("prelude")
	for _, s := range shared {
		src += mustRead(s)
	}
	return namedScript{name, redis.NewScript(src + mustRead(name))}
}

// mustRead panics where a file is missing: that is a mistake of the build, and
// every program and test that links the package would stop at once.
func mustRead(name string) string {
	b, err := luaFS.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(b)
}
