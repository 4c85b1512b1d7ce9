package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/linekeeper/linekeeper/room"
)

// polls are many members who ask by turns, in an order that has nothing to do with
// their places.
type polls struct {
	requests [][]byte
	ranks    []int64 // of whom each request is, as the line began
	scores   []int64 // nil: not shown
	moved    int64   // by how much a rank may have fallen since
	same     int     // the size of every body, where that is all there is to check; 0: no
	at       atomic.Uint64
}

// next implements traffic.
func (p *polls) next(int) ([]byte, int) {
	id := int(p.at.Add(1) % uint64(len(p.requests)))
	return p.requests[id], id
}

// shuffle puts them in another order.
func (p *polls) shuffle() {
	rand.Shuffle(len(p.requests), func(i, j int) {
		p.requests[i], p.requests[j] = p.requests[j], p.requests[i]
		p.ranks[i], p.ranks[j] = p.ranks[j], p.ranks[i]
		p.scores[i], p.scores[j] = p.scores[j], p.scores[i]
	})
}

var (
	rankField  = []byte(`"rank":`)
	scoreField = []byte(`"score":`)
)

// looksInto says of which answers the body is read: every sixteenth.
func looksInto(id int) bool { return id%16 == 0 }

// check implements traffic.
func (p *polls) check(id, status int, body []byte) error {
	if status != http.StatusOK {
		return wrongStatus(status, http.StatusOK, body)
	}
	if !looksInto(id) {
		return nil
	}
	if p.same > 0 {
		if len(body) != p.same {
			return fmt.Errorf("a body of %d bytes instead of %d", len(body), p.same)
		}
		return nil
	}
	if rank, first := number(body, rankField), p.ranks[id]; rank > first || rank < first-p.moved {
		return fmt.Errorf("rank %d of somebody who began at %d: %.300s", rank, first, body)
	}
	if p.scores != nil && number(body, scoreField) != p.scores[id] {
		return fmt.Errorf("not of the member with score %d: %.300s", p.scores[id], body)
	}
	return nil
}

// get is a poll with some headers, as a client behind a proxy sends it.
func get(room, headers string) []byte {
	return []byte("GET /v1/rooms/" + room + "/entries/me HTTP/1.1\r\nHost: shop.example\r\nAccept: application/json\r\n" + headers + "\r\n")
}

// address is one of a million that members have.
func address(i int) string {
	return fmt.Sprintf("X-Forwarded-For: 100.%d.%d.%d\r\n", 100+i/10_000%100, 100+i/100%100, 100+i%100)
}

// crowd is a line, and n of it who poll.
type crowd struct {
	room    string
	members []member
	*polls
}

// crowd opens a room with length members in line, n of whom have tickets.
func (s *site) crowd(ctx context.Context, name string, length, n int, change func(*room.Settings)) (*crowd, error) {
	snap, err := s.openRoom(ctx, name, change)
	if err != nil {
		return nil, err
	}
	members, err := fill(ctx, s.rdb, name, length)
	if err != nil {
		return nil, err
	}
	c := &crowd{room: name, members: members, polls: &polls{moved: unpolled}}
	for _, i := range rand.Perm(length - unpolled)[:n] {
		i += unpolled
		ticket, err := s.ticket(snap, members[i])
		if err != nil {
			return nil, err
		}
		c.requests = append(c.requests, get(name, address(i)+"X-Queue-Ticket: "+ticket+"\r\n"))
		c.ranks, c.scores = append(c.ranks, int64(i)), append(c.scores, members[i].score)
	}
	return c, nil
}

// sameSize is the traffic of plain: the same requests, and a body that is checked
// by its size.
func (c *crowd) sameSize(size int) *polls { return &polls{requests: c.requests, same: size} }

// naive puts the same members in the naive line and has them ask.
func (w *world) naiveCrowd(ctx context.Context, c *crowd) (*polls, error) {
	members := make([]member, len(c.members))
	for i, m := range c.members {
		members[i] = member{m.id, int64(i) + 1}
	}
	if err := add(ctx, w.rdb, naivePrefix(c.room)+":waiting", members); err != nil {
		return nil, err
	}
	p := &polls{ranks: c.ranks}
	for _, i := range c.ranks {
		p.requests = append(p.requests, get(c.room, address(int(i))+memberHeader+": "+members[i].id+"\r\n"))
	}
	return p, nil
}

const memberHeader = "X-Member-Id"

// pollContest is product, plain and naive at conns connections.
func (w *world) pollContest(ctx context.Context, c *crowd, plain, naive *polls, conns int) (Contest, error) {
	return w.contest(ctx, "poll_"+strconv.Itoa(conns), conns,
		side{name: "product", servers: only(w.product), load: c},
		side{name: "plain", servers: only(w.others["plain"]), load: plain},
		side{name: "naive", servers: only(w.others["naive"]), load: naive},
	)
}
