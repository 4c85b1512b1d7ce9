package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestCodesFromTheShell(t *testing.T) {
	t.Parallel()
	s, store, _ := operated(t)
	s.ok("room", "create", "tickets", `lanes=[{"name":"standard","weight":1},{"name":"vip","weight":2}]`)
	codes := strings.Fields(s.ok("code", "create", "--room", "tickets", "--lane", "vip", "--uses", "1", "--count", "500"))
	require.Len(t, codes, 500)
	hash, ending, ok := room.ParseCode(codes[0])
	require.True(t, ok)
	lane, err := store.UseCode(t.Context(), "tickets", 1, hash, "ann")
	require.NoError(t, err)
	require.Equal(t, "vip", lane)

	require.Regexp(t, `(?m)^1 +1 +`+ending+` +vip +1 +1 +`, s.ok("code", "list", "--room", "tickets", "--limit", "1"))
	require.Contains(t, s.ok("code", "revoke", "--room", "tickets", "--id", "1"), "1")
	var revoked struct{ Revoked int }
	require.NoError(t, json.Unmarshal([]byte(s.ok("code", "revoke", "--room", "tickets", "--batch", "1", "-o", "json")), &revoked))
	require.Equal(t, 499, revoked.Revoked)
	require.Contains(t, s.ok("audit", "--target", "tickets", "--limit", "1"), "code.revoke")

	var made struct{ Codes []string }
	require.NoError(t, json.Unmarshal([]byte(s.ok("code", "create", "--room", "tickets", "-o", "json")), &made))
	require.Len(t, made.Codes, 1)
	require.Contains(t, s.run("code", "create", "--room", "tickets", "--lane", "gold").err, "must be a lane of the room")
	for _, wrong := range [][]string{
		{"create", "--room", "Tickets"}, {"create"}, {"create", "--room", "tickets", "--count", "10001"},
		{"revoke", "--room", "tickets"}, {"revoke", "--room", "tickets", "--id", "1", "--batch", "1"},
	} {
		require.Equal(t, 2, s.run(append([]string{"code"}, wrong...)...).code, "%v", wrong)
	}
}
