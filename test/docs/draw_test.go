package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/draw"
)

// The first lines of the blocks of docs/draw.md.
const (
	verifyLine = `linekeeper draw verify entrants.jsonl --member ann \`
	byHandLine = "ROOM=tickets SALE=1 MEMBER=ann"
)

// drawn is a directory with the list of the draw that docs/draw.md shows.
func drawn(t *testing.T) (*installation, *draw.List) {
	t.Helper()
	seed, err := draw.ParseSeed("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
	require.NoError(t, err)
	d := draw.Draw{Room: "tickets", Sale: 1, Seed: seed}
	var placed []draw.Placed
	for i := range 50 {
		m := fmt.Sprintf("member-%d", i)
		if i == 0 {
			m = "ann"
		}
		placed = append(placed, draw.Placed{Member: m, Score: d.Key(d.Entrant(m), draw.Uniform, 1).First()})
	}
	l, err := d.List(draw.Uniform, []draw.Lane{{Name: "standard", Weight: 1}}, placed)
	require.NoError(t, err)
	in := &installation{t: t, dir: t.TempDir(), env: map[string]string{"PATH": bin(t) + ":" + os.Getenv("PATH")}}
	f, err := os.Create(filepath.Join(in.dir, "entrants.jsonl"))
	require.NoError(t, err)
	_, err = l.WriteTo(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return in, l
}

func TestADrawIsVerifiedAsWritten(t *testing.T) {
	t.Parallel()
	in, l := drawn(t)
	said := in.script(shell(t, "docs/draw.md", verifyLine))
	shown := regexp.MustCompile(`(?m)^    (ok .*)$`).FindAllStringSubmatch(section(t, "docs/draw.md", "## How a member checks it"), -1)
	var want []string
	for _, m := range shown {
		want = append(want, m[1])
	}
	require.Equal(t, want, strings.Split(strings.TrimSpace(said), "\n"), "docs/draw.md shows another answer")

	// The two lines of the list that are shown, but for hashes that are cut.
	p, _ := l.Proof("ann")
	text := string(block("json").FindStringSubmatch(read(t, "docs/draw.md"))[1])
	cut := func(h draw.Hash) string { return h.String()[:4] + "..." }
	require.Contains(t, text, fmt.Sprintf(`"commitment":"%s","seed":"%s...","entrants":50,"root":"%s"}`, cut(l.Commitment), l.Seed[:4], cut(l.Root)))
	require.Contains(t, text, fmt.Sprintf(`{"entrant":"%s","lane":0,"score":%d,"rank":%d}`, p.Entrant, p.Score, p.Rank))
}

func TestADrawIsCheckedByHandAsWritten(t *testing.T) {
	t.Parallel()
	in, l := drawn(t)
	in.needs("openssl")
	said := strings.Split(in.script(shell(t, "docs/draw.md", byHandLine)), "\n")
	p, _ := l.Proof("ann")
	require.Equal(t, "commitment: "+l.Commitment.String(), said[0])
	require.Equal(t, fmt.Sprintf("score: %d to %d", p.Score, p.Score+draw.Slots-1), said[1])
	require.Contains(t, said[2], fmt.Sprintf(`"score":%d,"rank":%d}`, p.Score, p.Rank))
}
