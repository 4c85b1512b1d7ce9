package redisstore

import (
	"fmt"
	"strconv"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// reply is what a script answers: a word, then names and values.
type reply struct {
	word   string
	values map[string]any
}

func parseReply(said any) (reply, error) {
	raw, ok := said.([]any)
	if !ok {
		return reply{}, fmt.Errorf("malformed reply: a %T", said)
	}
	if len(raw)%2 != 1 {
		return reply{}, fmt.Errorf("malformed reply of %d fields", len(raw))
	}
	word, ok := raw[0].(string)
	if !ok {
		return reply{}, fmt.Errorf("malformed reply: the first field is a %T", raw[0])
	}
	r := reply{word: word, values: make(map[string]any, len(raw)/2)}
	for i := 1; i < len(raw); i += 2 {
		name, ok := raw[i].(string)
		if !ok {
			return reply{}, fmt.Errorf("malformed reply: field %d is a %T, not a name", i, raw[i])
		}
		r.values[name] = raw[i+1]
	}
	return r, nil
}

// refusal turns the words that every caller treats alike into errors.
func (r reply) refusal() error {
	switch r.word {
	case "INIT":
		return queue.ErrNoRoom
	case "GEN":
		return queue.GenerationError{Generation: r.int("generation")}
	case "STALE":
		return queue.StaleError{Term: r.int("term")}
	case "NOT_OPEN":
		return queue.ErrNotOpen
	case "CLOSED":
		return queue.ErrClosed
	case "SOLD_OUT":
		return queue.ErrSoldOut
	case "FULL": // of enter; reserve's FULL carries a time to wait
		if _, waits := r.values["wait"]; !waits {
			return queue.ErrFull
		}
	case "ORDERED":
		return queue.ErrOrdered
	case "GONE":
		return queue.ErrGone
	case "BUSY":
		return queue.BusyError{Left: r.duration("wait")}
	case "LIMIT":
		return queue.ErrLimit
	}
	return nil
}

func (r reply) string(name string) string { return toString(r.values[name]) }
func (r reply) int(name string) int64     { return toInt(r.values[name]) }
func (r reply) time(name string) time.Time {
	return time.UnixMicro(r.int(name))
}
func (r reply) duration(name string) time.Duration {
	return time.Duration(r.int(name)) * time.Microsecond
}

func (r reply) list(name string) []any {
	l, _ := r.values[name].([]any)
	return l
}

func (r reply) ints(name string) []int64 {
	l := r.list(name)
	out := make([]int64, len(l))
	for i, v := range l {
		out[i] = toInt(v)
	}
	return out
}

// hash reads a flat list of fields and values.
func (r reply) hash(name string) map[string]string {
	l := r.list(name)
	out := make(map[string]string, len(l)/2)
	for i := 0; i+1 < len(l); i += 2 {
		out[toString(l[i])] = toString(l[i+1])
	}
	return out
}

func toString(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// toInt reads a number that a script printed in full; what is missing is 0.
func toInt(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}
