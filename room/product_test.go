package room_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
)

func TestParseNewTellsTheProblemsOfNameAndSettingsTogether(t *testing.T) {
	t.Parallel()
	_, _, err := room.ParseNew([]byte(`{"name":"A","settings":{"batchSize":0,"lanes":[{"name":"a"}]},"size":1}`))
	var problems room.Problems
	require.ErrorAs(t, err, &problems)
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	require.Equal(t, []string{"name", "settings.batchSize", "settings.lanes[0].weight", "size"}, fields)

	name, s, err := room.ParseNew([]byte(`{"name":"a"}`))
	require.NoError(t, err)
	require.Equal(t, "a", name)
	require.Empty(t, cmp.Diff(room.Defaults(), s))
	_, _, err = room.ParseNew([]byte(`{"name":"a","settings":[]}`))
	require.ErrorAs(t, err, &problems)
}

func TestParseProductWantsAllThreeFieldsInRange(t *testing.T) {
	t.Parallel()
	p, err := room.ParseProduct("demo", []byte(`{"stock":5,"priceCents":1999,"currency":"EUR"}`))
	require.NoError(t, err)
	require.Equal(t, room.Product{SKU: "demo", Stock: 5, PriceCents: 1999, Currency: "EUR"}, p)
	for _, body := range []string{`{}`, `{"stock":-1,"priceCents":-1,"currency":"eur"}`, `{"stock":1e3,"priceCents":0.5,"currency":"EURO"}`} {
		_, err := room.ParseProduct("demo", []byte(body))
		var problems room.Problems
		require.ErrorAs(t, err, &problems, body)
		require.Len(t, problems, 3, body)
	}
	_, err = room.ParseProduct("demo", []byte(`{"stock":5,"priceCents":1,"currency":"EUR","sku":"x"}`))
	require.Equal(t, room.Problems{{Field: "sku", Detail: "is not a property of a product"}}, err)
}
