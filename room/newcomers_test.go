package room_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestTheMostWorkIsNoLessThanTheLeast(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"proofOfWorkBits":18}`:                           "",
		`{"proofOfWorkBits":18,"proofOfWorkMaxBits":18}`:   "",
		`{"proofOfWorkBits":18,"proofOfWorkMaxBits":22}`:   "",
		`{"proofOfWorkMaxBits":22}`:                        "proofOfWorkMaxBits must be 0 where proofOfWorkBits is 0, got 22",
		`{"proofOfWorkBits":18,"proofOfWorkMaxBits":17}`:   "proofOfWorkMaxBits must be 0 or at least proofOfWorkBits (18), got 17",
		`{"proofOfWorkBits":25}`:                           "proofOfWorkBits must be a whole number from 0 to 24, got 25",
		`{"proofOfWorkBits":8,"proofOfWorkMaxBits":25}`:    "proofOfWorkMaxBits must be a whole number from 0 to 24, got 25",
		`{"proofOfWorkBits":true,"outsideChallenge":"on"}`: `proofOfWorkBits must be a whole number from 0 to 24, got true; outsideChallenge must be true or false, got "on"`,
	} {
		_, err := room.Parse([]byte(doc))
		if want == "" {
			require.NoError(t, err, doc)
			continue
		}
		require.EqualError(t, err, want, doc)
	}
}
