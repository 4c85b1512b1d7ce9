package history

import "container/heap"

// crowd is who waits, by lane and score, as a walk through steps finds them.
type crowd struct {
	at    map[string]*Member
	lanes map[int]*places
}

// places is a heap, the lowest score first. Who has moved on is left in it
// until found.
type places []entrant

type entrant struct {
	score  int64
	member string
}

func newCrowd() *crowd { return &crowd{map[string]*Member{}, map[int]*places{}} }

// put notes where a member is now.
func (q *crowd) put(name string, m *Member) {
	was := q.at[name]
	q.at[name] = m
	for _, lane := range m.Lanes {
		if was != nil && was.Score == m.Score && q.in(lane, was) {
			continue
		}
		if q.lanes[lane] == nil {
			q.lanes[lane] = &places{}
		}
		heap.Push(q.lanes[lane], entrant{m.Score, name})
	}
}

func (q *crowd) in(lane int, m *Member) bool {
	for _, l := range m.Lanes {
		if l == lane {
			return true
		}
	}
	return false
}

// ahead is the first who waits in the lane below score, those left out whom
// skip names; empty if there is nobody.
func (q *crowd) ahead(lane int, score int64, skip func(*Member) bool) string {
	h := q.lanes[lane]
	var passed []entrant
	found := ""
	for h != nil && h.Len() > 0 && found == "" {
		e := (*h)[0]
		m := q.at[e.member]
		if m == nil || !q.in(lane, m) || m.Score != e.score {
			heap.Pop(h)
			continue
		}
		if e.score >= score {
			break
		}
		if !skip(m) {
			found = e.member
			break
		}
		passed = append(passed, heap.Pop(h).(entrant))
	}
	for _, e := range passed {
		heap.Push(h, e)
	}
	return found
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (p places) Len() int           { return len(p) }
func (p places) Less(i, j int) bool { return p[i].score < p[j].score }
func (p places) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push adds an entrant at the end, for package heap.
func (p *places) Push(x any) { *p = append(*p, x.(entrant)) }

// Pop takes the last, for package heap.
func (p *places) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}
