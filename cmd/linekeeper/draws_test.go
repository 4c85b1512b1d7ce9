package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/draw"
)

// drawn is a draw with so many members, as a room gives them their places.
func drawn(t *testing.T, n int) (draw.Draw, *draw.List) {
	t.Helper()
	d := draw.Draw{Room: "tickets", Sale: 1, Seed: draw.NewSeed()}
	placed := make([]draw.Placed, n)
	for i := range placed {
		m := fmt.Sprintf("member-%d", i)
		placed[i] = draw.Placed{Member: m, Score: d.Key(d.Entrant(m), draw.Uniform, 1).First() + int64(i%draw.Slots)}
	}
	l, err := d.List(draw.Uniform, []draw.Lane{{Name: "standard", Weight: 1}}, placed)
	require.NoError(t, err)
	return d, l
}

func entrants(t *testing.T, l *draw.List) string {
	t.Helper()
	var b bytes.Buffer
	_, err := l.WriteTo(&b)
	require.NoError(t, err)
	return b.String()
}

func TestADrawOfTenThousandIsVerifiedAndWhatWasChangedIsCaught(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	d, l := drawn(t, 10_000)
	list, commitment := entrants(t, l), d.Seed.Commitment().String()
	file := written(t, list)
	check := func(args ...string) said { return s.run(append([]string{"draw", "verify"}, args...)...) }

	got := check(file, "--member", "member-77", "--commitment", commitment, "--root", l.Root.String())
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `(?m)^ok +entrants +10000, each once, each at the place that the seed gives`, got.out)
	require.Regexp(t, `(?m)^ok +member +member-77 is entrant [0-9a-f]{64}, of lane standard, with \d+ ahead$`, got.out)
	require.NotContains(t, got.out, "warn")
	got = check(file)
	require.Zero(t, got.code)
	require.Regexp(t, `(?m)^warn +commitment +the seed is that of `+commitment, got.out)

	lines := strings.SplitAfter(list, "\n")
	_, other := drawn(t, 10_000)
	changed := map[string]string{
		"a line dropped":            list[:strings.Index(list, lines[5000])] + list[strings.Index(list, lines[5001]):],
		"a line twice":              strings.Replace(list, lines[5000], lines[5000]+lines[5000], 1),
		"two lines exchanged":       strings.Replace(list, lines[5000]+lines[5001], lines[5001]+lines[5000], 1),
		"a digit of a place":        strings.Replace(list, lines[5000], raised(lines[5000]), 1),
		"cut off":                   list[:len(list)-100],
		"another seed":              strings.Replace(list, d.Seed.Reveal(), other.Seed, 1),
		"another draw":              entrants(t, other),
		"line ends of DOS":          strings.ReplaceAll(list, "\n", "\r\n"),
		"an answer of a web server": "<html>",
		"nothing":                   "",
	}
	for name, text := range changed {
		got := check(written(t, text), "--commitment", commitment)
		require.Equal(t, 1, got.code, "%s: %s", name, got.out)
		require.Regexp(t, `(?m)^FAIL `, got.out, name)
		require.Equal(t, "linekeeper: this is not a fair draw, or not its document: see FAIL above\n", got.err)
	}
	got = check(file, "--commitment", other.Commitment.String())
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "the room was bound to "+other.Commitment.String())
	got = check(file, "--member", "mallory")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "mallory would be entrant "+d.Entrant("mallory").String()+", who is not here")
}

// raised has another digit in the score.
func raised(line string) string {
	before, score, _ := strings.Cut(line, `"score":`)
	digit := score[3] ^ 1
	return before + `"score":` + score[:3] + string(digit) + score[4:]
}

func TestAProofIsVerifiedFromStandardInput(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	d, l := drawn(t, 1000)
	p, ok := l.Proof("member-7")
	require.True(t, ok)
	text, err := json.MarshalIndent(p, "", "  ")
	require.NoError(t, err)
	args := []string{"draw", "verify", "-", "--member", "member-7", "--commitment", d.Seed.Commitment().String(), "--root", l.Root.String()}
	got := s.runWith(string(text), args...)
	require.Zero(t, got.code, got.out+got.err)
	require.Regexp(t, `(?m)^ok +place +score \d+ is one that the seed gives`, got.out)

	var report draw.Report
	require.NoError(t, json.Unmarshal([]byte(s.runWith(string(text), append(args, "-o", "json")...).out), &report))
	require.True(t, report.Valid)
	require.Equal(t, p.Entry, *report.Member)

	p.Rank++
	text, err = json.Marshal(p)
	require.NoError(t, err)
	got = s.runWith(string(text), args...)
	require.Equal(t, 1, got.code)
	require.Regexp(t, `(?m)^FAIL +root +computed `, got.out)
}

func TestWrongUseOfDrawVerifyIsToldAtOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	missing := filepath.Join(t.TempDir(), "entrants.jsonl")
	got := s.run("draw", "verify", missing)
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, missing)
	got = s.run("draw", "verify", missing, "--commitment", "xyz", "--root", "ABC", "--member", "a b")
	require.Equal(t, 2, got.code)
	for _, flag := range []string{"--member: an id has", "--commitment: want 64", "--root: want 64"} {
		require.Contains(t, got.err, flag)
	}
	require.Equal(t, 2, s.run("draw", "verify").code)
	got = s.run("draw", "verify", t.TempDir())
	require.Equal(t, 1, got.code, "a directory can be opened, not read")
	require.Contains(t, got.err, "read ")
}
