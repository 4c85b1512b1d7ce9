package room_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestARoomThatAsksForMoreOrGoesByLotDoesNotFailOpen(t *testing.T) {
	t.Parallel()
	for _, patch := range []string{
		`{"fail":"open","priority":"lottery"}`, `{"fail":"open","draw":true,"admitsAt":"2030-01-31T18:00:00Z"}`,
	} {
		_, err := room.Parse([]byte(patch))
		require.ErrorContains(t, err, `fail must be "closed" where places go by lot`, patch)
	}
	for _, patch := range []string{`{"fail":"open","proofOfWorkBits":1}`, `{"fail":"open","outsideChallenge":true}`} {
		_, err := room.Parse([]byte(patch))
		require.ErrorContains(t, err, `fail must be "closed" where newcomers must show a proof of work or pass a challenge`, patch)
	}
	_, err := room.Parse([]byte(`{"fail":"open","invitedOnly":true}`))
	require.ErrorContains(t, err, `fail must be "closed" where only those enter who are invited`)
	s, err := room.Parse([]byte(`{"fail":"open","failOpenAfterSeconds":7}`))
	require.NoError(t, err)
	require.Equal(t, 7*time.Second, s.FailOpenAfter())
	for _, but := range []func(*room.Settings){func(s *room.Settings) { s.Draw = true }, func(s *room.Settings) { s.InvitedOnly = true }} {
		s := s
		but(&s) // as a newer version might allow
		require.Zero(t, s.FailOpenAfter())
	}
	require.Zero(t, room.Defaults().FailOpenAfter(), "closed is the default")
}
