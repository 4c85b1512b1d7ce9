//go:build faults

package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// minMutants is how many broken variants a whole run has to catch: a checker
// that has never failed is no evidence.
const minMutants = 14

// Tally is what one run of this test binary has shown. It is safe for
// concurrent use.
type Tally struct {
	mu                                      sync.Mutex
	histories, ops, unknown, faults, broken int
	mutants                                 map[string]string // name -> the check that caught it, "" for none
}

// tally is the one of this test binary: TestMain and the tests have no other
// way to hand something to each other.
var tally Tally

// History adds a history that has been checked: how many calls its clients
// made, how many of these have an outcome that nobody knows, and how many
// violations were found. A history of a mutant does not belong here, because its
// violations are wanted.
func (t *Tally) History(ops, unknown, violations int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.histories++
	t.ops += ops
	t.unknown += unknown
	t.broken += violations
}

// Faults adds faults that have happened.
func (t *Tally) Faults(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults += n
}

// Mutant declares a mutant that this run has to catch.
func (t *Tally) Mutant(name string) { t.caught(name, "") }

// Caught says which check has caught a mutant.
func (t *Tally) Caught(name, check string) { t.caught(name, check) }

func (t *Tally) caught(name, check string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mutants == nil {
		t.mutants = map[string]string{}
	}
	if t.mutants[name] == "" {
		t.mutants[name] = check
	}
}

// String is the last line of a run.
func (t *Tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("verify: histories=%d ops=%d unknown=%d faults=%d violations=%d mutants=%d/%d",
		t.histories, t.ops, t.unknown, t.faults, t.broken, len(t.mutants)-len(t.escaped()), len(t.mutants))
}

// escaped are the mutants that no check has caught; t.mu is held.
func (t *Tally) escaped() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.mutants)), func(name string) bool { return t.mutants[name] != "" })
}

// Wrong says why the run has not shown what it had to; "" where it has. A whole
// run must have had something to show.
func (t *Tally) Wrong(whole bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	escaped := t.escaped()
	switch {
	case t.broken > 0:
		return fmt.Sprintf("%d violations", t.broken)
	case len(escaped) > 0:
		return "mutants that no check has caught: " + strings.Join(escaped, ", ")
	case whole && t.histories == 0:
		return "no history has been checked"
	case whole && len(t.mutants) < minMutants:
		return fmt.Sprintf("%d mutants have been tried, not %d", len(t.mutants), minMutants)
	}
	return ""
}
