package draw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// kept is what is kept of a list.
func kept(l *List) (roots []Hash, bodies [][]byte) {
	for p := range l.Pieces() {
		roots, bodies = append(roots, p.Root), append(bodies, p.Body)
	}
	return roots, bodies
}

func TestPiecesAreTheWholeDocument(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, PieceLines - 1, PieceLines, PieceLines + 1, 3*PieceLines + 5} {
		l := listed(t, of(n), Uniform, oneLane, n)
		var b bytes.Buffer
		require.NoError(t, l.WriteHeader(&b))
		roots, bodies := kept(l)
		for _, body := range bodies {
			b.Write(body)
		}
		require.Equal(t, document(t, l), b.Bytes(), "%d entrants", n)
		require.Equal(t, roots, append(roots[:0:0], ReadHashes(AppendHashes(nil, roots...))...))
	}
}

func TestAProofFromAPieceIsTheOneFromTheList(t *testing.T) {
	t.Parallel()
	const n = 2*PieceLines + 77
	l := listed(t, of(1), Uniform, twoLanes, n)
	roots, bodies := kept(l)
	for _, m := range []int{1, 2, 900, 1500, n} {
		name := fmt.Sprintf("member-%d", m)
		want, _ := l.Proof(name)
		found := false
		for number, body := range bodies {
			got, ok, err := Prove(l.Header, roots, number, body, l.draw.Entrant(name))
			require.NoError(t, err)
			if !ok {
				continue
			}
			found = true
			require.Equal(t, want, got)
			text, err := json.Marshal(got)
			require.NoError(t, err)
			require.True(t, verified(t, text, Expect{Member: name, Root: l.Root}).Valid)
		}
		require.True(t, found, name)
	}
}

func TestADamagedPieceProvesNothing(t *testing.T) {
	t.Parallel()
	l := listed(t, of(2), Uniform, oneLane, 50)
	roots, bodies := kept(l)
	moved := bytes.Replace(bodies[0], []byte(`"rank":7}`), []byte(`"rank":8}`), 1)
	for i := range 50 {
		_, ok, err := Prove(l.Header, roots, 0, moved, l.entries[i].Entrant)
		require.False(t, ok)
		require.ErrorIs(t, err, errPiece)
	}
	_, _, err := Prove(l.Header, roots, 1, bodies[0], l.entries[0].Entrant)
	require.ErrorIs(t, err, errPiece)
	_, _, err = Prove(l.Header, roots, 0, []byte("{}\n"), l.entries[0].Entrant)
	require.ErrorIs(t, err, errForm)
}

func TestAPlanGivesTheKeyThatVerifyRecomputes(t *testing.T) {
	t.Parallel()
	for _, order := range []Order{Uniform, Weighted} {
		p := Plan{of(3), order, twoLanes}
		var placed []Placed
		for i := range 200 {
			m := fmt.Sprint("m", i)
			placed = append(placed, Placed{m, i % 2, p.First(m, i%2)})
		}
		l, err := p.List(placed)
		require.NoError(t, err)
		require.True(t, verified(t, document(t, l), Expect{}).Valid)
	}
	require.Equal(t, Plan{of(3), Weighted, oneLane}.First("m", 0), Plan{of(3), Weighted, twoLanes}.First("m", 9), "weight 1")
}
