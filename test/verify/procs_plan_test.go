//go:build faults

package verify

import (
	"fmt"
	"strings"
	"time"

	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/fault/catalog"
)

// fleetPlan is what a seed decides about a fleet before it starts.
type fleetPlan struct {
	settings   room.Settings
	appendOnly bool    // Redis keeps an append-only file, put to disk every second
	header     bool    // members are named by a proxy; otherwise by their tickets
	lock       string  // LINEKEEPER_LEADER_TTL
	buyers     int     // at a time
	commits    float64 // share of COMMITs that go wrong all the time
	replies    float64 // share of Redis' answers that are lost all the time
	points     int     // failpoints armed in each process
	ahead      []int   // by how many seconds the wall clock of each process is off
}

func newFleetPlan(d *fault.Dice) fleetPlan {
	s := room.Defaults()
	s.BatchSize = pick(d, 5, 10, 20)
	s.IntervalMs = pick(d, 250, 500, 1000)
	s.Capacity = pick(d, 0, 0, 40)
	s.MaxInFlightOrders = pick(d, 0, 0, 8)
	s.EntryTokenTTLSeconds, s.PickupTTLSeconds, s.ClaimLeaseSeconds = pick(d, 15, 30), 10, 11
	s.ForgetAfterSeconds, s.DoneTTLSeconds, s.AwayAfterSeconds = 60, 60, 90
	s.SettleSeconds = pick(d, 0, 2, 5)
	s.ProcessingTimeoutSeconds = pick(d, 1, 3)
	s.OneOrderPerMember = d.Chance(0.3)
	s.DirectAdmission, s.Eager = !s.OneOrderPerMember && d.Chance(0.5), d.Chance(0.5)
	return fleetPlan{
		settings: s, appendOnly: d.Chance(0.65), header: d.Chance(0.65), lock: pick(d, "2s", "2s", "3s", "0"),
		ahead:  []int{pick(d, 0, 600), pick(d, 0, -600), pick(d, 0, 600, -600)},
		buyers: 50 + d.Below(60), commits: pick(d, 0.02, 0.05), replies: pick(d, 0, 0.002, 0.01), points: 2 + d.Below(4),
	}
}

func (p fleetPlan) String() string {
	s := p.settings
	return fmt.Sprintf("append-only file %v, members by header %v, lock %s, %d buyers, %.3f of commits and %.3f of replies go wrong, %d failpoints a process, clocks %v s ahead; "+
		"batch %d every %d ms, capacity %d, in flight %d, token %d s, settle %d s, processing %d s, one order %v, straight in %v",
		p.appendOnly, p.header, p.lock, p.buyers, p.commits, p.replies, p.points, p.ahead,
		s.BatchSize, s.IntervalMs, s.Capacity, s.MaxInFlightOrders, s.EntryTokenTTLSeconds, s.SettleSeconds, s.ProcessingTimeoutSeconds, s.OneOrderPerMember, s.DirectAdmission)
}

func pick[T any](d *fault.Dice, from ...T) T { return from[d.Below(len(from))] }

// failpoints arms n points of one process: what LINEKEEPER_FAULTPOINTS says.
// Those that every request passes are set off more rarely than those of a tick,
// or no process would live for long.
func failpoints(d *fault.Dice, n int) string {
	var armed []string
	for _, i := range perm(d, len(catalog.Points))[:min(n, len(catalog.Points))] {
		odds := 0.02
		if name := catalog.Points[i].Name; strings.HasPrefix(name, "E") || strings.HasPrefix(name, "P") {
			odds = 0.002
		}
		action := pick(d, "kill", "kill", "stop", fmt.Sprintf("sleep:%v", d.Between(200*time.Millisecond, 4*time.Second).Round(time.Millisecond)))
		armed = append(armed, fmt.Sprintf("%s=%s@%v", catalog.Points[i].Name, action, odds))
	}
	return strings.Join(armed, ";")
}

func perm(d *fault.Dice, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	d.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
