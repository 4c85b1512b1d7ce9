package room_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestAReleaseSaysHowMany(t *testing.T) {
	t.Parallel()
	n, err := room.ParseRelease([]byte(`{"count":10000}`))
	require.NoError(t, err)
	require.Equal(t, 10_000, n)
	for _, body := range []string{`{}`, `{"count":0}`, `{"count":10001}`, `{"count":-1}`, `{"count":"5"}`, `{"count":1.5}`, `{"count":1,"for":"ann"}`} {
		_, err := room.ParseRelease([]byte(body))
		var problems room.Problems
		require.ErrorAs(t, err, &problems, body)
	}
	_, err = room.ParseRelease([]byte(`5`))
	require.ErrorIs(t, err, room.ErrJSON)
}
