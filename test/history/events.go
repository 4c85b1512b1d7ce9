package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Type says whether an event begins a call or how the call ended.
type Type string

// A call ends OK (it was done, and the answer says what), Fail (it was not
// done and never will be) or Unknown (nobody can tell yet). A call without an
// end is Unknown too: it may have its effect at any later time.
const (
	Invoke  Type = "invoke"
	OK      Type = "ok"
	Fail    Type = "fail"
	Unknown Type = "unknown"
)

// F is what a call asks for.
type F string

// The calls of members, and Admin for whatever an operator does; Note says what.
const (
	Enter F = "enter"
	Poll  F = "poll"
	Leave F = "leave"
	Order F = "order"
	Admin F = "admin"
)

// Event is the beginning or the end of one call of a client. Fields that the
// call or its answer does not have are left out.
type Event struct {
	Op     int64  `json:"op"`   // the same for the beginning and the end of a call
	Type   Type   `json:"type"` // which of the two it is
	F      F      `json:"f"`
	Client string `json:"client,omitempty"` // who called; a client has one call open at a time, or each is a client
	Node   string `json:"node,omitempty"`   // the process that was asked
	Room   string `json:"room,omitempty"`
	Member string `json:"member,omitempty"`
	Lane   string `json:"lane,omitempty"` // by its name

	Grant   string `json:"grant,omitempty"`   // id of the grant whose token was shown (Order) or received
	Forged  bool   `json:"forged,omitempty"`  // the token shown was not, byte for byte, the one received for Grant by Member
	Expires int64  `json:"expires,omitempty"` // end of the token received, in microseconds
	Key     string `json:"key,omitempty"`     // the Idempotency-Key that was sent
	Content string `json:"content,omitempty"` // what was ordered, as Content writes it

	Code     string `json:"code,omitempty"`    // of the problem, else the status of HTTP: 201 where the call made the place or the order
	Status   string `json:"status,omitempty"`  // WAITING, READY, CLAIMED, CONSUMED or NOT_ENTERED
	Score    int64  `json:"score,omitempty"`   // 0: the answer has none
	Rank     int64  `json:"rank"`              // -1: the answer has none
	Total    int64  `json:"total"`             // -1: the answer has none
	OrderID  string `json:"orderId,omitempty"` // of CONSUMED, and of an order placed
	Replayed bool   `json:"replayed,omitempty"`
	Outcome  string `json:"outcome,omitempty"` // lastOutcome

	Mono  int64  `json:"mono"`            // when it was recorded, by Now
	Redis int64  `json:"redis,omitempty"` // serverTime of the answer in microseconds; 0: not known
	Note  string `json:"note,omitempty"`
}

// begun is where Now counts from.
var begun = time.Now()

// Now is the time by the clock that recorders and collectors share, in
// nanoseconds: what time.Now().UnixNano() was when the process began, and the
// monotonic time since, so that a step of the machine's clock does not show.
func Now() int64 { return begun.UnixNano() + int64(time.Since(begun)) }

// Recorder gathers events from any number of goroutines. The zero Recorder is
// ready.
type Recorder struct {
	mu     sync.Mutex
	events []Event
	last   int64
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder { return &Recorder{} }

// Invoke records the beginning of a call, before it is sent, and names it.
func (r *Recorder) Invoke(e Event) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	// The time is taken under the lock, so that the events are in its order.
	e.Op, e.Type, e.Mono = r.last, Invoke, Now()
	r.events = append(r.events, e)
	return e.Op
}

// End records how a call ended, once its answer has been read. What e leaves
// out of who asked for what is taken from the beginning of the call by Calls.
func (r *Recorder) End(op int64, e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Op, e.Mono = op, Now()
	r.events = append(r.events, e)
}

// Events returns what has been recorded, in the order of time.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// WriteTo writes the events as JSON, one a line.
func (r *Recorder) WriteTo(w io.Writer) (int64, error) {
	n, err := WriteEvents(w, r.Events())
	return n, err
}

// WriteEvents writes events as JSON, one a line.
func WriteEvents(w io.Writer, events []Event) (int64, error) {
	var written int64
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			return written, fmt.Errorf("write event %d: %w", e.Op, err)
		}
		n, err := w.Write(append(line, '\n'))
		written += int64(n)
		if err != nil {
			return written, fmt.Errorf("write event %d: %w", e.Op, err)
		}
	}
	return written, nil
}

// ReadEvents reads what WriteEvents has written.
func ReadEvents(r io.Reader) ([]Event, error) {
	var events []Event
	for d := json.NewDecoder(bufio.NewReader(r)); ; {
		var e Event
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read event %d: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
}
