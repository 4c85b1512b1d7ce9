package bots

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	table  = flag.Bool("table", false, "write the table of docs/bots.md again")
	people = flag.Int("people", 1000, "how many people come")
	bots   = flag.Int("bots", 5000, "how many places the bots want")
)

// result is what came of a sale.
type result struct {
	share float64       // of the first places, as many as there are people, that bots have
	wait  time.Duration // the median of what people waited from coming to having a place
	asked int           // requests
}

// sale lets a crowd loose on a defence.
func sale(t *testing.T, d defence, c crowd) result {
	t.Helper()
	w := open(t, d, c)
	for i := range c.people {
		came := time.Second + time.Duration(w.dice.ExpFloat64()*3*float64(time.Second))
		if d.lobby {
			came = time.Duration(w.dice.Float64() * float64(lobby-time.Minute))
		}
		w.comes(i, came)
	}
	w.floods(c)
	end, over := 5*time.Minute, func() bool { return len(w.people) == c.people && w.places >= c.people }
	if d.lobby {
		end, over = lobby-time.Second, func() bool { return false }
	}
	w.play(end, over)
	t.Logf("%s: %v", d.name, w)
	return result{w.share(c.people), median(w.people), w.asked}
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// The shares are those of the table: a small crowd has small bots.
func TestEachDefenceLowersTheShareOfBots(t *testing.T) {
	t.Parallel()
	share := func(name string, keeps bool) float64 { return sale(t, named(name), thousand(100, 500, keeps)).share }
	none := share("none", true)
	require.Greater(t, none, 0.9, "who is first is first: bots have nearly every place")
	require.Zero(t, share("`enterNeedsTicket`", false), "bots that keep no ticket get nothing")
	require.Greater(t, share("`enterNeedsTicket`", true), 0.9, "and against those that do it is nothing")

	fixed, dearer := share("proof of work, 20 bits", true), share("proof of work, 22 bits", true)
	require.Zero(t, share("proof of work, 20 bits", false))
	require.Less(t, fixed, none-0.1)
	require.Less(t, dearer, fixed)
	require.Less(t, share("proof of work, 18 to 24 bits", true), none-0.1)
	require.Less(t, share("outside challenge", true), none-0.3)

	drawn := share("lobby of 5 minutes and a draw", true)
	require.InDelta(t, 500.0/600, drawn, 0.15, "a draw makes speed worthless, and numbers not")
	require.Less(t, share("the same and an outside challenge", true), drawn)
}

// TestTable writes docs/bots.md again, with -table.
func TestTable(t *testing.T) {
	if !*table {
		t.Skip("only with -table: make bots")
	}
	var b strings.Builder
	b.WriteString("| defence | bots that keep nothing | bots that do all that clients do | median wait for a place, of people |\n|---|---|---|---|\n")
	for _, d := range defences {
		plain := sale(t, d, thousand(*people, *bots, false))
		full := sale(t, d, thousand(*people, *bots, true))
		fmt.Fprintf(&b, "| %s | %.0f %% | %.0f %% | %.1f s |\n", d.name, 100*plain.share, 100*full.share, full.wait.Seconds())
	}
	const page = "../../docs/bots.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(text), "<!-- measured -->\n")
	require.True(t, found)
	_, tail, found := strings.Cut(rest, "<!-- /measured -->\n")
	require.True(t, found)
	made := fmt.Sprintf("%s<!-- measured -->\nMade by `make bots` with %d people and bots that want %d places, on %s.\n\n%s<!-- /measured -->\n%s",
		head, *people, *bots, machine(), b.String(), tail)
	require.NoError(t, os.WriteFile(page, []byte(made), 0o644))
}

func machine() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	model := "an unknown processor"
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
		}
	}
	return fmt.Sprintf("%s/%s, %d cores (%s), %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model, runtime.Version())
}
