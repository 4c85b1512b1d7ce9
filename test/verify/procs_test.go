//go:build faults

package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/history"
)

// longRuns is how many fault runs a long verification makes.
const longRuns = 22

// TestThreeProcessesUnderFaultsBreakNoPromise runs the product as it is
// deployed: three processes, on servers and networks that a schedule breaks,
// for the length of a run; then everything is mended, everybody comes to an end,
// and the whole history is judged.
func TestThreeProcessesUnderFaultsBreakNoPromise(t *testing.T) {
	t.Parallel()
	seed, runs := seedOf(t), 1
	if long() {
		runs = longRuns
	}
	for i := range uint64(runs) {
		t.Run(fmt.Sprint("seed", seed+i), func(t *testing.T) {
			newFleet(t, seed+i).play(duration(t, 45*time.Second, 75*time.Second))
		})
	}
}

// play is a whole run.
func (f *fleet) play(length time.Duration) {
	t := f.t
	began := time.Now()
	serving, stopServing := context.WithCancel(t.Context())
	var stations, reading sync.WaitGroup
	for _, s := range f.stations {
		stations.Go(func() { s.run(serving) })
	}
	collecting, stopCollecting := context.WithCancel(t.Context())
	reading.Go(func() {
		if err := f.collector.Run(collecting); err != nil {
			t.Errorf("the journal can't be read: %v", err)
		}
	})
	defer func() { // also when the run is broken off
		stopServing()
		stations.Wait()
		stopCollecting()
		reading.Wait()
	}()

	schedule, happened := f.trouble(length)
	f.calm()
	stopServing()
	stations.Wait()
	stopCollecting()
	reading.Wait()
	f.judge(schedule, happened, time.Since(began))
}

// kindsOfRun is how many kinds of fault a run has.
const kindsOfRun = 14

// trouble lets the buyers in and breaks everything by the schedule. It returns
// when the buyers have come to an end, after the healing.
func (f *fleet) trouble(length time.Duration) (fault.Schedule, []fault.Happened) {
	t := f.t
	kinds := some(f.dice.Of("kinds"), f.kinds(), kindsOfRun)
	schedule := fault.Plan(f.seed, length-3*time.Second, 3*time.Second, kinds)
	f.note("plan: %s", f.plan)
	f.note("%s", schedule)

	open, shut := context.WithTimeout(t.Context(), length)
	defer shut()
	var crowd sync.WaitGroup
	crowd.Go(func() { f.crowd(open) })
	pause(open, 3*time.Second) // so that there is something to break
	happened, err := schedule.Run(open, func(h fault.Happened) { f.note("%s", h) })
	if err != nil {
		t.Errorf("the schedule: %v", err)
	}
	<-open.Done()
	f.heal()
	crowd.Wait()
	return schedule, happened
}

// heal takes all faults away and restarts the processes, one after the other,
// while orders of unknown outcome are still asked about.
func (f *fleet) heal() {
	f.note("all is mended")
	for _, s := range f.stations {
		ctx, cancel := context.WithTimeout(f.t.Context(), 30*time.Second)
		s.heal(ctx)
		cancel()
		f.untilServing(s)
	}
}

func (f *fleet) untilServing(s *station) {
	require.Eventually(f.t, func() bool { return s.process() != nil }, time.Minute, 20*time.Millisecond, "%s does not serve although all is mended", s.name)
}

// calm waits until all that time and the relay have to end has ended. The clock
// of Redis runs ahead meanwhile, in steps that the room takes for time passing.
func (f *fleet) calm() {
	t := f.t
	for _, s := range f.stations {
		s.commits.Settle()
	}
	require.NoError(t, f.set(t.Context(), func(s *room.Settings) {
		s.Paused, s.Capacity, s.BatchSize, s.IntervalMs, s.ForgetAfterSeconds = false, 0, 1000, 500, 60
	}))
	line := redisstore.New(f.redis.Client(), fleetPrefix)
	deadline := time.Now().Add(2 * time.Minute)
	for !f.settled() {
		if time.Now().After(deadline) {
			f.note("not everybody has come to an end")
			return // the checker says who has not
		}
		// Nobody polls any more, and who is not listened to is not forgotten.
		if err := line.Heard(t.Context(), fleetRoom, nil); err != nil {
			f.note("heard: %v", err)
		}
		require.NoError(t, f.stepClock(4*time.Second))
		pause(t.Context(), 500*time.Millisecond)
	}
}

