// Package room is what operators decide about a waiting line: its settings,
// what values they may have, and who changed them when.
//
// It promises that settings that pass Validate can be run, that everything
// wrong with a document is told at once with the exact field, and that a
// setting this version can't honour yet is refused and never ignored.
//
//	JSON --DecodeObject--> fields --MergePatch--> Settings --Rules--> queue.Rules
//	      ErrJSON                    Problems
//
// The package keeps nothing and imports no driver; package pgstore keeps rooms
// in Postgres. What members do in a line is package queue's.
package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Errors a caller is expected to act on. Match them with errors.Is.
var (
	// ErrNotFound means that there is no such room or product, or that it has
	// been deleted.
	ErrNotFound = errors.New("room: not found")
	// ErrExists means that a room of that name exists.
	ErrExists = errors.New("room: exists already")
	// ErrVersion means that somebody else changed it in between; see VersionError.
	ErrVersion = errors.New("room: another version")
	// ErrNoDraw means that the sale has no draw and no lottery.
	ErrNoDraw = errors.New("room: no draw")
	// ErrJSON means that a document is not one JSON object without duplicate
	// names. What is wrong with the values of a good document is Problems.
	ErrJSON = errors.New("room: not a JSON object")
)

// VersionError is ErrVersion with the version that is in force, 0 where
// nothing exists yet.
type VersionError struct{ Version int64 }

// Error names the version that is in force.
func (e VersionError) Error() string { return fmt.Sprintf("%v (it is at %d)", ErrVersion, e.Version) }

// Is makes errors.Is(err, ErrVersion) hold.
func (e VersionError) Is(target error) bool { return target == ErrVersion }

// nameForm keeps a name harmless in a Redis key, where braces decide the
// Cluster slot, and in a URL, a log or a metric label.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// ValidName tells whether a room can have this name. Anything else can be
// answered "not found" without asking a database.
func ValidName(name string) bool { return nameForm.MatchString(name) }

// Room is one waiting line as Postgres has it. Its JSON is what the operators'
// API shows.
type Room struct {
	Name       string   `json:"name"`
	Version    int64    `json:"version"` // rises by one with every change of the settings, and every release by hand
	Sale       int64    `json:"sale"`
	Generation int64    `json:"generation"` // 0: never begun
	Settings   Settings `json:"settings"`
	Released   int64    `json:"released"` // by hand, over the whole life of the room
	// RestorableFrom is the oldest generation whose tickets are good; 0 until
	// the next generation begins, because nothing before it counts.
	RestorableFrom int64     `json:"-"`
	CreatedAt      time.Time `json:"createdAt"`
	UpdatedAt      time.Time `json:"updatedAt"`
}

// Actor is who makes a change, from where, and by which call. It goes into the
// audit row of the change.
type Actor struct {
	Name      string
	Role      string
	Remote    string // address without port
	RequestID string
	Action    string // room.pause and so on; empty: the store's own word for the change
}

// Change is one row of the audit list.
type Change struct {
	ID        int64           `json:"id"`
	At        time.Time       `json:"at"`
	Actor     string          `json:"actor"`
	Role      string          `json:"role"`
	Remote    string          `json:"remote"`
	Action    string          `json:"action"`
	Target    string          `json:"target"`  // room, sku, or outbox/id
	Version   *int64          `json:"version"` // of the target after the change, nil where it has none
	Before    json.RawMessage `json:"before"`  // null: did not exist
	After     json.RawMessage `json:"after"`   // null: exists no more
	RequestID string          `json:"requestId"`
}
