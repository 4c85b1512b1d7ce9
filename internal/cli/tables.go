package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/linekeeper/linekeeper/room"
)

// listRows shows of each room what one looks for in a list.
var listRows = table(func(w io.Writer, v struct {
	Rooms []room.Room `json:"rooms"`
}) {
	line(w, "ROOM", "VERSION", "SALE", "RATE", "SWITCHES", "OPENS", "ADMITS", "CLOSES")
	for _, r := range v.Rooms {
		s := r.Settings
		line(w, r.Name, r.Version, r.Sale, rate(s), cmp.Or(switches(s), "-"), at(s.OpensAt), at(s.AdmitsAt), at(s.ClosesAt))
	}
})

func rate(s room.Settings) string {
	return fmt.Sprintf("%d per %v", s.BatchSize, time.Duration(s.IntervalMs)*time.Millisecond)
}

func switches(s room.Settings) string {
	var on []string
	if s.Paused {
		on = append(on, "paused")
	}
	if s.Draining {
		on = append(on, "draining")
	}
	if s.Off {
		on = append(on, "off")
	}
	return strings.Join(on, ",")
}

// at is a time in the one form that settings take back.
func at(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// roomRows shows every setting, and which of them are not the defaults.
var roomRows = table(func(w io.Writer, v struct {
	Name       string                     `json:"name"`
	Version    int64                      `json:"version"`
	Sale       int64                      `json:"sale"`
	Generation int64                      `json:"generation"`
	Settings   map[string]json.RawMessage `json:"settings"`
}) {
	line(w, "room", v.Name)
	line(w, "version", v.Version)
	line(w, "sale", v.Sale)
	line(w, "generation", v.Generation)
	defaults, _ := fieldsOf(room.Defaults())
	for _, name := range SettingNames() {
		value, note := string(orNull(v.Settings[name])), ""
		if usual := string(defaults[name]); usual != value {
			note = "(default " + usual + ")"
		}
		line(w, name, value, note)
	}
})

// changedRows says in one line what a change has led to.
var changedRows = table(func(w io.Writer, r room.Room) {
	state := ""
	if on := switches(r.Settings); on != "" {
		state = ", " + on
	}
	line(w, fmt.Sprintf("room %s is at version %d, sale %d: %s%s", r.Name, r.Version, r.Sale, rate(r.Settings), state))
})

// statsRows shows a room's line as it is at the moment.
var statsRows = table(func(w io.Writer, v struct {
	Room       string           `json:"room"`
	RoomState  string           `json:"roomState"`
	Sale       int64            `json:"sale"`
	Generation int64            `json:"generation"`
	Version    int64            `json:"version"`
	RedisTime  time.Time        `json:"redisTime"`
	TickedAt   *time.Time       `json:"tickedAt"`
	MemoryFull bool             `json:"memoryFull"`
	Batch      batchStats       `json:"batch"`
	ToRelease  int64            `json:"toRelease"`
	Sizes      map[string]int64 `json:"sizes"`
	Stock      *stockStats      `json:"stock"`
	Lanes      []laneStats      `json:"lanes"`
	Counters   map[string]int64 `json:"counters"`
}) {
	line(w, "room", v.Room, v.RoomState)
	line(w, "sale", v.Sale, fmt.Sprintf("generation %d, settings version %d", v.Generation, v.Version))
	line(w, "last tick", ago(v.TickedAt, v.RedisTime))
	if v.MemoryFull {
		line(w, "memory", "full: nobody new enters")
	}
	if v.Stock != nil {
		line(w, "stock of "+v.Stock.SKU, v.Stock.text(v.RedisTime))
	}
	line(w, "batch", v.Batch.text())
	if v.ToRelease > 0 {
		line(w, "released", v.ToRelease, "by hand, not let through yet")
	}
	for _, name := range []string{"waiting", "away", "processing", "ready", "claimed", "done"} {
		line(w, name, v.Sizes[name])
	}
	for _, l := range v.Lanes {
		line(w, "lane "+l.Name, l.Waiting, fmt.Sprintf("waiting, %d let through", l.Admitted))
	}
	for _, name := range slices.Sorted(maps.Keys(v.Counters)) {
		line(w, "counted "+name, v.Counters[name])
	}
})

type batchStats struct {
	Limit   int     `json:"limit"`
	InForce *int    `json:"inForce"`
	Verdict *string `json:"verdict"`
}

// text is the batch in force, and in a room whose batch follows the database why.
func (b batchStats) text() string {
	switch {
	case b.InForce == nil:
		return fmt.Sprintf("at most %d", b.Limit)
	case b.Verdict == nil:
		return fmt.Sprint(*b.InForce)
	}
	return fmt.Sprintf("%d of %d, the last round was %s", *b.InForce, b.Limit, *b.Verdict)
}

type laneStats struct {
	Name     string `json:"name"`
	Waiting  int64  `json:"waiting"`
	Admitted int64  `json:"admitted"`
}

// stockStats is the product that bounds who is let in.
type stockStats struct {
	SKU    string     `json:"sku"`
	Left   *int64     `json:"left"`
	ReadAt *time.Time `json:"readAt"`
}

func (s stockStats) text(now time.Time) string {
	if s.Left == nil {
		return "not read yet: nobody is let through"
	}
	return fmt.Sprintf("%d, read %s", *s.Left, ago(s.ReadAt, now))
}

func ago(t *time.Time, now time.Time) string {
	if t == nil {
		return "never"
	}
	return now.Sub(*t).Round(100*time.Millisecond).String() + " ago"
}

var productRows = table(func(w io.Writer, p room.Product) {
	line(w, "product", p.SKU)
	line(w, "stock", p.Stock)
	line(w, "price", fmt.Sprintf("%d.%02d %s", p.PriceCents/100, p.PriceCents%100, p.Currency))
	line(w, "version", p.Version)
	line(w, "updated", at(&p.UpdatedAt))
})

var outboxRows = table(func(w io.Writer, v struct {
	Entries []outboxEntry `json:"entries"`
	Next    *int64        `json:"next"`
}) {
	line(w, "ID", "STATUS", "KIND", "ROOM", "ORDER", "ATTEMPTS", "CREATED", "LAST ERROR")
	for _, e := range v.Entries {
		line(w, e.ID, e.Status, e.Kind, e.Room, e.OrderID, e.Attempts, at(&e.CreatedAt), cmp.Or(e.LastError, "-"))
	}
	more(w, "--after", v.Next)
})

type outboxEntry struct {
	ID        int64     `json:"id"`
	OrderID   string    `json:"orderId"`
	Kind      string    `json:"kind"`
	Room      string    `json:"room"`
	Status    string    `json:"status"`
	Attempts  int       `json:"attempts"`
	LastError string    `json:"lastError"`
	CreatedAt time.Time `json:"createdAt"`
}

var auditRows = table(func(w io.Writer, v struct {
	Changes []room.Change `json:"changes"`
	Next    *int64        `json:"next"`
}) {
	line(w, "ID", "AT", "ACTOR", "ROLE", "ACTION", "TARGET", "VERSION", "CHANGED")
	for _, c := range v.Changes {
		version := "-"
		if c.Version != nil {
			version = fmt.Sprint(*c.Version)
		}
		line(w, c.ID, at(&c.At), c.Actor, c.Role, c.Action, c.Target, version, changed(c))
	}
	more(w, "--before", v.Next)
})

// changed tells of a row what differs, not twice the whole.
func changed(c room.Change) string {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(c.Before, &before) != nil || json.Unmarshal(c.After, &after) != nil {
		return "-"
	}
	switch {
	case before == nil:
		return "made"
	case after == nil:
		return "gone"
	}
	var texts []string
	for _, d := range diff(before, after) {
		// Both rise with every change, and stand in the row already.
		if d.Field != "updatedAt" && d.Field != "version" {
			texts = append(texts, d.String())
		}
	}
	return cmp.Or(strings.Join(texts, ", "), "-")
}

// more says how to see the next page.
func more(w io.Writer, flag string, next *int64) {
	if next != nil {
		line(w, fmt.Sprintf("there may be more: %s %d", flag, *next))
	}
}

var planRows = table(func(w io.Writer, v struct {
	Plan Plan `json:"plan"`
}) {
	for _, s := range v.Plan {
		line(w, s.Action+" room "+s.Room)
		for _, c := range s.Changes {
			line(w, "  "+c.String())
		}
	}
})
