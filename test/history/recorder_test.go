package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEventsOfManyClientsAreInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	r := NewRecorder()
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() {
			for range 200 {
				op := r.Invoke(Event{F: Enter, Client: fmt.Sprint(client), Member: fmt.Sprint(client), Rank: -1, Total: -1})
				r.End(op, Event{Type: OK, F: Enter, Code: "201", Status: "WAITING", Score: op, Rank: 0, Total: 1})
			}
		})
	}
	all.Wait()
	events := r.Events()
	require.Len(t, events, 8*200*2)
	for i := 1; i < len(events); i++ {
		require.LessOrEqual(t, events[i-1].Mono, events[i].Mono)
	}
	calls := callsOf(events)
	require.Len(t, calls, 8*200, "each end belongs to one beginning")
	for _, c := range calls {
		require.Equal(t, OK, c.class)
		require.Equal(t, c.Op, c.Score)
		require.NotEmpty(t, c.Member, "what the end leaves out is taken from the beginning")
		require.LessOrEqual(t, c.begun, c.over)
	}
}

func TestEventsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	r := NewRecorder()
	op := r.Invoke(Event{F: Order, Client: "c", Node: "n", Room: "r", Member: "m\n\"", Grant: "g", Forged: true, Key: "k", Content: "1xs", Rank: -1, Total: -1})
	r.End(op, Event{Type: Unknown, F: Order, Code: "EOF", Rank: -1, Total: -1, Note: "cut"})
	r.Invoke(Event{F: Poll, Rank: -1, Total: -1})
	var b bytes.Buffer
	n, err := r.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	require.Equal(t, 3, strings.Count(b.String(), "\n"))
	got, err := ReadEvents(&b)
	require.NoError(t, err)
	require.Equal(t, r.Events(), got)
	_, err = ReadEvents(strings.NewReader(`{"op":1}` + "\n" + `{"op":`))
	require.ErrorContains(t, err, "event 2")
}

// What began and never ended may have its effect for ever.
func TestACallWithoutAnEndStaysOpen(t *testing.T) {
	t.Parallel()
	calls := callsOf([]Event{
		{Op: 1, Type: Invoke, F: Order, Mono: 5}, {Op: 2, Type: Invoke, F: Order, Mono: 6}, {Op: 2, Type: Unknown, Code: "timeout", Mono: 9},
	})
	require.Equal(t, []Type{Unknown, Unknown}, []Type{calls[0].class, calls[1].class})
	require.Equal(t, []int64{never, never}, []int64{calls[0].effect, calls[1].effect})
	require.Equal(t, []int64{never, 9}, []int64{calls[0].over, calls[1].over}, "the caller knows when it gave up")
}

func TestOutcomesAreClassedAsTheCarefulDo(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	reset := &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for _, c := range []struct {
		name         string
		status       int
		code         string
		err          error
		enter, order Type
	}{
		{"made", 201, "", nil, OK, OK},
		{"none of ours", 204, "", nil, OK, OK},
		{"refused dial", 0, "", fmt.Errorf("post: %w", refused), Fail, Fail},
		{"no such host", 0, "", &net.OpError{Op: "dial", Err: errors.New("no route")}, Fail, Fail},
		{"reset", 0, "", reset, Unknown, Unknown},
		{"EOF", 0, "", io.ErrUnexpectedEOF, Unknown, Unknown},
		{"timeout", 0, "", os.ErrDeadlineExceeded, Unknown, Unknown},
		{"half an answer", 200, "", io.ErrUnexpectedEOF, Unknown, Unknown},
		{"4xx", 409, "sold-out", nil, Fail, Fail},
		{"unknown", 503, "order-outcome-unknown", nil, Unknown, Unknown},
		{"unavailable", 503, "unavailable", nil, Unknown, Fail},
		{"a proxy's", 502, "", nil, Unknown, Unknown},
		{"a panic", 500, "internal", nil, Unknown, Unknown},
		{"read-only server", 503, "READONLY You can't write", nil, Fail, Fail},
		{"overtaken", 503, "STALE", nil, Fail, Fail},
	} {
		require.Equal(t, c.enter, ClassOf(Enter, c.status, c.code, c.err), "enter: %s", c.name)
		require.Equal(t, c.enter, Class(c.status, c.code, c.err), "%s", c.name)
		require.Equal(t, c.order, ClassOf(Order, c.status, c.code, c.err), "order: %s", c.name)
	}
	require.Equal(t, Fail, ClassOf(Poll, 503, "unavailable", nil), "a poll leaves nothing open")
}

func TestContentIsWrittenInOneWay(t *testing.T) {
	t.Parallel()
	require.Equal(t, "3xa,1xb", Content([]Item{{"b", 1}, {"a", 1}, {"a", 2}}))
	require.Equal(t, Content([]Item{{"a", 3}, {"b", 1}}), Content([]Item{{"b", 1}, {"a", 1}, {"a", 2}}))
	require.Empty(t, Content(nil))
}
