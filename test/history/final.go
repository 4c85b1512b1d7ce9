package history

import (
	"time"

	"github.com/linekeeper/linekeeper/draw"
)

// Final is what Redis and Postgres hold of one room at the end of a run.
type Final struct {
	Redis      Dump
	Orders     []OrderRow // void rows too
	Outbox     []OutboxRow
	Progress   Progress
	Products   []Product // of all rooms
	Exclusions []Exclusion
	Draws      []DrawRow
}

// Dump is the room in Redis. Begun is false where there is no room.
type Dump struct {
	Begun      bool
	Generation int64
	Members    map[string]Member
	Conf       map[string]string
	State      State
	Stats      map[string]int64
}

// OrderRow is a row of the table orders.
type OrderRow struct {
	ID, Grant        string
	Void             bool
	Room, Member     string
	Sale, Generation int64
	Once             bool
	Key              string // Idempotency-Key; empty: none
	Content          string // as Content writes it
	Items            []Item
	CreatedAt        time.Time
}

// OutboxRow is a row of the table outbox.
type OutboxRow struct {
	ID            int64
	Order         string
	Kind, Status  string
	Member, Grant string // of the payload
	Attempts      int
}

// Item is a product and how many of it.
type Item struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// Product is a row of the table products.
type Product struct {
	SKU   string
	Stock int64
}

// Progress is the room's row of the table room_progress.
type Progress struct {
	Floors    []int64
	LastScore int64
}

// DrawRow is a row of the table draws, with the list that is kept of it.
type DrawRow struct {
	Sale   int64
	Seed   string // also of one that is secret
	Order  draw.Order
	Lanes  []draw.Lane
	Listed bool
	List   string // the document, once Listed
}

// Exclusion is a row of the table room_exclusions.
type Exclusion struct {
	Member, Kind string
	Sale         int64
}

// Settled tells that nothing is left that time or the relay has to end: nobody
// is in line or holds a grant, and every event is done or dead. Outcomes may
// still be remembered.
func (f Final) Settled() bool {
	for _, m := range f.Redis.Members {
		if kind := m.kind(); kind != nowhere && kind != ended {
			return false
		}
	}
	for _, o := range f.Outbox {
		if o.Status == "pending" {
			return false
		}
	}
	return true
}
