package credential

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
)

// openTo is what a process asks for, for a member who passes.
func openTo(member string) queue.Grant {
	return queue.Grant{Room: "sale", Sale: 3, Generation: 7, Member: member}
}

func TestAnOpenGrantIsTheSameForHalfItsLife(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{GenerateKey(), GenerateEd25519Key()} {
		ring, err := ParseRing(keys)
		require.NoError(t, err)
		other, err := ParseRing(keys)
		require.NoError(t, err)
		from, seen := time.Unix(1_800_000_000, 0), map[string]bool{}
		for second := range 300 {
			now := from.Add(time.Duration(second)*time.Second + 400*time.Millisecond)
			g, err := ring.OpenGrant(openTo("ann"), now, 100*time.Second)
			require.NoError(t, err)
			again, err := other.OpenGrant(openTo("ann"), now, 100*time.Second)
			require.NoError(t, err)
			require.Equal(t, g, again, "every process gives the same")
			left := g.Expiry.Sub(now)
			require.True(t, left > 49*time.Second && left <= 100*time.Second, "%v left", left)
			seen[g.ID] = true
		}
		require.Len(t, seen, 6, "one for every 50 seconds")
		for _, g := range []queue.Grant{
			openTo("bob"), {Room: "sales", Sale: 3, Generation: 7, Member: "ann"},
			{Room: "sale", Sale: 4, Generation: 7, Member: "ann"}, {Room: "sale", Sale: 3, Generation: 8, Member: "ann"},
		} {
			g, err := ring.OpenGrant(g, from, 100*time.Second)
			require.NoError(t, err)
			require.False(t, seen[g.ID], "%+v has the grant of another", g)
			seen[g.ID] = true
		}
		stranger, err := ParseRing(GenerateKey())
		require.NoError(t, err)
		g, err := stranger.OpenGrant(openTo("ann"), from, 100*time.Second)
		require.NoError(t, err)
		require.False(t, seen[g.ID], "the id can be made without the key")
	}
}

func TestAnOpenTokenIsMarkedAndHasNoPlace(t *testing.T) {
	t.Parallel()
	ring, err := ParseRing(GenerateKey())
	require.NoError(t, err)
	g, err := ring.OpenGrant(openTo("ann"), time.Unix(1_800_000_000, 0), 300*time.Second)
	require.NoError(t, err)
	token, err := ring.SignGrant(g)
	require.NoError(t, err)
	read, err := ring.Grant(token.Reveal())
	require.NoError(t, err)
	require.Equal(t, g, read)
	require.True(t, read.Open)
	_, err = ring.Ticket(token.Reveal())
	require.ErrorIs(t, err, ErrInvalid, "it is no ticket")

	for what, change := range map[string]func(*queue.Grant){
		"a place":           func(g *queue.Grant) { g.Place.Score = 1 },
		"a lane":            func(g *queue.Grant) { g.Place.Lane = 1 },
		"no sale":           func(g *queue.Grant) { g.Sale = 0 },
		"no generation":     func(g *queue.Grant) { g.Generation = 0 },
		"no mark, no place": func(g *queue.Grant) { g.Open = false },
	} {
		bad := g
		change(&bad)
		_, err := ring.SignGrant(bad)
		require.Error(t, err, what)
	}
}

// TestTheMarkOfAnOpenTokenCantBePutOn: neither on a token of the line, nor taken off.
func TestTheMarkOfAnOpenTokenCantBePutOn(t *testing.T) {
	t.Parallel()
	ring, err := ParseRing(GenerateKey())
	require.NoError(t, err)
	g, err := ring.OpenGrant(openTo("ann"), time.Unix(1_800_000_000, 0), 300*time.Second)
	require.NoError(t, err)
	marked, err := ring.SignGrant(g)
	require.NoError(t, err)
	g.Open, g.Place.Score = false, 1
	plain, err := ring.SignGrant(g)
	require.NoError(t, err)
	edit := func(text, from, to string) string {
		part := strings.Split(text, ".")
		b, err := base64.RawURLEncoding.DecodeString(part[1])
		require.NoError(t, err)
		require.Contains(t, string(b), from)
		part[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(b), from, to, 1)))
		return strings.Join(part, ".")
	}
	for _, text := range []string{
		edit(plain.Reveal(), `}`, `,"open":true}`), edit(marked.Reveal(), `,"open":true`, ``), edit(marked.Reveal(), `true`, `false`),
	} {
		_, err := ring.Grant(text)
		require.ErrorIs(t, err, ErrInvalid)
	}
}
