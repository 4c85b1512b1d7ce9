package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/sync/semaphore"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/draw"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// Draws are the draws of rooms, as Postgres keeps them.
type Draws interface {
	// Draw returns the draw or lottery of a sale with its seed, or room.ErrNoDraw.
	Draw(ctx context.Context, room string, sale int64) (draw.Record, error)
	// Piece reads a piece of a kept list; nil where there is none.
	Piece(ctx context.Context, room string, sale int64, number int) ([]byte, error)
	// PieceOf finds the piece in which an entrant is, if anywhere; nil: in none.
	PieceOf(ctx context.Context, room string, sale int64, entrant draw.Hash) (number int, body []byte, err error)
}

const (
	// drawAge is how old an answer may be that says a draw is not listed, or not there.
	drawAge = time.Second
	// listsAtOnce bounds how many read lists and proofs from Postgres at a time:
	// admission shares its connections with them.
	listsAtOnce = 2
	// pieceTimeout is what a client has to take each piece of a list.
	pieceTimeout = 30 * time.Second
)

// draws is what this process knows of the draws of rooms. Seeds stay in memory:
// who enters must not cost a question to Postgres.
type draws struct {
	books Draws
	known sync.Map // drawKey -> *drawEntry
	lists *semaphore.Weighted
}

type drawKey struct {
	room string
	sale int64
}

type drawEntry struct {
	reading *semaphore.Weighted
	kept    atomic.Pointer[keptDraw]
	failure struct { // the last read that failed, under reading
		at  time.Time
		err error
	}
}

type keptDraw struct {
	draw.Record
	read time.Time
}

func newDraws(books Draws) *draws {
	return &draws{books: books, lists: semaphore.NewWeighted(listsAtOnce)}
}

// get returns the draw of a sale. That it is not listed may have been true age
// ago, and that there is none drawAge; all else of it never changes. Requests share
// one read, and its failure.
func (d *draws) get(ctx context.Context, name string, sale int64, age time.Duration) (draw.Record, error) {
	if d.books == nil {
		return draw.Record{}, fmt.Errorf("%w: no draws here", queue.ErrUnavailable)
	}
	key, asked := drawKey{name, sale}, time.Now()
	found, ok := d.known.Load(key)
	if !ok {
		found, _ = d.known.LoadOrStore(key, &drawEntry{reading: semaphore.NewWeighted(1)})
	}
	e := found.(*drawEntry)
	if k := e.kept.Load(); k.good(age) {
		return k.Record, nil
	}
	if err := e.reading.Acquire(ctx, 1); err != nil {
		return draw.Record{}, fmt.Errorf("%w: wait for the draw of the room: %w", queue.ErrUnavailable, err)
	}
	defer e.reading.Release(1)
	if k := e.kept.Load(); k.good(age) {
		return k.Record, nil
	}
	none := errors.Is(e.failure.err, room.ErrNoDraw) && time.Since(e.failure.at) < drawAge
	if none || e.failure.at.After(asked) {
		return draw.Record{}, e.failure.err
	}
	// Others wait for the answer too: it does not end with the client that asked.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), booksTimeout)
	defer cancel()
	rec, err := d.books.Draw(ctx, name, sale)
	if err != nil && !errors.Is(err, room.ErrNoDraw) {
		err = fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	if err != nil {
		e.failure.at, e.failure.err = time.Now(), err
		return draw.Record{}, err
	}
	e.kept.Store(&keptDraw{rec, time.Now()})
	return rec, nil
}

func (k *keptDraw) good(age time.Duration) bool {
	return k != nil && (k.Listed || time.Since(k.read) < age)
}

// lot is where the draw or the lottery of the room puts the member; the zero one
// where places go by arrival.
func (a *API) lot(ctx context.Context, v *view, member string, lane int) (queue.Lot, error) {
	if !v.Rules.Lottery && v.Draw != queue.DrawOpen {
		return queue.Lot{}, nil
	}
	rec, err := a.draws.get(ctx, v.Room, v.Sale, math.MaxInt64)
	if err != nil {
		return queue.Lot{}, err
	}
	return queue.Lot{Sale: v.Sale, First: rec.First(member, lane)}, nil
}

// drawn tells that a place of the room was drawn, and so says no time.
func (v *view) drawn(p queue.Place) bool { return (v.Rules.Draw || v.Rules.Lottery) && p.Drawn() }

// undecided takes from a position what nobody may know before a draw is listed,
// and all that would give it away: how often to ask as well.
func undecided(v *view, p *spec.Position, st queue.Standing, stretch float64) (queue.Standing, time.Duration) {
	p.Rank, p.CurrentTotalWaitingCount, p.Score = nil, nil, nil
	p.EstimatedWaitSeconds, p.EstimatedWaitRange = nil, nil
	st.Rank = 0 // for everybody: as near to the front as one can be
	return st, min(queue.Stretched(queue.PollInterval(math.MaxInt64), stretch), v.Rules.AwayAfter/3, v.Rules.PickupTTL/3)
}

// drawOf finds the draw that a request is about: of the sale that runs, or of an
// earlier one. A lottery is nobody's to see.
func (a *API) drawOf(r *http.Request) (*view, draw.Record, error) {
	v, err := a.rooms.get(r.Context(), chi.URLParam(r, "room"))
	if err != nil {
		return nil, draw.Record{}, err
	}
	sale := v.Sale
	if text, given := r.URL.Query()["sale"]; given {
		n, err := strconv.ParseInt(text[0], 10, 64)
		if err != nil || n < 1 || len(text) != 1 {
			return nil, draw.Record{}, errSale
		}
		sale = n
	}
	if sale > v.Sale || sale == v.Sale && !v.Rules.Draw {
		return nil, draw.Record{}, room.ErrNoDraw
	}
	rec, err := a.draws.get(r.Context(), v.Room, sale, drawAge)
	if err == nil && sale < v.Sale && !rec.Listed {
		err = room.ErrNoDraw // a lottery, or a draw that was broken off
	}
	return v, rec, err
}

// drawStatus is GET /v1/rooms/{room}/draw.
func (a *API) drawStatus(w http.ResponseWriter, r *http.Request) error {
	v, rec, err := a.drawOf(r)
	if err != nil {
		return err
	}
	d := spec.Draw{
		Room: rec.Room, Sale: rec.Sale, Order: spec.DrawOrder(rec.Order), Lanes: []spec.DrawLane{},
		State: spec.DrawState(v.Draw.String()), Commitment: rec.Seed.Commitment().String(),
	}
	for _, l := range rec.Lanes {
		d.Lanes = append(d.Lanes, spec.DrawLane{Name: l.Name, Weight: l.Weight})
	}
	if rec.Listed {
		root := rec.Header.Root.String()
		d.State, d.Seed, d.Entrants, d.Root = "listed", &rec.Header.Seed, &rec.Header.Entrants, &root
	} else if v.Draw == queue.DrawListed {
		d.State = "closed" // what we know of Postgres is a second old
	}
	w.Header().Set("Cache-Control", "public, max-age=1")
	return writeJSON(w, http.StatusOK, d)
}

// listed is drawOf once the draw is listed.
func (a *API) listed(r *http.Request) (*view, draw.Record, error) {
	v, rec, err := a.drawOf(r)
	if err == nil && !rec.Listed {
		err = errDrawOpen
	}
	return v, rec, err
}

// read asks Postgres for a part of a list, a few requests at a time.
func (d *draws) read(ctx context.Context, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, booksTimeout)
	defer cancel()
	if d.lists.Acquire(ctx, 1) != nil {
		return errListsBusy
	}
	defer d.lists.Release(1)
	if err := ask(ctx); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	return nil
}

