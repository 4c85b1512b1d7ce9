//go:build faults

package verify

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/linekeeper/linekeeper/test/fault/catalog"
	"github.com/linekeeper/linekeeper/test/fault/point"
	"github.com/linekeeper/linekeeper/test/harness"
	"github.com/linekeeper/linekeeper/test/history"
)

// mutant is alive in this process. It is for one test alone.
var mutant = os.Getenv(point.EnvMutant)

const (
	// mutantWorkers is how many mutants are hunted at once.
	mutantWorkers = 2
	// mutantSeeds is how many histories a mutant may survive.
	mutantSeeds = 150
)

// betraying is the theme under which a mutant shows, where it seldom shows under
// others: then its histories alone are run, which only saves time.
var betraying = map[string]string{
	"consume-by-member": "events", "id-cursor-outbox": "events", "no-unique-grant": "commits", "release-any-claim": "sold out",
	"capacity-by-counter": "little room", "capacity-without-claimed": "little room", "issue-without-term": "ticks",
	"moving-floor": "losses", "restore-ended": "losses", "leave-any-place": "comings and goings", "claim-after-expiry": "clocks",
	"weights-ignored": "lanes", "idle-lane-credit": "lanes", "lane-by-lane": "lanes", "lift-all": "lanes",
	"stock-without-consumed": "stock",
	"early-admission":        "schedules", "believed-batch": "schedules",
	"straight-in-free": "straight in", "straight-in-past-who-waits": "straight in", "straight-in-twice": "straight in", "release-not-spent": "straight in",
	"group-answers-first": "groups",
	"draw-not-awaited":    "draws", "late-lot": "draws",
}

// TestTheCheckerCatchesEveryMutant breaks the product in every way that the
// catalogue knows, one at a time, and demands that the same histories that show
// nothing of the product itself show it, by the check of the promise it breaks.
func TestTheCheckerCatchesEveryMutant(t *testing.T) {
	if mutant != "" {
		t.Skip("a mutant is alive")
	}
	slots := make(chan struct{}, mutantWorkers)
	redis, dsn := harness.Redis(t).Options().Addr, harness.DSN(t)
	for _, m := range catalog.Mutants {
		tally.Mutant(m.Name)
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			check := hunt(t, m, "LINEKEEPER_TEST_REDIS_URL=redis://"+redis, "LINEKEEPER_TEST_DATABASE_URL="+dsn)
			if check == "" {
				t.Errorf("not caught in %d histories: %s; it breaks %s", mutantSeeds, m.Breaks, m.Caught)
				return
			}
			tally.Caught(m.Name, check)
			t.Logf("caught by %s", check)
		})
	}
}

// hunt runs histories with a mutant alive, in a process of its own: scripts are
// built when a process starts. It returns the check that has caught it.
func hunt(t *testing.T, m catalog.Mutant, env ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestMutantAtLarge$", "-test.v", "-test.timeout=8m")
	cmd.Env = append(append(os.Environ(), point.EnvMutant+"="+m.Name), env...)
	out, err := cmd.CombinedOutput()
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if _, check, found := strings.Cut(lines.Text(), caughtBy); found {
			return check
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, tail(out))
	}
	return ""
}

const caughtBy = "mutant caught by: "

func tail(out []byte) []byte { return out[max(0, len(out)-3000):] }

// promises are the numbers in a text.
var promises = regexp.MustCompile(`I[0-9]+`)

// TestMutantAtLarge is the other half of hunt: it stops at the first history
// that breaks the promise which the mutant is known to break.
func TestMutantAtLarge(t *testing.T) {
	if mutant == "" {
		t.Skip("no mutant is alive")
	}
	var wanted []string
	for _, m := range catalog.Mutants {
		if m.Name == mutant {
			wanted = promises.FindAllString(m.Caught, -1)
		}
	}
	seeds := huntingSeeds(betraying[mutant])
	var next atomic.Uint64
	var once sync.Once
	for i := range simWorkers {
		t.Run(fmt.Sprint("worker", i), func(t *testing.T) {
			t.Parallel()
			at := newSite(t)
			for i := next.Add(1) - 1; i < uint64(len(seeds)); i = next.Add(1) - 1 {
				seed := seeds[i]
				_, h := live(t, at, seed)
				if v := betrayed(history.Check(h), wanted); v != nil {
					once.Do(func() { fmt.Printf("%s%s (seed %d)\n", caughtBy, v.Check, seed) })
					next.Store(mutantSeeds * 2)
				}
			}
		})
	}
}

// huntingSeeds are those of one theme alone, if there is one; else all.
func huntingSeeds(name string) []uint64 {
	var seeds []uint64
	for seed := uint64(0); len(seeds) < mutantSeeds; seed++ {
		if name == "" || themeOf(seed).name == name {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// betrayed finds the violation of a promise that is wanted; of any, if none is.
func betrayed(violations []history.Violation, wanted []string) *history.Violation {
	for i, v := range violations {
		if len(wanted) == 0 {
			return &violations[i]
		}
		for _, p := range wanted {
			if v.Promise == p {
				return &violations[i]
			}
		}
	}
	return nil
}
