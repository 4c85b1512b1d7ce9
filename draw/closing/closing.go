// Package closing ends draws: it reads who is in the line when a draw is over,
// makes the list of them, keeps it, and lets the room go on.
//
//	room closed (by its scripts) -> entrants read, page by page -> list -> kept in Postgres -> room told: listed
//
// # Promises
//
// The list that is kept first stays, whoever makes another: until then nothing of
// the draw is public. Whoever is killed on the way leaves nothing behind, and the
// next who tries makes the same list of the same line, since places and hashes
// follow from the seed. A room whose data were lost on the way is not listed by
// halves: its generation is asked for with every page.
//
// It does not decide when a draw is over (the room's scripts do), nor take
// anybody out of the line.
package closing

import (
	"context"
	"fmt"

	"github.com/linekeeper/linekeeper/draw"
	"github.com/linekeeper/linekeeper/queue"
)

// Line is the room whose draw is over.
type Line interface {
	// Entrants reads a page of those in a lane with a drawn place behind a score,
	// lowest first: none behind the last. queue.ErrGeneration where the room is not
	// in that generation or its draw not over.
	Entrants(ctx context.Context, room string, generation int64, lane int, after int64) ([]queue.Candidate, error)
	// Listed lets the room go on. queue.ErrGeneration where it is in another sale.
	Listed(ctx context.Context, room string, sale int64) error
}

// Books keep draws.
type Books interface {
	// Draw returns the draw of a sale, with its seed.
	Draw(ctx context.Context, room string, sale int64) (draw.Record, error)
	// KeepList keeps a list, unless the sale has one.
	KeepList(ctx context.Context, l *draw.List) error
}

// Closer ends draws. It holds no state: any process may end any draw.
type Closer struct {
	Line  Line
	Books Books
}

// End lists the draw of a room that is over, unless it is listed already, and
// lets the room go on.
func (c Closer) End(ctx context.Context, life queue.Life) error {
	rec, err := c.Books.Draw(ctx, life.Room, life.Sale)
	if err != nil {
		return err
	}
	if !rec.Listed {
		if err := c.list(ctx, life, rec.Plan); err != nil {
			return err
		}
	}
	if err := c.Line.Listed(ctx, life.Room, life.Sale); err != nil {
		return fmt.Errorf("end the draw of room %s: %w", life.Room, err)
	}
	return nil
}

func (c Closer) list(ctx context.Context, life queue.Life, plan draw.Plan) error {
	var placed []draw.Placed
	for lane := range plan.Lanes {
		for after := int64(0); ; {
			page, err := c.Line.Entrants(ctx, life.Room, life.Generation, lane, after)
			if err != nil {
				return fmt.Errorf("list the draw of room %s: %w", life.Room, err)
			}
			if len(page) == 0 {
				break
			}
			for _, m := range page {
				placed = append(placed, draw.Placed{Member: m.Member, Lane: lane, Score: m.Place.Score})
			}
			after = page[len(page)-1].Place.Score
		}
	}
	l, err := plan.List(placed)
	if err != nil {
		return err
	}
	return c.Books.KeepList(ctx, l)
}