// entrants is GET /v1/rooms/{room}/draw/entrants. Once it has begun it can't say
// that something went wrong, and hangs up.
func (a *API) entrants(w http.ResponseWriter, r *http.Request) error {
	_, rec, err := a.listed(r)
	if err != nil {
		return err
	}
	piece := []byte{}
	if len(rec.Roots) > 0 {
		piece, err = a.piece(r.Context(), rec, 0)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	err = rec.Header.WriteHeader(w)
	for n := 0; err == nil && n < len(rec.Roots); n++ {
		if n > 0 {
			piece, err = a.piece(r.Context(), rec, n)
		}
		if err == nil {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(pieceTimeout))
			_, err = w.Write(piece)
		}
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// piece reads a part of a list; room.ErrNoDraw where it has been deleted.
func (a *API) piece(ctx context.Context, rec draw.Record, n int) ([]byte, error) {
	var body []byte
	err := a.draws.read(ctx, func(ctx context.Context) (err error) {
		body, err = a.Draws.Piece(ctx, rec.Room, rec.Sale, n)
		return err
	})
	if err == nil && body == nil {
		err = room.ErrNoDraw
	}
	return body, err
}

// proof is GET /v1/rooms/{room}/draw/proof.
func (a *API) proof(w http.ResponseWriter, r *http.Request) error {
	v, rec, err := a.listed(r)
	if err != nil {
		return err
	}
	c, err := a.known(r, v.Room, v)
	if err != nil {
		return err
	}
	entrant, n, body := rec.Entrant(c.member), 0, []byte(nil)
	err = a.draws.read(r.Context(), func(ctx context.Context) (err error) {
		n, body, err = a.Draws.PieceOf(ctx, rec.Room, rec.Sale, entrant)
		return err
	})
	if err == nil && body == nil {
		err = errNotDrawn
	}
	if err != nil {
		return err
	}
	p, ok, err := draw.Prove(rec.Header, rec.Roots, n, body, entrant)
	if err == nil && !ok {
		err = errNotDrawn
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, p)
}
