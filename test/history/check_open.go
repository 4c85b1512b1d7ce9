package history

import "fmt"

// I10: while a room lets nobody through its rate is nothing, whatever the
// schedulers ask for: nobody is taken out of the line while it is paused, before
// admitsAt, from closesAt on unless it drains, or while lost places come back.
// All by the time that the step saw. What was taken before that may be granted.
func takenOnlyWhileOpen(j *judge) {
	j.eachMoment(func(m *moment) {
		if m.Script != "reserve" || m.conf == nil {
			return
		}
		why := m.conf.shut(m.Now)
		if why == "" && m.conf.paused && m.was.ReleasedUsed >= m.conf.released {
			why = "paused" // and nobody was released by hand
		}
		if why == "" {
			return
		}
		for _, v := range m.moves {
			if v.after.Processing > 0 && v.after.Held != nil && v.after.Held.Step == m.stepName() {
				j.violate(fmt.Sprintf("%s is taken while the room is %s", v.member, why), j.step(m, v.member), fmt.Sprintf("settings %+v", *m.conf))
				return
			}
		}
	})
}

// stepName is how the step of a scheduler stands with those that it has taken.
func (m *moment) stepName() string { return fmt.Sprintf("%d:%s:%d", m.term(), m.leader(), m.seq()) }

// shut says why nobody is let through at a time, a pause aside; empty where people
// are.
func (c *conf) shut(now int64) string {
	switch {
	case c.isOff():
		return ""
	case c.generation > c.restorableFrom && now < c.began+c.settle:
		return "settling after a loss"
	case now < max(c.opensAt, c.admitsAt):
		return "not admitting yet"
	case c.closesAt > 0 && now >= c.closesAt && !c.draining:
		return "closed"
	}
	return ""
}

// I10: a tick works with the operator's batch or less, as an adaptive room does,
// and with one at least.
func batchWithinOperators(j *judge) {
	j.eachMoment(func(m *moment) {
		if m.Script != "reserve" || m.conf == nil || m.Word() == "STALE" || m.Word() == "GEN" || m.Err != "" {
			return
		}
		if m.State.Eff < 1 || m.State.Eff > m.conf.batch {
			j.violate(fmt.Sprintf("a tick works with a batch of %d; the operator's is %d", m.State.Eff, m.conf.batch), j.step(m))
		}
	})
}
