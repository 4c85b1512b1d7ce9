package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/room"
)

func TestAssignmentsTakeTheTypesOfTheSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, `{}`},
		{[]string{"batchSize=100", "paused=true"}, `{"batchSize":100,"paused":true}`},
		{[]string{"opensAt=2026-11-27T12:00:00Z"}, `{"opensAt":"2026-11-27T12:00:00Z"}`},
		{[]string{"opensAt=", "closesAt=null"}, `{"opensAt":null,"closesAt":null}`},
		{[]string{"message.en=Back = soon", "message.de=12"}, `{"message":{"en":"Back = soon","de":"12"}}`},
		{[]string{"message.en="}, `{"message":{"en":null}}`},
		{[]string{`message={"en":"x"}`}, `{"message":{"en":"x"}}`},
		{[]string{"returnUrls=https://a.example,https://b.example"}, `{"returnUrls":["https://a.example","https://b.example"]}`},
		{[]string{`returnUrls=["https://a.example"]`}, `{"returnUrls":["https://a.example"]}`},
		{[]string{`lanes=[{"name":"one","weight":2}]`}, `{"lanes":[{"name":"one","weight":2}]}`},
		{[]string{"stock=17", "overbook=1.25"}, `{"stock":"17","overbook":1.25}`},
		{[]string{"priority=ratio"}, `{"priority":"ratio"}`},
	} {
		patch, err := cli.ParseAssignments(c.args)
		require.NoError(t, err, "%v", c.args)
		require.JSONEq(t, c.want, string(patch), "%v", c.args)
	}
}

func TestAssignmentsThatCantBeAreAllToldAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		arg, field, detail string
	}{
		{"batchSize", "batchSize", "must be written as setting=value"},
		{"batchsize=1", "batchsize", "did you mean batchSize?"},
		{"what=1", "what", "config docs"},
		{"batchSize=abc", "batchSize", `from 1 to 10000, got "abc"`},
		{"batchSize=007", "batchSize", `from 1 to 10000, got "007"`},
		{"batchSize=0", "batchSize", "from 1 to 10000, got 0"},
		{"batchSize.x=1", "batchSize.x", "has no parts"},
		{"paused=yes", "paused", "true or false"},
		{"opensAt=tomorrow", "opensAt", "RFC 3339"},
		{"stock=a b", "stock", "a product's sku"},
		{"overbook=0.5", "overbook", "from 1 to 10 with at most 3 decimals, got 0.5"},
		{"binding=tight", "binding", `one of ["off" "observe" "strict"]`},
		{"message.en=\x00", "message.en", "without control"},
	} {
		_, err := cli.ParseAssignments([]string{"intervalMs=1", c.arg})
		var problems room.Problems
		require.ErrorAs(t, err, &problems, c.arg)
		require.Len(t, problems, 2, "%s: %v", c.arg, problems)
		require.Contains(t, err.Error(), "intervalMs must be", c.arg)
		require.Contains(t, err.Error(), c.field+" ", c.arg)
		require.Contains(t, err.Error(), c.detail, c.arg)
	}
	for _, twice := range [][]string{{"batchSize=1", "batchSize=2"}, {"message.en=a", "message.en=b"}, {"message.en=a", "message={}"}, {"message={}", "message.en=a"}} {
		_, err := cli.ParseAssignments(twice)
		require.ErrorContains(t, err, "is there twice", "%v", twice)
	}
}

// Two settings bound each other. Alone, each value that its own range allows
// must pass here, whatever the room has: only the API can judge it.
func TestNoValueThatIsRightAloneIsRefused(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{
		"entryTokenTtlSeconds=15", "claimLeaseSeconds=300", "forgetAfterSeconds=60", "settleSeconds=600",
		"opensAt=2199-01-01T00:00:00Z", "admitsAt=2000-01-01T00:00:00Z", "closesAt=2000-01-01T00:00:00Z", "draw=true",
		"overbook=1.2", "stock=",
	} {
		_, err := cli.ParseAssignments([]string{arg})
		require.NoError(t, err, arg)
	}
	_, err := cli.ParseAssignments([]string{"opensAt=2027-01-02T00:00:00Z", "closesAt=2027-01-01T00:00:00Z"})
	require.ErrorContains(t, err, "closesAt must not be before opensAt")
}
