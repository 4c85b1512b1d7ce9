package draw

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDrawnScoresStandBeforeEveryTime(t *testing.T) {
	t.Parallel()
	last := Key(1<<keyBits - 1)
	require.Equal(t, last, UniformKey(math.MaxUint64))
	require.Equal(t, last, WeightedKey(math.MaxUint64, 1))
	require.EqualValues(t, First, UniformKey(0).First())
	require.EqualValues(t, Beyond, last.First()+Slots)
	require.Less(t, time.UnixMicro(Beyond), time.Date(2023, 7, 9, 0, 0, 0, 0, time.UTC))
	require.Less(t, int64(Beyond), int64(1)<<53, "a float64 holds every score")
	require.Zero(t, int64(First)%Slots)
	require.True(t, Drawn(First) && Drawn(Beyond-1))
	require.False(t, Drawn(First-1) || Drawn(Beyond))
}

func TestAKeyHoldsItsSlotsAndNoOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := Key(rapid.Uint64Range(0, 1<<keyBits-1).Draw(t, "key"))
		require.True(t, k.Holds(k.First()) && k.Holds(k.First()+Slots-1))
		require.False(t, k.Holds(k.First()-1) || k.Holds(k.First()+Slots))
		require.True(t, Drawn(k.First()))
	})
}

func TestAKeyNeverFallsAsTheLotRisesNorRisesWithTheWeight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		if near := rapid.Uint64Range(0, 1<<24).Draw(t, "near"); rapid.Bool().Draw(t, "close") {
			b = a + near
		}
		a, b = min(a, b), max(a, b)
		light, heavy := rapid.IntRange(1, MaxWeight).Draw(t, "light"), rapid.IntRange(1, MaxWeight).Draw(t, "heavy")
		light, heavy = min(light, heavy), max(light, heavy)
		require.LessOrEqual(t, UniformKey(a), UniformKey(b))
		require.LessOrEqual(t, minusLog2(a), minusLog2(b))
		require.LessOrEqual(t, WeightedKey(a, light), WeightedKey(b, light))
		require.LessOrEqual(t, WeightedKey(a, heavy), WeightedKey(a, light))
		require.Less(t, WeightedKey(b, light), Key(1)<<keyBits)
	})
}

// float64 is exact enough to say where the whole number must be, give or take one.
func TestAWeightedKeyIsTheLogarithmOverTheWeight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lot, weight := rapid.Uint64().Draw(t, "lot"), rapid.IntRange(1, MaxWeight).Draw(t, "weight")
		u := float64(lot) / (1 << 64)
		want := -math.Log1p(-u) / math.Ln2 / float64(weight) * (1 << 38)
		require.InDelta(t, min(want, 1<<keyBits-1), float64(WeightedKey(lot, weight)), 1+want*1e-6, "lot %d weight %d", lot, weight)
	})
	for weight := 1; weight <= MaxWeight; weight++ {
		require.Zero(t, WeightedKey(0, weight))
		// Half of all lots are in front of 1, a quarter behind 2, and so on.
		require.EqualValues(t, 1<<38/weight, WeightedKey(1<<63, weight))
		require.EqualValues(t, 2<<38/weight, WeightedKey(3<<62, weight))
	}
	require.Equal(t, WeightedKey(1<<63, 1), WeightedKey(1<<63, 0))
	require.Equal(t, WeightedKey(1<<63, MaxWeight), WeightedKey(1<<63, MaxWeight+1))
}

// These were computed with openssl, and with decimals of 60 digits. Whatever
// changes them makes every draw wrong that has been published.
func TestPlacesAreTheSameOnEveryMachineAndInEveryVersion(t *testing.T) {
	t.Parallel()
	seed, err := ParseSeed("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
	require.NoError(t, err)
	require.Equal(t, "6c86c6aac5fb24bcf5d9939cb7d7d5645ce39418f449e03b262dd4fa14b4b92b", seed.Commitment().String())
	d := Draw{"tickets", 1, seed}
	for _, tc := range []struct {
		member, entrant      string
		lot                  uint64
		uniform, weightedBy3 int64
	}{
		{"ann", "37bd54192856c4e0bdf29c8a555c7126fa5880b20ce1d0816db3755d0763ec3e", 11169963001943775293, 1244710390551616, 570819488788736},
		{"bob", "d5b422a853d8eb36513a3bfd1ecc159f0be01a209c5f92d6ad11c04b357d2d17", 10153175926364514206, 1182650632520704, 569712984147968},
	} {
		e := d.Entrant(tc.member)
		require.Equal(t, tc.entrant, e.String())
		require.Equal(t, tc.lot, d.Lot(e))
		require.Equal(t, tc.uniform, d.Key(e, Uniform, 3).First(), "the weight does not count")
		require.Equal(t, tc.weightedBy3, d.Key(e, Weighted, 3).First())
	}
}

func TestAPlaceDependsOnRoomSaleMemberAndSeed(t *testing.T) {
	t.Parallel()
	base := of(1)
	seen := map[uint64]string{}
	for name, d := range map[string]Draw{
		"base": base, "room": {"ticket", 3, base.Seed}, "sale": {"tickets", 4, base.Seed}, "seed": {"tickets", 3, seeded(2)},
	} {
		for _, m := range []string{"ann", "bob", "3\nann", ""} {
			lot := d.Lot(d.Entrant(m))
			require.Equal(t, lot, d.Lot(d.Entrant(m)), "twice the same")
			require.Empty(t, seen[lot])
			seen[lot] = name + " " + m
		}
	}
}

func TestASeedNeverShows(t *testing.T) {
	t.Parallel()
	s := NewSeed()
	require.NotEqual(t, s, NewSeed())
	again, err := ParseSeed(s.Reveal())
	require.NoError(t, err)
	require.Equal(t, s, again)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("draw", "seed", s, "of", Draw{"r", 1, s})
	text, err := s.MarshalText()
	require.NoError(t, err)
	shown := log.String() + string(text)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown += fmt.Sprintf(verb, s) + fmt.Sprintf(verb, []Seed{s}) + fmt.Sprintf("%v", Draw{"r", 1, s})
	}
	require.NotContains(t, shown, s.Reveal())
	require.NotContains(t, shown, fmt.Sprintf("%x", s.Reveal()))
}

func TestASeedHasOneSpelling(t *testing.T) {
	t.Parallel()
	good := NewSeed().Reveal()
	for _, text := range []string{"", good[1:], good + "0", strings.ToUpper(good) + "", " " + good[1:], strings.Repeat("g", 64)} {
		if text == good {
			continue // no letter in it
		}
		_, err := ParseSeed(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), good[1:])
	}
}
