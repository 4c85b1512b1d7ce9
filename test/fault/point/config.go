//go:build faults

package point

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/linekeeper/linekeeper/test/fault/catalog"
)

// What a process is told by its environment.
const (
	// EnvPoints arms failpoints: "O3-claimed=kill@0.01;T1-reserved=sleep:2s@0.05",
	// each name=action@probability. Actions are kill (SIGKILL), stop (SIGSTOP)
	// and sleep:DURATION; without a probability every pass is hit.
	EnvPoints = "LINEKEEPER_FAULTPOINTS"
	// EnvSeed makes the same passes of a point be hit again: a whole number, 0 if unset.
	EnvSeed = "LINEKEEPER_FAULT_SEED"
	// EnvMutant names the one mutant that is alive.
	EnvMutant = "LINEKEEPER_MUTANT"
	// EnvSkew is how far the clock of this process is off, for the mutant that
	// trusts it: a duration, which may be negative.
	EnvSkew = "LINEKEEPER_CLOCK_SKEW"
)

// settings is what the environment says, checked as a whole: a run whose
// faults are misspelt would prove nothing, and must not start.
type settings struct {
	armed  map[string]*armed
	mutant string
	skew   time.Duration
}

// armed is what happens at a point, and how often.
type armed struct {
	action string
	pause  time.Duration // of sleep
	odds   float64

	mu   sync.Mutex
	dice *rand.Rand // of this point alone, so that other points do not disturb it
}

// hit rolls the dice.
func (a *armed) hit() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dice.Float64() < a.odds
}

func read(getenv func(string) string) (settings, error) {
	var seed uint64
	var err error
	s := settings{mutant: getenv(EnvMutant)}
	if text := getenv(EnvSeed); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return s, fmt.Errorf("%s: %q is not a whole number", EnvSeed, text)
		}
	}
	if text := getenv(EnvSkew); text != "" {
		if s.skew, err = time.ParseDuration(text); err != nil {
			return s, fmt.Errorf("%s: %q is not a duration", EnvSkew, text)
		}
	}
	if s.mutant != "" && !slices.ContainsFunc(catalog.Mutants, func(m catalog.Mutant) bool { return m.Name == s.mutant }) {
		return s, fmt.Errorf("%s: there is no mutant %q", EnvMutant, s.mutant)
	}
	if s.armed, err = arm(getenv(EnvPoints), seed); err != nil {
		return s, fmt.Errorf("%s: %w", EnvPoints, err)
	}
	return s, nil
}

func arm(text string, seed uint64) (map[string]*armed, error) {
	out := map[string]*armed{}
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, rest, found := strings.Cut(strings.TrimSpace(part), "=")
		if !found {
			return nil, fmt.Errorf("%q is not name=action@probability", part)
		}
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("there is no failpoint %q", name)
		}
		if out[name] != nil {
			return nil, fmt.Errorf("failpoint %s is named twice", name)
		}
		a, err := action(rest)
		if err != nil {
			return nil, fmt.Errorf("failpoint %s: %w", name, err)
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(name)) // never fails
		a.dice = rand.New(rand.NewPCG(seed, h.Sum64()))
		out[name] = a
	}
	return out, nil
}

func action(text string) (*armed, error) {
	verb, odds, some := strings.Cut(text, "@")
	a := &armed{action: verb, odds: 1}
	var err error
	if some {
		if a.odds, err = strconv.ParseFloat(odds, 64); err != nil || !(a.odds >= 0 && a.odds <= 1) {
			return nil, fmt.Errorf("%q is not a probability", odds)
		}
	}
	verb, pause, sleeps := strings.Cut(verb, ":")
	switch {
	case sleeps && verb == "sleep":
		a.action = verb
		if a.pause, err = time.ParseDuration(pause); err != nil || a.pause <= 0 {
			return nil, fmt.Errorf("%q is not a time to sleep", pause)
		}
	case sleeps || verb != "kill" && verb != "stop":
		return nil, fmt.Errorf("%q is not kill, stop or sleep:DURATION", text)
	}
	return a, nil
}

// env is read once, before anything else of the program runs: scripts are built
// while packages are initialised.
var env = func() settings {
	s, err := read(os.Getenv)
	if err != nil {
		panic("point: " + err.Error())
	}
	return s
}()
