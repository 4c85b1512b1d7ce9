package draw

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// seeded is the seed of a number: random enough, and the same in every run.
func seeded(n int) Seed {
	h := sha256.Sum256(fmt.Appendf(nil, "seed of a test %d", n))
	return Seed{hex.EncodeToString(h[:])}
}

func of(n int) Draw { return Draw{Room: "tickets", Sale: 3, Seed: seeded(n)} }

var (
	oneLane  = []Lane{{"standard", 1}}
	twoLanes = []Lane{{"vip", 7}, {"standard", 3}}
)

// entered lets so many members enter, the lanes in turn.
func entered(d Draw, order Order, lanes []Lane, n int) []Placed {
	placed := make([]Placed, n)
	for i := range placed {
		m, lane := fmt.Sprintf("member-%d", i+1), i%len(lanes)
		k := d.Key(d.Entrant(m), order, lanes[lane].Weight)
		placed[i] = Placed{m, lane, k.First() + int64(i%Slots)}
	}
	return placed
}

// listed is the list of a draw with so many members.
func listed(t testing.TB, d Draw, order Order, lanes []Lane, n int) *List {
	t.Helper()
	l, err := d.List(order, lanes, entered(d, order, lanes, n))
	require.NoError(t, err)
	return l
}

func document(t testing.TB, l *List) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := l.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	return b.Bytes()
}

func proofOf(t testing.TB, l *List, member string) []byte {
	t.Helper()
	p, ok := l.Proof(member)
	require.True(t, ok)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	return append(text, '\n')
}

func verified(t testing.TB, text []byte, want Expect) Report {
	t.Helper()
	r, err := Verify(bytes.NewReader(text), want)
	require.NoError(t, err)
	require.Equal(t, r.Valid, len(wrong(r)) == 0)
	require.NotEmpty(t, r.Checks, "a report that says nothing")
	return r
}

// wrong are the checks that failed.
func wrong(r Report) []string {
	var all []string
	for _, c := range r.Checks {
		if c.Level == Fail {
			all = append(all, c.Check+": "+c.Found)
		}
	}
	return all
}