func (f *fleet) settled() bool {
	final, err := history.ReadFinal(f.t.Context(), f.redis.Client(), f.pool, fleetPrefix, fleetRoom)
	return err == nil && final.Redis.Begun && final.Settled()
}

// judge checks the history, and that it was one worth checking.
func (f *fleet) judge(schedule fault.Schedule, happened []fault.Happened, took time.Duration) {
	t := f.t
	final, err := history.ReadFinal(t.Context(), f.redis.Client(), f.pool, fleetPrefix, fleetRoom)
	require.NoError(t, err)
	h := history.History{Room: history.Room{Name: fleetRoom}, Events: f.events.Events(), Journal: f.collector.Lives(), Final: final, Facts: f.facts}
	h.Facts.Quiesced = final.Settled()
	result := history.Examine(h)

	struck := len(happened)
	for _, s := range f.stations {
		struck += s.struck()
	}
	tally.History(result.Calls, result.Unknowns, len(result.Violations))
	tally.Faults(struck)
	orders := 0
	for _, o := range final.Orders {
		if !o.Void {
			orders++
		}
	}
	t.Logf("seed %d: %d calls, %d unknown, %d steps, %d lives, %d orders, %d faults of %d kinds in %v: %d violations, %d deviations",
		f.seed, result.Calls, result.Unknowns, result.Steps, len(h.Journal), orders, struck, schedule.Kinds(), took.Round(time.Second),
		len(result.Violations), len(result.Deviations))

	for _, d := range result.Deviations {
		t.Logf("seed %d: explained by a loss, or not to be judged, %d times: %s: %s", f.seed, d.Count, d.Check, d.Text)
	}
	for _, v := range result.Violations[:min(len(result.Violations), 5)] {
		t.Errorf("seed %d: %s", f.seed, v)
	}
	if !h.Facts.Quiesced {
		t.Errorf("seed %d: not everything has come to an end", f.seed)
	}
	f.worthwhile(schedule, result, orders)
	f.processesAreSound()
	f.clocksAreOff()
	if t.Failed() {
		f.report(h)
	}
}

// worthwhile fails a run that has shown nothing.
func (f *fleet) worthwhile(schedule fault.Schedule, result history.Result, orders int) {
	require.GreaterOrEqual(f.t, schedule.Kinds(), 8, "too few kinds of fault")
	if orders < 20 || result.Calls < 500 || result.Unknowns == 0 {
		f.t.Errorf("seed %d: %d orders, %d calls, %d of unknown outcome: that shows nothing", f.seed, orders, result.Calls, result.Unknowns)
	}
}

// processesAreSound looks at what the processes have said.
func (f *fleet) processesAreSound() {
	for _, s := range f.stations {
		for _, p := range s.past {
			for _, bad := range []string{"DATA RACE", "panic:", "request failed"} {
				if at := strings.Index(p.Said(), bad); at >= 0 {
					f.t.Errorf("%s has said: %.2000s", s.name, p.Said()[max(0, at-300):])
				}
			}
		}
	}
}

// clocksAreOff makes sure that the wall clocks were as wrong as they should be,
// by what the processes have written into their logs.
func (f *fleet) clocksAreOff() {
	if os.Getenv(envClocks) == "" {
		return
	}
	for _, s := range f.stations {
		for _, p := range s.past {
			for _, line := range p.Logged("serving") {
				at, err := time.Parse(time.RFC3339, fmt.Sprint(line["time"]))
				require.NoError(f.t, err)
				require.InDelta(f.t, s.ahead, time.Until(at).Seconds(), 400, "%s: its wall clock is not off by %d s", s.name, s.ahead)
			}
		}
	}
}

// report keeps what is needed to understand a failure.
func (f *fleet) report(h history.History) {
	dir := keep(f.t, fmt.Sprint("procs-", f.seed))
	if err := h.Write(dir); err != nil {
		f.t.Errorf("keep the history: %v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = os.WriteFile(filepath.Join(dir, "faults.txt"), []byte(strings.Join(f.log, "\n")+"\n"), 0o600)
	for _, s := range f.stations {
		for i, p := range s.past {
			_ = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.log", s.name, i)), []byte(p.Said()), 0o600)
		}
	}
}
