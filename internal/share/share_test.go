package share_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/share"
)

const most = 4 // of one call

// echo answers with the question, and holds each call until it may go.
type echo struct {
	calls chan []int
	may   chan error
}

func (e *echo) call(_ context.Context, questions []int) ([]string, error) {
	e.calls <- questions
	err := <-e.may
	var answers []string
	for _, q := range questions {
		answers = append(answers, fmt.Sprint("answer ", q))
	}
	return answers, err
}

func newEcho() (*echo, *share.Line[int, string]) {
	e := &echo{calls: make(chan []int), may: make(chan error)}
	return e, share.NewLine(most, e.call)
}

type said struct {
	text string
	err  error
}

func ask(ctx context.Context, l *share.Line[int, string], q int) <-chan said {
	out := make(chan said, 1)
	go func() {
		text, err := l.Ask(ctx, q)
		out <- said{text, err}
	}()
	return out
}

func TestWhoComesDuringACallSharesTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, l := newEcho()
		first := ask(t.Context(), l, 1)
		require.Equal(t, []int{1}, <-e.calls, "nobody waits for company")
		var others []<-chan said
		for q := 2; q <= 5; q++ {
			others = append(others, ask(t.Context(), l, q))
			synctest.Wait()
		}
		require.Equal(t, 4, l.Waiting())
		e.may <- nil
		require.Equal(t, said{"answer 1", nil}, <-first)
		require.Equal(t, []int{2, 3, 4, 5}, <-e.calls, "in the order in which they came")
		e.may <- nil
		for i, o := range others {
			require.Equal(t, said{fmt.Sprint("answer ", i+2), nil}, <-o)
		}
		synctest.Wait()
		require.Zero(t, l.Waiting())
		again := ask(t.Context(), l, 6)
		require.Equal(t, []int{6}, <-e.calls, "after a pause it goes on")
		e.may <- nil
		require.Equal(t, said{"answer 6", nil}, <-again)
	})
}

func TestACrowdIsAnsweredByManyCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, l := newEcho()
		asked := []<-chan said{ask(t.Context(), l, 0)}
		require.Equal(t, []int{0}, <-e.calls)
		tired, giveUp := context.WithCancel(t.Context())
		for q := 1; q <= 10; q++ {
			ctx := t.Context()
			if q == 6 || q >= 9 {
				ctx = tired
			}
			asked = append(asked, ask(ctx, l, q))
			synctest.Wait()
		}
		require.Equal(t, 10, l.Waiting())
		giveUp()
		e.may <- nil
		require.Equal(t, []int{1, 2, 3, 4}, <-e.calls)
		e.may <- nil
		require.Equal(t, []int{5, 7, 8}, <-e.calls, "who has given up is not asked for")
		e.may <- nil
		for q, out := range asked {
			if q == 6 || q >= 9 {
				require.Equal(t, said{"", context.Canceled}, <-out)
				continue
			}
			require.Equal(t, said{fmt.Sprint("answer ", q), nil}, <-out)
		}
		synctest.Wait()
		require.Zero(t, l.Waiting()) // a call for none would wait for ever here
	})
}

func TestAnErrorIsOfOneCallAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, l := newEcho()
		first := ask(t.Context(), l, 1)
		<-e.calls
		second := ask(t.Context(), l, 2)
		synctest.Wait()
		away := errors.New("away")
		e.may <- away
		require.Equal(t, said{"", away}, <-first)
		<-e.calls
		e.may <- nil
		require.Equal(t, said{"answer 2", nil}, <-second)
	})
}

// Whoever gives up is not waited for, and takes nothing from the others; be it who
// has brought the call about.
func TestWhoGivesUpTakesNothingFromTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		asked := make(chan context.Context, 1)
		may := make(chan struct{})
		l := share.NewLine(most, func(ctx context.Context, questions []int) ([]int, error) {
			asked <- ctx
			<-may
			return questions, ctx.Err()
		})
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
		gone := make(chan error, 1)
		go func() {
			_, err := l.Ask(ctx, 1)
			gone <- err
		}()
		of := <-asked
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		_, err := l.Ask(ctx, 3)
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, l.Waiting(), "who has given up already is not asked for")
		require.NoError(t, of.Err(), "the call goes on")
		require.Equal(t, "kept", of.Value(key{}))
		stays := make(chan int, 1)
		go func() {
			answer, err := l.Ask(t.Context(), 2)
			if err != nil {
				t.Error(err)
			}
			stays <- answer
		}()
		synctest.Wait()
		close(may)
		require.Equal(t, 2, <-stays)
		require.Nil(t, (<-asked).Value(key{}), "each call is of those who share it")
	})
}

// A panic is as if each had called by themselves, and the line goes on.
func TestAPanicIsTheirsWhoAsked(t *testing.T) {
	t.Parallel()
	l := share.NewLine(most, func(_ context.Context, questions []int) ([]int, error) {
		if questions[0] == 1 {
			panic("forced")
		}
		return questions, nil
	})
	require.PanicsWithValue(t, "forced", func() { _, _ = l.Ask(t.Context(), 1) })
	answer, err := l.Ask(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, 2, answer)
}

func TestManyAskAtOnce(t *testing.T) {
	t.Parallel()
	calls := 0 // one at a time
	l := share.NewLine(most, func(_ context.Context, questions []int) ([]int, error) {
		calls++
		return questions, nil
	})
	var all sync.WaitGroup
	for i := range 2000 {
		all.Go(func() {
			if answer, err := l.Ask(t.Context(), i); err != nil || answer != i {
				t.Errorf("%d: %d, %v", i, answer, err)
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, calls, 2000)
	t.Logf("%d calls", calls)
}
