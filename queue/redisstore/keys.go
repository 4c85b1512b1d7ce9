package redisstore

// parts are the keys of a room, in the one order in which every script gets
// them (lua/prelude.lua names them by position).
var parts = [...]string{
	"conf", "state", "lane0", "lane1", "lane2", "lane3", "seen", "away", "away:place",
	"processing", "processing:place", "ready", "claimed", "grants", "done", "done:info",
	"health", "lifted", "stats",
}

// keys lists a room's whole key set. The braces are a Redis Cluster hash tag:
// all keys of one room share a slot, and rooms spread over the cluster. The
// room's name has been validated: it holds no brace.
func keys(prefix, room string) []string {
	out := make([]string, len(parts))
	for i, part := range parts {
		out[i] = prefix + ":{" + room + "}:" + part
	}
	return out
}

// laneKey is the lane's key; its place in parts is fixed.
func laneKey(prefix, room string, lane int) string {
	return prefix + ":{" + room + "}:" + parts[2+lane]
}

func processingPlaceKey(prefix, room string) string {
	return prefix + ":{" + room + "}:processing:place"
}

func liftedKey(prefix, room string) string {
	return prefix + ":{" + room + "}:lifted"
}

func confKey(prefix, room string) string {
	return prefix + ":{" + room + "}:conf"
}
