package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/room"
)

func rooms(t *testing.T, yaml string) cli.Rooms {
	t.Helper()
	r, err := cli.ReadRooms(strings.NewReader(yaml))
	require.NoError(t, err)
	return r
}

const file = `
rooms:
  tickets:
    batchSize: 100
    opensAt: 2026-11-27T12:00:00+01:00
    message: {en: "Soon", no: "Snart"}
  fresh:
    paused: true
  plain:
`

func TestApplyMakesRoomsAsTheFileSaysAndNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("tickets", func(s *room.Settings) { s.Capacity, s.Message = 70, map[string]string{"de": "Bald"} })
	f.create("bystander", nil)

	plan, err := f.Plan(t.Context(), rooms(t, file))
	require.NoError(t, err)
	v, err := plan.View()
	require.NoError(t, err)
	require.Equal(t, `create room fresh
  paused false -> true
create room plain
change room tickets
  batchSize 50 -> 100
  opensAt null -> "2026-11-27T11:00:00Z"
  message {"de":"Bald"} -> {"de":"Bald","en":"Soon","no":"Snart"}
`, shown(t, v))
	require.EqualValues(t, 1, f.get("tickets").Version, "a plan changes nothing")
	_, err = f.GetRoom(t.Context(), "fresh")
	require.Equal(t, "room-not-found", refusal(t, err).Code, "a plan makes nothing")

	require.NoError(t, f.Apply(t.Context(), plan))
	require.Equal(t, 100, f.get("tickets").Settings.BatchSize)
	require.Equal(t, 70, f.get("tickets").Settings.Capacity, "what is not named stays")
	require.True(t, f.get("fresh").Settings.Paused)
	require.Equal(t, room.Defaults(), f.get("plain").Settings)
	require.EqualValues(t, 1, f.get("bystander").Version, "what is not named is nobody's business")

	plan, err = f.Plan(t.Context(), rooms(t, file))
	require.NoError(t, err)
	v, err = plan.View()
	require.NoError(t, err)
	require.Equal(t, "unchanged room fresh\nunchanged room plain\nunchanged room tickets\n", shown(t, v))
	require.NoError(t, f.Apply(t.Context(), plan))
	require.EqualValues(t, 2, f.get("tickets").Version)
}

func TestNullGivesTheDefaultBack(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("tickets", func(s *room.Settings) { s.BatchSize = 7 })
	plan, err := f.Plan(t.Context(), rooms(t, "rooms: {tickets: {batchSize: null}}"))
	require.NoError(t, err)
	require.NoError(t, f.Apply(t.Context(), plan))
	require.Equal(t, 50, f.get("tickets").Settings.BatchSize)
}

func TestApplyOfAStalePlanIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("tickets", nil)
	plan, err := f.Plan(t.Context(), rooms(t, "rooms: {tickets: {batchSize: 9}}"))
	require.NoError(t, err)
	_, err = f.PatchRoom(t.Context(), "tickets", 0, []byte(`{"batchSize":8}`))
	require.NoError(t, err)
	err = f.Apply(t.Context(), plan)
	require.Equal(t, "precondition-failed", refusal(t, err).Code)
	require.ErrorContains(t, err, "room tickets: ")
	require.Equal(t, 8, f.get("tickets").Settings.BatchSize)
}

func TestPlanSaysWhatDoesNotGoTogetherInTheRoom(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("tickets", func(s *room.Settings) { s.ClaimLeaseSeconds = 60 })
	_, err := f.Plan(t.Context(), rooms(t, "rooms: {tickets: {entryTokenTtlSeconds: 30}}"))
	require.ErrorContains(t, err, "room tickets: entryTokenTtlSeconds must be at least claimLeaseSeconds (60), got 30")
}

func TestFileOfRoomsIsReadStrictly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "names no rooms",
		"rooms: {}":                            "names no rooms",
		"rooms: [":                             "can't be read",
		"room: {a: {}}":                        "field room not found",
		"rooms: {a: {}, a: {}}":                "already defined",
		"rooms: {A: {}}":                       "no room can have this name",
		"rooms: {a: {batchSize: 0}}":           "room a: batchSize must be a whole number",
		"rooms: {a: {foo: 1}, b: {bar: 2}}":    "room b: bar is not a setting",
		"rooms: {a: {}}\n---\nrooms: {b: {}}":  "more than one document",
		"rooms: {a: &x {message: {en: *x}}}\n": "can't be read",
	} {
		_, err := cli.ReadRooms(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "\n  ", text)
	}
	_, err := cli.ReadRooms(strings.NewReader("rooms: {a: {foo: 1}, b: {bar: 2}}"))
	require.ErrorContains(t, err, "room a: foo is not a setting", "all that is wrong is told")
}

func TestPlanSaysThatLanesOfARoomThatLivesStay(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create("tickets", nil)
	const other = "rooms: {tickets: {lanes: [{name: gold, weight: 1}]}}"
	plan, err := f.Plan(t.Context(), rooms(t, other))
	require.NoError(t, err, "a room that was never begun")
	require.NoError(t, f.Apply(t.Context(), plan))
	_, err = f.store.Begin(t.Context(), "tickets", 0)
	require.NoError(t, err)
	_, err = f.Plan(t.Context(), rooms(t, "rooms: {tickets: {lanes: [{name: standard, weight: 1}]}}"))
	require.ErrorContains(t, err, "room tickets: lanes must begin with the lanes that the room has, in their order (gold), got standard")
	_, err = f.Plan(t.Context(), rooms(t, "rooms: {tickets: {lanes: [{name: gold, weight: 3}, {name: vip, weight: 7}]}}"))
	require.NoError(t, err)
}
