package sim

import "time"

// kind is what happens at an event.
type kind uint8

const (
	arrive   kind = iota // people come, a tenth of a second of them
	tick                 // the scheduler lets members through
	endRound             // the controller moves
	turn                 // the database changes
	order                // a member sends an order
	served               // the database has done an order
	deadline             // an order has waited for too long
	expire               // a grant ends
)

// nobody stands where an event is not about one person.
const nobody = -1

type event struct {
	at   time.Duration
	seq  uint64 // events of one moment come in the order they were planned
	who  int
	kind kind
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// events is what is planned: a heap (container/heap would box each one), and
// beside it a plain row for each kind that always comes after the same time.
// Those are most, and come out in the order they went in.
type events struct {
	heap []event
	rows [2]fifo
	seq  uint64
}

// fifo is a queue of events that are already in order.
type fifo struct {
	events []event
	head   int
}

// pop returns the earliest event; false if none is left.
func (h *events) pop() (event, bool) {
	from, first := -1, event{}
	if len(h.heap) > 0 {
		from, first = len(h.rows), h.heap[0]
	}
	for i := range h.rows {
		if r := &h.rows[i]; r.head < len(r.events) && (from < 0 || r.events[r.head].before(first)) {
			from, first = i, r.events[r.head]
		}
	}
	switch {
	case from < 0:
		return first, false
	case from == len(h.rows):
		h.popHeap()
	default:
		h.rows[from].pop()
	}
	return first, true
}

func (r *fifo) pop() {
	if r.head++; r.head > 4096 && r.head > len(r.events)/2 {
		r.events = append(r.events[:0], r.events[r.head:]...)
		r.head = 0
	}
}

func (h *events) push(e event) {
	h.seq++
	e.seq = h.seq
	switch e.kind {
	case expire:
		h.rows[0].events = append(h.rows[0].events, e)
		return
	case deadline:
		h.rows[1].events = append(h.rows[1].events, e)
		return
	}
	h.heap = append(h.heap, e)
	for i := len(h.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.heap[i].before(h.heap[parent]) {
			break
		}
		h.heap[i], h.heap[parent] = h.heap[parent], h.heap[i]
		i = parent
	}
}

func (h *events) popHeap() {
	last := len(h.heap) - 1
	h.heap[0] = h.heap[last]
	h.heap = h.heap[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && h.heap[child].before(h.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.heap[i], h.heap[least] = h.heap[least], h.heap[i]
		i = least
	}
}

func (s *run) at(at time.Duration, k kind, who int) { s.events.push(event{at: at, who: who, kind: k}) }

func (s *run) after(d time.Duration, k kind, who int) { s.at(s.now+d, k, who) }
