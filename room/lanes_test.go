package room_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestLanesAndHowTheyShareAreRead(t *testing.T) {
	t.Parallel()
	s, err := room.Parse([]byte(`{"lanes":[{"name":"standard","weight":3},{"name":"vip","weight":7,"boostSeconds":600}],
		"priority":"boost","maxWaitSeconds":1800,"timeZone":"Europe/Berlin"}`))
	require.NoError(t, err)
	require.Equal(t, []room.Lane{{Name: "standard", Weight: 3}, {Name: "vip", Weight: 7, BoostSeconds: 600}}, s.Lanes)
	r := s.Rules()
	require.True(t, r.OneLine)
	require.Equal(t, []time.Duration{0, 10 * time.Minute}, r.Boosts)
	require.Equal(t, 30*time.Minute, r.MaxWait)
	require.Equal(t, 3600, r.ZoneOffset(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)))
	require.Equal(t, 7200, r.ZoneOffset(time.Date(2030, 7, 1, 0, 0, 0, 0, time.UTC)), "summer")
	require.True(t, r.Overtakable(0))
	require.False(t, r.Overtakable(1))

	plain := room.Defaults().Rules()
	require.False(t, plain.OneLine)
	require.Nil(t, plain.Boosts)
	require.Zero(t, plain.ZoneOffset(time.Now()))
	require.False(t, plain.Overtakable(0))
	back, err := room.Stored(marshal(t, s))
	require.NoError(t, err)
	require.Equal(t, s, back)
}

func TestWhatLanesCannotBeIsToldAtItsField(t *testing.T) {
	t.Parallel()
	const two = `"lanes":[{"name":"standard","weight":1},{"name":"vip","weight":1,"boostSeconds":`
	for text, want := range map[string]room.Problem{
		`{` + two + `60}]}`:                       {Field: "lanes[1].boostSeconds", Detail: `must be 0 unless priority is "boost", got 60`},
		`{"priority":"boost",` + two + `86401}]}`: {Field: "lanes[1].boostSeconds", Detail: "must be a whole number from 0 to 86400, got 86401"},
		`{"priority":"boost",` + two + `-1}]}`:    {Field: "lanes[1].boostSeconds", Detail: "must be a whole number from 0 to 86400, got -1"},
		`{"priority":"boost",` + two + `"5"}]}`:   {Field: "lanes[1].boostSeconds", Detail: `must be a whole number from 0 to 86400, got "5"`},
		`{"priority":"boost","lanes":[{"name":"vip","weight":1,"boostSeconds":5}]}`: {
			Field: "lanes[0].boostSeconds", Detail: "must be 0: the first lane is the ordinary one, got 5"},
		`{"timeZone":"Mars/Base"}`: {Field: "timeZone", Detail: `must be the IANA name of a time zone such as Europe/Berlin or UTC, got "Mars/Base"`},
		`{"timeZone":""}`:          {Field: "timeZone", Detail: `must be the IANA name of a time zone such as Europe/Berlin or UTC, got ""`},
		`{"timeZone":"Local"}`:     {Field: "timeZone", Detail: `must be the IANA name of a time zone such as Europe/Berlin or UTC, got "Local"`},
		`{"timeZone":"../zone"}`:   {Field: "timeZone", Detail: `must be the IANA name of a time zone such as Europe/Berlin or UTC, got "../zone"`},
		`{"timeZone":2}`:           {Field: "timeZone", Detail: `must be the IANA name of a time zone such as Europe/Berlin or UTC, got 2`},
	} {
		_, err := room.Parse([]byte(text))
		var problems room.Problems
		require.ErrorAs(t, err, &problems, text)
		require.Equal(t, want, problems[0], text)
	}
	for _, priority := range []string{`"draw":true`, `"priority":"lottery"`} {
		_, err := room.Parse([]byte(`{"maxWaitSeconds":60,` + priority + `}`))
		require.ErrorContains(t, err, "maxWaitSeconds must be 0 where places go by lot, which do not say since when somebody waits, got 60")
	}
}

func TestLanesOfARoomThatLivesMayOnlyBeAddedTo(t *testing.T) {
	t.Parallel()
	lanes := func(names ...string) (s room.Settings) {
		s = room.Defaults()
		s.Lanes = nil
		for i, name := range names {
			s.Lanes = append(s.Lanes, room.Lane{Name: name, Weight: i + 1})
		}
		return s
	}
	before := lanes("standard", "vip")
	reweighed := lanes("standard", "vip")
	reweighed.Lanes[1].Weight = 9
	for _, next := range []room.Settings{before, reweighed, lanes("standard", "vip", "press", "staff")} {
		require.Empty(t, before.Continues(next))
	}
	for _, next := range []room.Settings{lanes("standard"), lanes("vip", "standard"), lanes("standard", "gold"), lanes("press", "standard", "vip")} {
		require.Len(t, before.Continues(next), 1)
	}
	require.Equal(t, "lanes", before.Continues(lanes("vip"))[0].Field)
	require.Equal(t, "must begin with the lanes that the room has, in their order (standard, vip), got vip; more may follow them, and a room made anew can have others",
		before.Continues(lanes("vip"))[0].Detail)
}
