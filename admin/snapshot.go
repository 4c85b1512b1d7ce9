package admin

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// snapshotView is a room as Redis has it at one moment.
type snapshotView struct {
	Room           string           `json:"room"`
	RoomState      queue.RoomState  `json:"roomState"`
	Generation     int64            `json:"generation"`
	RestorableFrom int64            `json:"restorableFrom"`
	Sale           int64            `json:"sale"`
	Version        int64            `json:"version"` // of the settings in force
	RedisTime      time.Time        `json:"redisTime"`
	BeganAt        time.Time        `json:"beganAt"`
	TickedAt       *time.Time       `json:"tickedAt"` // null: no scheduler has come by yet
	Term           int64            `json:"term"`
	Leader         string           `json:"leader"`
	MemoryFull     bool             `json:"memoryFull"`
	Stock          *stockView       `json:"stock"` // null: none bounds the room
	Batch          batchView        `json:"batch"`
	ToRelease      int64            `json:"toRelease"` // released by hand, and not let through yet
	Sizes          sizesView        `json:"sizes"`
	Lanes          []laneView       `json:"lanes"`
	Counters       map[string]int64 `json:"counters"` // since the generation began
}

// batchView is how many are let through per interval.
type batchView struct {
	Limit   int     `json:"limit"`   // the operator's
	InForce *int    `json:"inForce"` // null: an adaptive room has had no round yet
	Verdict *string `json:"verdict"` // of an adaptive room; null: nothing to judge by
}

// sizesView has one number per state of section "States" in package queue.
type sizesView struct {
	Waiting    int64 `json:"waiting"`
	Away       int64 `json:"away"`
	Processing int64 `json:"processing"`
	Ready      int64 `json:"ready"`
	Claimed    int64 `json:"claimed"`
	Done       int64 `json:"done"`
}

// stockView is the product that bounds who is let in, as the room was last told.
type stockView struct {
	SKU    string     `json:"sku"`
	Left   *int64     `json:"left"`   // null: not told yet
	ReadAt *time.Time `json:"readAt"` // null: not told yet
}

type laneView struct {
	Name      string `json:"name"`
	Waiting   int64  `json:"waiting"`
	HeadScore *int64 `json:"headScore"` // null: nobody waits
	Watermark int64  `json:"watermark"`
	Admitted  int64  `json:"admitted"`
}

// snapshot asks Redis first and Postgres only for what Redis lacks, so that
// operators see their line while the database is away.
func (s *server) snapshot(w http.ResponseWriter, r *http.Request) error {
	name, err := roomName(r)
	if err != nil {
		return err
	}
	snap, err := s.Lines.Snapshot(r.Context(), name)
	if errors.Is(err, queue.ErrNoRoom) {
		if _, missing := s.Store.Get(r.Context(), name); missing != nil {
			return missing
		}
	}
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, viewSnapshot(name, snap))
}

func viewSnapshot(name string, s queue.Snapshot) snapshotView {
	v := snapshotView{
		Room: name, RoomState: s.State(s.Now), Generation: s.Generation, RestorableFrom: s.RestorableFrom,
		Sale: s.Sale, Version: s.Version, RedisTime: s.Now.UTC(), BeganAt: s.Began.UTC(),
		Term: s.Term, Leader: s.Leader, MemoryFull: s.MemoryFull, ToRelease: s.ToRelease, Counters: s.Counters,
		Sizes: sizesView{s.Waiting(), s.Away, s.Processing, s.Ready, s.Claimed, s.Done},
		Lanes: viewLanes(s), Stock: viewStock(s),
	}
	if !s.TickedAt.IsZero() {
		ticked := s.TickedAt.UTC()
		v.TickedAt = &ticked
	}
	v.Batch.Limit = s.Rules.Batch
	if n := s.InForce(); n > 0 {
		v.Batch.InForce = &n
	}
	if s.Rules.Adaptive && s.Tuning.Verdict != "" {
		v.Batch.Verdict = &s.Tuning.Verdict
	}
	if v.Counters == nil {
		v.Counters = map[string]int64{}
	}
	return v
}

func viewStock(s queue.Snapshot) *stockView {
	if s.Rules.Stock == "" {
		return nil
	}
	v := &stockView{SKU: s.Rules.Stock}
	if !s.Stock.Told.IsZero() {
		at := s.Stock.Told.UTC()
		v.Left, v.ReadAt = &s.Stock.Left, &at
	}
	return v
}

// viewLanes takes the names from the settings in force. A lane that these do
// not name, or settings that can't be read, must not hide the numbers.
func viewLanes(s queue.Snapshot) []laneView {
	settings, err := room.Stored(s.Settings)
	if err != nil {
		settings.Lanes = nil
	}
	lanes := make([]laneView, len(s.Lanes))
	for i, l := range s.Lanes {
		lanes[i] = laneView{Name: *laneName(settings.Lanes, i), Waiting: l.Waiting, Watermark: l.Watermark, Admitted: l.Admitted}
		if l.Waiting > 0 {
			lanes[i].HeadScore = &l.HeadScore
		}
	}
	return lanes
}

// laneName is a lane by its index; the settings may not have it.
func laneName(lanes []room.Lane, i int) *string {
	name := "lane" + strconv.Itoa(i)
	if i < len(lanes) {
		name = lanes[i].Name
	}
	return &name
}
