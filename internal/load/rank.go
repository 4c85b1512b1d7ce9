package load

import (
	"slices"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
)

// rise is a rank that grew between two answers. It is no fault by itself: whoever
// was away, or was taken from the line and not let through, comes back to a place
// ahead. How many did only operators can see.
type rise struct {
	who           int
	from, to      time.Duration // the first was asked for, the second had come
	before, after int64
}

// risen is what ranks did, for who can't judge it.
type risen struct {
	times, most int64
}

// rank notes a rank that has grown. A place that others may overtake by a boost,
// or that goes by lot, may fall back at any time.
func (j *judge) rank(v visit, p spec.Position) {
	s := &v.who.seen
	if p.Status != queue.Waiting || p.Rank == nil || p.Overtakable == nil || *p.Overtakable {
		s.rank = -1
		return
	}
	before, from := s.rank, s.rankAt
	s.rank, s.rankAt = *p.Rank, v.sent
	if before < 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.looks[rankFalls]++
	if s.rank > before {
		j.rises = append(j.rises, rise{v.who.n, from, v.done, before, s.rank})
		j.risen.times++
		j.risen.most = max(j.risen.most, s.rank-before)
	}
}

// explain judges those rises that are wholly within what was watched.
func (j *judge) explain(looks []look) {
	if len(looks) == 0 {
		return
	}
	last := looks[len(looks)-1]
	j.mu.Lock()
	due := slices.Clone(j.rises)
	j.rises = slices.DeleteFunc(j.rises, func(r rise) bool { return r.to <= last.asked })
	j.mu.Unlock()
	for _, r := range due {
		if r.to > last.asked {
			continue
		}
		back, known := cameBack(looks, r.from, r.to)
		if known && r.after-r.before > back {
			j.hold(rankFalls, false, "person %d had rank %d and later %d; %d came back meanwhile", r.who, r.before, r.after, back)
		}
	}
}

// cameBack is how many at most came back to places in line between two times;
// false where the looks do not tell, as over a loss of data.
func cameBack(looks []look, from, to time.Duration) (n int64, known bool) {
	first, last := -1, -1
	for i, l := range looks {
		if l.answered <= from {
			first = i
		}
		if last < 0 && l.asked >= to {
			last = i
		}
	}
	if first < 0 || last < 0 {
		return 0, false
	}
	var processing int64
	for _, l := range looks[first : last+1] {
		if l.generation != looks[first].generation || l.term != looks[first].term {
			return 0, false // what an older term had taken goes back at once
		}
		processing = max(processing, l.processing)
	}
	return looks[last].back - looks[first].back + processing, true
}
