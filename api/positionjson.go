package api

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
)

// bodies are buffers that positions are written in, and then again others.
var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

var typeJSON = []string{"application/json"}

// writePosition answers with a position, as writeJSON would.
func writePosition(w http.ResponseWriter, status int, p *spec.Position) error {
	buffer := bodies.Get().(*[]byte)
	defer bodies.Put(buffer)
	body, err := appendPosition((*buffer)[:0], p)
	if err != nil {
		return err
	}
	*buffer = body
	h := w.Header()
	h["Content-Type"] = typeJSON
	h.Set("Retry-After", strconv.Itoa(int(math.Ceil(float64(p.NextPollAfterMs)/1000))))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone is nobody's error
	return nil
}

// appendPosition writes what json.Marshal does, in a fifth of its time: every poll
// is answered with one.
func appendPosition(b []byte, p *spec.Position) ([]byte, error) {
	b = number(append(b, `{"currentTotalWaitingCount":`...), p.CurrentTotalWaitingCount)
	b = instant(append(b, `,"enteredAt":`...), p.EnteredAt)
	b = text(append(b, `,"entryToken":`...), p.EntryToken)
	b = instant(append(b, `,"entryTokenExpiresAt":`...), p.EntryTokenExpiresAt)
	b = numbers(append(b, `,"estimatedWaitRange":`...), p.EstimatedWaitRange)
	b = number(append(b, `,"estimatedWaitSeconds":`...), p.EstimatedWaitSeconds)
	b = text(append(b, `,"lane":`...), p.Lane)
	b = text(append(b, `,"lastOutcome":`...), p.LastOutcome)
	b = truth(append(b, `,"lifted":`...), p.Lifted)
	b, err := seldom(append(b, `,"message":`...), p.Message, p.Message == nil)
	if err != nil {
		return nil, err
	}
	if b, err = seldom(append(b, `,"mustShow":`...), p.MustShow, p.MustShow == nil); err != nil {
		return nil, err
	}
	b = strconv.AppendInt(append(b, `,"nextPollAfterMs":`...), int64(p.NextPollAfterMs), 10)
	b = text(append(b, `,"orderId":`...), p.OrderID)
	b = truth(append(b, `,"overtakable":`...), p.Overtakable)
	b = strconv.AppendInt(append(b, `,"pollingIntervalSeconds":`...), int64(p.PollingIntervalSeconds), 10)
	b = text(append(b, `,"queueTicket":`...), p.QueueTicket)
	b = number(append(b, `,"rank":`...), p.Rank)
	b = text(append(b, `,"room":`...), &p.Room)
	b = text(append(b, `,"roomState":`...), &p.RoomState)
	b = number(append(b, `,"score":`...), p.Score)
	b = instant(append(b, `,"serverTime":`...), &p.ServerTime)
	b = text(append(b, `,"status":`...), &p.Status)
	return append(b, '}'), nil
}

func null(b []byte) []byte { return append(b, `null`...) }

func number(b []byte, n *int64) []byte {
	if n == nil {
		return null(b)
	}
	return strconv.AppendInt(b, *n, 10)
}

func numbers(b []byte, ns []int64) []byte {
	if ns == nil {
		return null(b)
	}
	b = append(b, '[')
	for i := range ns {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, ns[i], 10)
	}
	return append(b, ']')
}

func truth(b []byte, t *bool) []byte {
	if t == nil {
		return null(b)
	}
	return strconv.AppendBool(b, *t)
}

// instant writes a time of the years that JSON has, which those of Redis are of.
func instant(b []byte, t *time.Time) []byte {
	if t == nil {
		return null(b)
	}
	return append(t.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

func text[T ~string](b []byte, s *T) []byte {
	if s == nil {
		return null(b)
	}
	for i := range len(*s) {
		if c := (*s)[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(*s) // a string can be
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), *s...), '"')
}

// seldom is for what few positions have.
func seldom(b []byte, v any, none bool) ([]byte, error) {
	if none {
		return null(b), nil
	}
	text, err := json.Marshal(v)
	return append(b, text...), err
}
