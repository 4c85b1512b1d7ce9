package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMemberIsKeptOutAndLetInFromTheShell(t *testing.T) {
	t.Parallel()
	s, store, _ := operated(t)
	s.ok("room", "create", "sale")
	require.Contains(t, s.ok("member", "block", "sale", "mal", "--confirm", "sale"), "for good")
	out, err := store.KeptOut(t.Context(), "sale", "mal")
	require.NoError(t, err)
	require.True(t, out.Blocked)
	require.Contains(t, s.ok("member", "get", "sale", "mal", "-o", "json"), `"blocked":true`)
	require.Contains(t, s.ok("member", "unblock", "sale", "mal"), "NOT_ENTERED")
	require.Contains(t, s.ok("member", "evict", "sale", "mal", "--confirm", "sale"), "of this sale")
	require.Contains(t, s.ok("audit", "--target", "sale"), "member.evict")
}

func TestAPlaceIsTakenAwayOnlyWithTheNameOfTheRoomAgain(t *testing.T) {
	t.Parallel()
	s, store, _ := operated(t)
	s.ok("room", "create", "sale")
	for _, verb := range []string{"evict", "block"} {
		require.Equal(t, 2, s.run("member", verb, "sale", "mal").code)
		got := s.run("member", verb, "sale", "two words", "--confirm", "sales")
		require.Equal(t, 2, got.code)
		require.Contains(t, got.err, "--confirm: is \"sales\", not the room's name sale again")
		require.Contains(t, got.err, "can't be the id of a member")
	}
	out, err := store.KeptOut(t.Context(), "sale", "mal")
	require.NoError(t, err)
	require.Zero(t, out)
}
