package history

import (
	"fmt"
	"math"
	"slices"
)

// admission is a step that made grants, in the Redis time of its generation.
type admission struct {
	m     *moment
	n     int64
	t     int64 // microseconds since the generation began, steps back of the clock left out
	steps int64 // steps back of the clock accepted by then
}

// pace is a rate in force from a time on.
type pace struct {
	t               int64
	batch, interval int64
}

func (p pace) rate() float64 { return float64(p.batch) / float64(p.interval) }

// era is a generation as I10 sees it.
type era struct {
	admissions []admission
	paces      []pace
	timeout    int64 // the longest processingTimeout
}

// I10: in any window no more grants are made than the largest rate in force in
// it allows, and one batch, and one for each accepted step of the clock back.
//
// Windows do not reach across the beginning of a generation, where a full batch
// may be granted at once. A rate counts as in force for processingTimeout more:
// so long may members that it has reserved wait for their issue. What was released
// by hand, and whom a room let through while it was off, do not count.
func windowsWithinRate(j *judge) {
	var accepted int64
	for _, l := range j.lines {
		for _, e := range erasOf(l) {
			j.judgeEra(l, e)
		}
		for _, m := range l.judged() {
			if m.accepted() {
				accepted++
			}
		}
	}
	// A room that a loss has taken back may meet the same step once more.
	if accepted > j.Facts.TimeSteps && (j.Facts.TimeSteps == 0 || accepted > j.Facts.TimeSteps+int64(len(j.gaps))) {
		j.violate(fmt.Sprintf("the room has accepted %d steps of the clock back, and the run has made %d", accepted, j.Facts.TimeSteps))
	}
}

// erasOf cuts a life into generations, each with a time that only goes on.
func erasOf(l *lineage) []*era {
	var eras []*era
	var e *era
	var steps, back, last int64
	for _, m := range l.moments {
		if e == nil || m.begins {
			e, steps, back, last = &era{}, 0, 0, m.State.Time
			eras = append(eras, e)
		}
		if m.accepted() {
			steps++
			back += last - m.State.Time
		}
		// The room's own time: a refusal may have seen another, and kept nothing of it.
		last = m.State.Time
		t := last + back
		if c := m.confAfter(); c != nil && c.batch > 0 && c.interval > 0 {
			p := pace{t, c.batch, c.interval}
			if n := len(e.paces); n == 0 || e.paces[n-1].batch != p.batch || e.paces[n-1].interval != p.interval {
				e.paces = append(e.paces, p)
			}
			e.timeout = max(e.timeout, c.processingTimeout)
		}
		if n := m.byRate(); n > 0 {
			e.admissions = append(e.admissions, admission{m, n, t, steps})
		}
	}
	return eras
}

// confAfter are the settings that the step has left in force.
func (m *moment) confAfter() *conf {
	if m.Script == "configure" && len(m.Conf) > 0 {
		return confOf(m.Conf)
	}
	return m.conf
}

// judgeEra goes through the windows by the paces that they begin under. Under
// one pace it is a bucket that leaks: its level before an admission is the most
// that any window which ends there has above the rate.
func (j *judge) judgeEra(l *lineage, e *era) {
	spans := e.spans()
	for first := range spans {
		w := window{from: spans[first].from}
		for last := first; last < len(spans); last++ {
			w.to = spans[last].to
			w.raise(spans[last])
			if last+1 < len(spans) && spans[last+1].rate <= w.rate && spans[last+1].batch <= w.batch {
				continue // the windows of this one are among those of the next
			}
			if j.judgeWindows(l, e, w) {
				return
			}
		}
	}
}

// window bounds the windows that are judged together, and what they allow.
type window struct {
	from, to int64
	rate     float64
	batch    int64
}

func (w *window) raise(s span) { w.rate, w.batch = max(w.rate, s.rate), max(w.batch, s.batch) }

