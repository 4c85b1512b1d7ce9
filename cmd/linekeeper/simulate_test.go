package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/sim"
)

func TestSimulateKnowsEveryShape(t *testing.T) {
	t.Parallel()
	k, err := config.Parse(&cli{}, []string{"simulate"}, func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	for _, n := range k.Model.Children {
		if n.Name == "simulate" {
			require.Equal(t, sim.ShapeNames(), n.Positional[0].EnumSlice())
			return
		}
	}
	t.Fatal("no such command")
}

func TestSimulatePrintsDrawsAndListsARun(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	picture, list := filepath.Join(t.TempDir(), "run.svg"), filepath.Join(t.TempDir(), "run.csv")
	out := s.ok("simulate", "burst", "--length", "4m", "--lane", "vip=2,weight=7,wait=20s", "--lane", "standard=20,weight=3",
		"--batch", "50", "--svg", picture, "--csv", list)
	for _, part := range []string{"burst: seven of ten", "vip", "standard", "at most 16 %", "no oscillation", "not known", "20s: MISSED"} {
		require.Contains(t, out, part)
	}
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(svg, new(any)))
	rows, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, 1+4*12, strings.Count(string(rows), "\n"))

	var got sim.Summary
	require.NoError(t, json.Unmarshal([]byte(s.ok("simulate", "--length", "2m", "--fixed", "--batch", "10", "-o", "json")), &got))
	require.Equal(t, "steady", got.Shape)
	require.InDelta(t, 1200, got.Lanes[0].Served, 15)
	require.False(t, got.Adaptive)
}

func TestSimulateSolvesOrSaysThatNoneWillDo(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	ask := func(more ...string) said {
		return s.run(append([]string{"simulate", "--solve", "--length", "10m", "--fixed", "--no-shows", "0",
			"--lane", "vip=5,wait=20s", "--lane", "standard=20,wait=2m"}, more...)...)
	}
	got := ask("--connections", "3")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "proposed")
	require.Contains(t, got.out, `adaptive=false 'lanes=[{"name":"vip","weight":`)
	require.NotContains(t, got.out, "MISSED")

	got = ask("--connections", "2")
	require.Equal(t, 3, got.code, got.out)
	require.Contains(t, got.err, "none will do: whatever the weights")
}

func TestSimulateRefusesWhatItCanNotRun(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--batch", "0", "--no-shows", "1"}, "the batch must be"},
		{[]string{"--batch", "0", "--no-shows", "1"}, "no-shows must be"},
		{[]string{"--lane", "vip"}, "must be like vip=5"},
		{[]string{"--lane", "vip=5,wait=soon"}, `has "wait=soon" in it`},
		{[]string{"--lane", "vip=5,colour=red"}, `has "colour=red" in it`},
		{[]string{"--solve", "--lane", "vip=5"}, "--solve needs a lane with a wait"},
		{[]string{"storm"}, "steady"},
		{[]string{"--length", "1s"}, "the run must take 1m to 24h"},
	} {
		got := s.run(append([]string{"simulate"}, c.args...)...)
		require.Equal(t, 2, got.code, "%v", c.args)
		require.Contains(t, got.err, c.says)
		require.Empty(t, got.out)
	}
	got := s.run("simulate", "--length", "1m", "--svg", filepath.Join(t.TempDir(), "none", "x.svg"))
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "no such file or directory")
}
