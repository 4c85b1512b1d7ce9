package queue

import (
	"errors"
	"fmt"
	"time"
)

// Errors a caller is expected to act on. Match them with errors.Is.
var (
	// ErrNoRoom means that Redis holds nothing of the room: it was never begun,
	// or its data is lost. Only a scheduler may begin it (again).
	ErrNoRoom = errors.New("queue: the room has no data")
	// ErrGeneration means that the caller and the room speak of different lives
	// of the room's data.
	ErrGeneration = errors.New("queue: another generation of the room")
	// ErrStale means that a newer step has been taken; match with StaleError for
	// the term.
	ErrStale = errors.New("queue: a newer term or step has been seen")
	// ErrNotOpen and ErrClosed refuse new members; those in line keep their places.
	ErrNotOpen = errors.New("queue: the room is not open yet")
	ErrClosed  = errors.New("queue: the room takes nobody new")
	// ErrSoldOut means that nothing is left of the product that bounds the room:
	// it takes nobody new; those in line keep their places.
	ErrSoldOut = errors.New("queue: the room's product is sold out")
	// ErrFull means that the line is at its maximum, or Redis at its memory limit.
	ErrFull = errors.New("queue: the room is full")
	// ErrOrdered means that the member has ordered in a room that allows one order.
	ErrOrdered = errors.New("queue: the member has ordered already")
	// ErrBusy means that another attempt holds the grant; see BusyError.
	ErrBusy = errors.New("queue: the grant is held by another order")
	// ErrGone means that no such grant exists (any more).
	ErrGone = errors.New("queue: no such grant")
	// ErrLimit means that as many orders are in flight as the room allows.
	ErrLimit = errors.New("queue: too many orders in flight")
	// ErrDamaged means that Redis holds something of the room that no script has
	// written: a key of another type, a malformed record. Repeating does not help.
	ErrDamaged = errors.New("queue: the room's data are damaged")
	// ErrUnavailable means that Redis gave no answer, or none that says what
	// happened: the call may have had its effect. Repeat it with the same ids.
	ErrUnavailable = errors.New("queue: redis is unavailable")
)

// StaleError is ErrStale with the term that the room has seen.
type StaleError struct{ Term int64 }

// Error names the term that the room has seen.
func (e StaleError) Error() string { return fmt.Sprintf("%v (term %d)", ErrStale, e.Term) }

// Is makes errors.Is(err, ErrStale) hold.
func (e StaleError) Is(target error) bool { return target == ErrStale }

// GenerationError is ErrGeneration with the generation that the room has.
type GenerationError struct{ Generation int64 }

// Error names the generation that the room has.
func (e GenerationError) Error() string {
	return fmt.Sprintf("%v (generation %d)", ErrGeneration, e.Generation)
}

// Is makes errors.Is(err, ErrGeneration) hold.
func (e GenerationError) Is(target error) bool { return target == ErrGeneration }

// BusyError is ErrBusy with the time until the holder's lease ends.
type BusyError struct{ Left time.Duration }

// Error names the time that is left of the lease.
func (e BusyError) Error() string { return fmt.Sprintf("%v for %v", ErrBusy, e.Left) }

// Is makes errors.Is(err, ErrBusy) hold.
func (e BusyError) Is(target error) bool { return target == ErrBusy }
