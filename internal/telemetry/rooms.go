package telemetry

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// roomView is what the leader last saw of a room.
type roomView struct {
	sizes    map[string]float64
	headAge  float64 // seconds
	batch    float64
	stock    *float64 // left of the product that bounds the room; nil: none does, or not read yet
	inForce  float64
	verdicts map[string]float64 // of an adaptive room: the one on its last round; 1
	lastTick float64            // Unix time; 0: none yet
	off      float64            // let through while the room was off
}

// roomViews exports what stands in shared Redis, and only while this process
// leads. It is a collector rather than gauges, so that a room that is gone, and
// a leadership that is lost, leave nothing behind; and so that rooms beyond the
// limit add up instead of overwriting each other.
type roomViews struct {
	rooms, states *limit

	mu      sync.Mutex
	leading bool
	views   map[string]roomView

	members, headAge, batch, inForce, verdict, stock, lastTick, off *prometheus.Desc
}

func newRoomViews(rooms, states *limit) *roomViews {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &roomViews{
		rooms: rooms, states: states, views: map[string]roomView{},
		members:  desc("queue_members", "Members in a state. Of the leader only.", "room", "state"),
		headAge:  desc("queue_head_age_seconds", "How long the first in line has waited. Of the leader only.", "room"),
		batch:    desc("batch_size", "Members let through per interval at most. Of the leader only.", "room"),
		stock:    desc("stock_left", "Left of the product that bounds the room, as its scheduler last read it. Of the leader only.", "room"),
		inForce:  desc("batch_in_force", "Members let through per interval now: less than batch_size where an adaptive room has come down. Of the leader only.", "room"),
		verdict:  desc("batch_verdict", "Adaptive rooms by the verdict on their last round: idle, quiet, fair, bad, out. Of the leader only.", "room", "verdict"),
		lastTick: desc("scheduler_last_tick_timestamp_seconds", "When the room was last ticked. Of the leader only.", "room"),
		off:      desc("passed_off_total", "Members let through while the room was off, in this generation of it. Of the leader only.", "room"),
	}
}

// SetRoom says how many members are in each state of a room, and how many
// seconds the first in line has waited. It is ignored unless this process
// leads: an answer that comes late must not revive a leadership.
func (m *Metrics) SetRoom(room string, sizes map[string]float64, headAge float64) {
	sizes = maps.Clone(sizes)
	m.view.change(room, func(v *roomView) { v.sizes, v.headAge = sizes, headAge })
}

// SetBatch says how many members of a room are let through per interval.
func (m *Metrics) SetBatch(room string, n int) {
	m.view.change(room, func(v *roomView) { v.batch = float64(n) })
}

// SetStock says what is left of the product that bounds a room; nil where none
// does, or nobody has read it yet.
func (m *Metrics) SetStock(room string, left *float64) {
	m.view.change(room, func(v *roomView) { v.stock = left })
}

// SetBatchInForce says how many are let through per interval now, and of an
// adaptive room what its last round was; an empty verdict is no adaptive room.
func (m *Metrics) SetBatchInForce(room string, n int, verdict string) {
	var verdicts map[string]float64
	if verdict != "" {
		verdicts = map[string]float64{m.words.state.label(verdict): 1}
	}
	m.view.change(room, func(v *roomView) { v.inForce, v.verdicts = float64(n), verdicts })
}

// SetPassedOff says how many members have been let through while the room was off.
func (m *Metrics) SetPassedOff(room string, n int64) {
	m.view.change(room, func(v *roomView) { v.off = float64(n) })
}

// ForgetRooms drops what was said of rooms other than keep.
func (m *Metrics) ForgetRooms(keep []string) {
	m.view.mu.Lock()
	defer m.view.mu.Unlock()
	maps.DeleteFunc(m.view.views, func(room string, _ roomView) bool { return !slices.Contains(keep, room) })
}

// ForgetAll drops what was said of every room.
func (m *Metrics) ForgetAll() { m.ForgetRooms(nil) }

// change keeps what other methods have said of the room.
func (rv *roomViews) change(room string, f func(*roomView)) {
	rv.mu.Lock()
	defer rv.mu.Unlock()
	if !rv.leading {
		return
	}
	v := rv.views[room]
	f(&v)
	rv.views[room] = v
}

// lead clears what was said on losing, not on winning: a new term of the same
// leader would leave a hole in every graph.
func (rv *roomViews) lead(leads bool) {
	rv.mu.Lock()
	defer rv.mu.Unlock()
	rv.leading = leads
	if !leads {
		clear(rv.views)
	}
}

func (rv *roomViews) ticked(room string, at time.Time) {
	rv.change(room, func(v *roomView) { v.lastTick = float64(at.UnixMilli()) / 1000 })
}

// Describe lists the metrics.
func (rv *roomViews) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{rv.members, rv.headAge, rv.batch, rv.inForce, rv.verdict, rv.stock, rv.lastTick, rv.off} {
		ch <- d
	}
}

// Collect exports the rooms, those without a label of their own as one.
func (rv *roomViews) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for label, v := range rv.byLabel() {
		for state, n := range v.sizes {
			send(rv.members, n, label, state)
		}
		send(rv.headAge, v.headAge, label)
		send(rv.batch, v.batch, label)
		if v.stock != nil {
			send(rv.stock, *v.stock, label)
		}
		if v.inForce > 0 {
			send(rv.inForce, v.inForce, label)
		}
		for verdict, n := range v.verdicts {
			send(rv.verdict, n, label, verdict)
		}
		ch <- prometheus.MustNewConstMetric(rv.off, prometheus.CounterValue, v.off, label)
		if v.lastTick > 0 {
			send(rv.lastTick, v.lastTick, label)
		}
	}
}

func (rv *roomViews) byLabel() map[string]roomView {
	rv.mu.Lock()
	defer rv.mu.Unlock()
	sum := map[string]roomView{}
	for _, room := range slices.Sorted(maps.Keys(rv.views)) { // sorted: the same rooms are "other" each time
		label := rv.rooms.label(room)
		have, ok := sum[label]
		sum[label] = rv.add(have, rv.views[room], !ok)
	}
	return sum
}

// add joins rooms that share a label: all who wait, and the worst of the ages.
func (rv *roomViews) add(a, b roomView, first bool) roomView {
	if first {
		a = roomView{sizes: map[string]float64{}, verdicts: map[string]float64{}, lastTick: b.lastTick}
	}
	for state, n := range b.sizes {
		a.sizes[rv.states.label(state)] += n
	}
	a.headAge = max(a.headAge, b.headAge)
	for verdict, n := range b.verdicts {
		a.verdicts[verdict] += n
	}
	a.batch += b.batch
	a.inForce += b.inForce
	a.off += b.off
	a.lastTick = min(a.lastTick, b.lastTick)
	if b.stock != nil { // of several rooms, the one that sells out first
		least := *b.stock
		if a.stock != nil {
			least = min(least, *a.stock)
		}
		a.stock = &least
	}
	return a
}