// judgeWindows tells whether it has found a window that is over its rate.
func (j *judge) judgeWindows(l *lineage, e *era, w window) bool {
	level, begun, at, steps := 0.0, 0, int64(0), int64(0)
	for i, a := range e.admissions {
		if a.t < w.from || a.t >= w.to {
			continue
		}
		level -= w.rate*float64(a.t-at) + float64(w.batch*(a.steps-steps))
		if level <= 0 {
			level, begun = 0, i
		}
		level += float64(a.n)
		at, steps = a.t, a.steps
		if level <= float64(w.batch)+1e-6 || a.m.at < l.from {
			continue
		}
		first := e.admissions[begun]
		var n int64
		for _, x := range e.admissions[begun : i+1] {
			n += x.n
		}
		text := fmt.Sprintf("%d grants in %.6f s; the rate is %.3f a second and a batch %d", n, float64(a.t-first.t)/second, w.rate*second, w.batch)
		var slice []string
		for _, x := range e.admissions[max(begun, i-11) : i+1] {
			slice = append(slice, fmt.Sprintf("%d grants: %s", x.n, j.step(x.m)))
		}
		j.violate(text, slice...)
		return true
	}
	return false
}

// span is a time with the largest rate and batch that count in it.
type span struct {
	from, to int64
	rate     float64
	batch    int64
}

// spans cuts the era where what counts as in force changes.
func (e *era) spans() []span {
	var cuts []int64
	for _, p := range e.paces {
		cuts = append(cuts, p.t, p.t+e.timeout)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var out []span
	for i, from := range cuts {
		s := span{from: from, to: math.MaxInt64}
		if i+1 < len(cuts) {
			s.to = cuts[i+1]
		}
		for k, p := range e.paces {
			end := int64(math.MaxInt64)
			if k+1 < len(e.paces) {
				end = e.paces[k+1].t + e.timeout
			}
			if p.t <= from && from < end {
				s.rate, s.batch = max(s.rate, p.rate()), max(s.batch, p.batch)
			}
		}
		if n := len(out); n > 0 && out[n-1].rate == s.rate && out[n-1].batch == s.batch {
			out[n-1].to = s.to
			continue
		}
		out = append(out, s)
	}
	return out
}

// I10: the rate is charged by issue and enter, for what they grant, at their own time. So a
// batch that returns, is refused or comes late costs nothing twice, and no
// scheduler's memory decides.
func issueCharges(j *judge) {
	j.eachMoment(func(m *moment) {
		if m.fresh || m.begins || m.conf == nil || m.conf.interval <= 0 || m.conf.batch <= 0 {
			return
		}
		if want := m.charged(); m.State.Tat < want-1 || m.State.Tat > want+1 {
			j.violate(fmt.Sprintf("the rate is used up to %d; after %d grants it should be to %d", m.State.Tat, m.granted(), want),
				j.step(m), fmt.Sprintf("before %+v, after %+v", m.was, m.State))
		}
	})
}

// charged is up to when the rate should be used after the step.
func (m *moment) charged() int64 {
	base := max(m.was.Tat, m.Now-m.conf.interval)
	if m.was.Tat > m.Now+m.conf.interval {
		base = m.Now - m.conf.interval // after a step of the clock back the bucket starts anew
	}
	n, c := m.byRate(), m.confAfter()
	switch {
	case n > 0:
		eff := m.was.Eff
		if eff == 0 || m.Script == "enter" && eff > m.conf.batch {
			eff = m.conf.batch // who enters has been reserved by nobody: the batch of now counts
		}
		return int64(math.Ceil(float64(base) + float64(n)*float64(m.conf.interval)/float64(eff)))
	case c.batch > 0 && c.interval > 0 && (c.batch != m.conf.batch || c.interval != m.conf.interval):
		// As many grants as were left are left.
		left := min(float64(m.Now-base)*float64(m.conf.batch)/float64(m.conf.interval), float64(c.batch))
		return int64(math.Ceil(float64(m.Now) - left*float64(c.interval)/float64(c.batch)))
	}
	return m.was.Tat
}
