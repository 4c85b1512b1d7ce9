//go:build faults

package point

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// A run whose faults are misspelt would prove nothing.
func TestWhatIsMisspeltIsRefused(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{EnvPoints, "O3-claimed", `"O3-claimed" is not name=action@probability`},
		{EnvPoints, "O3-claimd=kill", `no failpoint "O3-claimd"`},
		{EnvPoints, "O3-claimed=kill;O3-claimed=stop", "named twice"},
		{EnvPoints, "O3-claimed=die", "is not kill, stop or sleep"},
		{EnvPoints, "O3-claimed=kill:2s", "is not kill, stop or sleep"},
		{EnvPoints, "O3-claimed=sleep", "is not kill, stop or sleep"},
		{EnvPoints, "O3-claimed=sleep:2", "not a time to sleep"},
		{EnvPoints, "O3-claimed=sleep:-1s", "not a time to sleep"},
		{EnvPoints, "O3-claimed=kill@2", "not a probability"},
		{EnvPoints, "O3-claimed=kill@NaN", "not a probability"},
		{EnvPoints, "O3-claimed=kill@", "not a probability"},
		{EnvSeed, "-1", "not a whole number"},
		{EnvSkew, "5", "not a duration"},
		{EnvMutant, "consume-by-membr", `no mutant "consume-by-membr"`},
	} {
		_, err := read(environment(c.name, c.value))
		require.ErrorContains(t, err, c.name)
		require.ErrorContains(t, err, c.says)
	}
}

func TestTheEnvironmentArmsFailpoints(t *testing.T) {
	s, err := read(environment(EnvPoints, " O3-claimed=kill@0.25; T1-reserved=sleep:2s ;", EnvMutant, "two-claims", EnvSkew, "-10m"))
	require.NoError(t, err)
	require.Len(t, s.armed, 2)
	require.Equal(t, "kill", s.armed["O3-claimed"].action)
	require.Equal(t, 0.25, s.armed["O3-claimed"].odds)
	require.Equal(t, 2*time.Second, s.armed["T1-reserved"].pause)
	require.Equal(t, 1.0, s.armed["T1-reserved"].odds)
	require.Equal(t, "two-claims", s.mutant)
	require.Equal(t, -10*time.Minute, s.skew)
	s, err = read(environment())
	require.NoError(t, err)
	require.Empty(t, s.armed)
}

// passes are which of 200 passes of a point are hit.
func passes(t *testing.T, points, name, seed string) (hits []int) {
	t.Helper()
	s, err := read(environment(EnvPoints, points, EnvSeed, seed))
	require.NoError(t, err)
	for i := range 200 {
		if s.armed[name].hit() {
			hits = append(hits, i)
		}
		if other := s.armed["T1-reserved"]; other != nil {
			other.hit()
		}
	}
	return hits
}

func TestASeedHitsTheSamePassesWhateverElseIsArmed(t *testing.T) {
	const alone = "O3-claimed=kill@0.1"
	first := passes(t, alone, "O3-claimed", "42")
	require.Equal(t, first, passes(t, alone+";T1-reserved=kill@0.5", "O3-claimed", "42"))
	require.NotEqual(t, first, passes(t, alone, "O3-claimed", "43"))
	require.InDelta(t, 20, len(first), 15)
	require.NotEqual(t, first, passes(t, "O4-begun=kill@0.1", "O4-begun", "42"), "two points at once")
	require.Len(t, passes(t, "O3-claimed=kill", "O3-claimed", "1"), 200)
	require.Empty(t, passes(t, "O3-claimed=kill@0", "O3-claimed", "1"))
}

// A script that has changed under a mutant must not be sent as it is.
func TestAMutantThatNoLongerFitsStopsTheProgram(t *testing.T) {
	require.PanicsWithValue(t, "point: mutant two-claims: its text stands 0 times in claim.lua, not once:\nif g.claim ~= '-' then\n",
		func() { mutate("two-claims", "claim", "return 1") })
	require.Equal(t, "return 1", mutate("two-claims", "release", "return 1"))
	require.Equal(t, "return 1", mutate("", "claim", "return 1"))
	require.Panics(t, func() { Script("claim", "return 1") }, "a script without its flags")
}
