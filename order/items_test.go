package order

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestItemsAreSortedAndMerged(t *testing.T) {
	t.Parallel()
	got, err := normalise([]Item{{"b", 2}, {"a", 1}, {"b", 998}, {"C", 1000}})
	require.NoError(t, err)
	require.Equal(t, []Item{{"C", 1000}, {"a", 1}, {"b", 1000}}, got)
}

func TestInvalidItemIsNamed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	for _, tc := range []struct {
		name  string
		items []Item
		index int
		text  string
	}{
		{"none", nil, -1, "at least one item"},
		{"too many", distinct(51), -1, "51 different skus"},
		{"quantity 0", []Item{{"a", 1}, {"b", 0}}, 1, `items[1] (sku "b"): quantity 0 is not`},
		{"quantity below 0", []Item{{"a", -1}}, 0, "quantity -1"},
		{"quantity 1001", []Item{{"a", 1001}}, 0, "quantity 1001 is not"},
		{"1001 in all", []Item{{"a", 1000}, {"b", 1}, {"a", 1}}, 2, "quantity 1001 in all"},
		{"the largest int", []Item{{"a", 1}, {"a", 1<<63 - 1}}, 1, "is not between"},
		{"empty sku", []Item{{"", 1}}, 0, "a sku is"},
		{"65 characters", []Item{{long + "x", 1}}, 0, "a sku is"},
		{"first character", []Item{{".a", 1}}, 0, "a sku is"},
		{"other characters", []Item{{"a b", 1}}, 0, "a sku is"},
		{"line end", []Item{{"a\n", 1}}, 0, "a sku is"},
		{"not ASCII", []Item{{"ä", 1}}, 0, "a sku is"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := normalise(tc.items)
			require.ErrorIs(t, err, ErrInvalidItems)
			require.ErrorContains(t, err, tc.text)
			var invalid InvalidItemsError
			require.True(t, errors.As(err, &invalid))
			require.Equal(t, tc.index, invalid.Index)
		})
	}
	for _, items := range [][]Item{distinct(50), {{long, 1}}, {{"A.b_c-9", 1000}}, {{"a", 999}, {"a", 1}}, {{"0", 1}}} {
		_, err := normalise(items)
		require.NoError(t, err)
	}
}

func distinct(n int) []Item {
	items := make([]Item, n)
	for i := range items {
		items[i] = Item{SKU: fmt.Sprintf("sku-%d", i), Quantity: 1}
	}
	return items
}

func TestFingerprintTellsContentsApart(t *testing.T) {
	t.Parallel()
	contents := []struct {
		room  string
		items []Item
	}{
		{"r", []Item{{"a", 1}}},
		{"r", []Item{{"a", 2}}},
		{"r", []Item{{"b", 1}}},
		{"r", []Item{{"a", 1}, {"b", 1}}},
		{"r", []Item{{"ab", 1}}},
		{"ra", []Item{{"a", 1}}},
		{"r\x01a", []Item{{"", 1}}},  // would meet the first one without lengths
		{"r", []Item{{"a\x01b", 1}}}, // and this one two items
		{"r", []Item{{"a", 128}}},
	}
	seen := map[Fingerprint]int{}
	for i, c := range contents {
		print := fingerprint(c.room, c.items)
		require.NotContains(t, seen, print, "contents %d and %d", i, seen[print])
		seen[print] = i
	}
}

func TestFingerprintIgnoresHowItemsAreWritten(t *testing.T) {
	t.Parallel()
	one, err := normalise([]Item{{"a", 3}, {"b", 1}})
	require.NoError(t, err)
	other, err := normalise([]Item{{"b", 1}, {"a", 1}, {"a", 2}})
	require.NoError(t, err)
	require.Equal(t, fingerprint("r", one), fingerprint("r", other))
	require.True(t, slices.Equal(one, other))
}
