package room_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestOverbookIsANumberFromOneToTenWithThreeDecimals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"1": 1000, "1.0": 1000, "1.000": 1000, "1.2": 1200, "1.001": 1001, "1.005": 1005, "9.999": 9999, "10": 10_000, "10.000": 10_000} {
		s, err := room.Parse(fmt.Appendf(nil, `{"stock":"demo","overbook":%s}`, text))
		require.NoError(t, err, text)
		require.Equal(t, want, s.Rules().Overbook, text)
		again, err := room.Stored(marshal(t, s))
		require.NoError(t, err)
		require.Equal(t, s, again, "%s is stored as it is", text)
	}
	for _, text := range []string{"0", "0.9", "-1", "10.001", "11", "100", "1.0001", "1e0", "1.2e1", `"1.2"`, "true", "[]", "0.999"} {
		_, err := room.Parse(fmt.Appendf(nil, `{"stock":"demo","overbook":%s}`, text))
		var problems room.Problems
		require.ErrorAs(t, err, &problems, text)
		require.Equal(t, "overbook", problems[0].Field)
		require.Contains(t, problems[0].Detail, "must be a number from 1 to 10 with at most 3 decimals, got ")
	}
	s := room.Defaults()
	sku := "demo"
	s.Stock, s.Overbook = &sku, 1.00001
	require.Error(t, s.Validate(), "settings that were made in Go are judged too")
}

func TestOverbookNeedsAStock(t *testing.T) {
	t.Parallel()
	_, err := room.Parse([]byte(`{"overbook":1.2}`))
	require.Equal(t, room.Problems{{Field: "overbook", Detail: "must be 1 where stock is null, got 1.2"}}, err)

	cur, err := room.Parse([]byte(`{"stock":"demo","overbook":1.2}`))
	require.NoError(t, err)
	_, err = room.MergePatch(cur, []byte(`{"stock":null}`))
	require.Error(t, err, "taking the stock away leaves a factor of nothing")
	next, err := room.MergePatch(cur, []byte(`{"stock":null,"overbook":null}`))
	require.NoError(t, err)
	require.Zero(t, next.Rules().Overbook)
	require.Empty(t, next.Rules().Stock)
}
