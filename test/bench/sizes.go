package main

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/linekeeper/linekeeper/room"
)

// byTurns are several lines of one length, one a turn: those who wait in a short
// line are few, and would soon ask more often than anybody may.
type byTurns struct {
	*crowd
	lines []*crowd
}

// begin goes on to the next line, and takes out of it who has entered it since the
// bench made it: a short line is to stay short.
func (b *byTurns) begin(w *world) func(context.Context) error {
	turn := 0
	return func(ctx context.Context) error {
		b.crowd = b.lines[turn%len(b.lines)]
		turn++
		last := b.members[len(b.members)-1].score
		return w.rdb.ZRemRangeByScore(ctx, key(b.room, "lane0"), "("+itoa(last), "+inf").Err()
	}
}

// shortLines is how many there are.
const shortLines = 4

// openLines makes the lines that are compared. Nobody who polls is near the front:
// what that costs depends on who is there, and not on how many.
func (w *world) openLines(ctx context.Context) (short, long *byTurns, err error) {
	quiet := func(s *room.Settings) { slow(s); s.AwayAfterSeconds = 900 }
	short, long = &byTurns{}, &byTurns{}
	for i := range shortLines {
		c, err := w.crowd(ctx, "line10k"+itoa(int64(i)), small, small-unpolled, quiet)
		if err != nil {
			return nil, nil, err
		}
		short.lines = append(short.lines, c)
	}
	c, err := w.crowd(ctx, "line1m", w.plan.large, 100_000, quiet)
	long.lines = []*crowd{c}
	return short, long, err
}

// sizesContest compares two lengths of a line of the product, polls and enters.
func (w *world) sizesContest(ctx context.Context) (poll, enter Contest, err error) {
	short, long, err := w.openLines(ctx)
	if err != nil {
		return poll, enter, err
	}
	of := func(name string, b *byTurns, load traffic) side {
		return side{name: name, servers: only(w.product), load: load, before: b.begin(w)}
	}
	poll, err = w.contest(ctx, "poll_sizes", 64, of("1m", long, long), of("10k", short, short))
	if err != nil {
		return poll, enter, err
	}
	enter, err = w.contest(ctx, "enter_sizes", 64, of("1m", long, w.entering(long)), of("10k", short, w.entering(short)))
	if err != nil {
		return poll, enter, err
	}
	var rooms []string
	for _, c := range slices.Concat(short.lines, long.lines) {
		rooms = append(rooms, c.room)
	}
	return poll, enter, w.closeRooms(ctx, rooms...)
}

// entering is strangers to whichever line has its turn.
type entering struct {
	lines *byTurns
	rooms map[string]*enters
}

func (w *world) entering(b *byTurns) entering {
	e := entering{b, map[string]*enters{}}
	for _, c := range b.lines {
		e.rooms[c.room] = enterRoom(c.room, &w.newcomers)
	}
	return e
}

// next implements traffic.
func (e entering) next(conn int) ([]byte, int) { return e.rooms[e.lines.room].next(conn) }

// check implements traffic.
func (e entering) check(id, status int, body []byte) error {
	return e.rooms[e.lines.room].check(id, status, body)
}

// newcomers counts strangers.
type newcomers = atomic.Uint64
