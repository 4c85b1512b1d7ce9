package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// breakers are kinds that note what is on.
type breakers struct {
	mu     sync.Mutex
	on     map[string]int
	log    []string
	broken error
}

func (b *breakers) kind(name string, longest time.Duration, needs ...string) Kind {
	note := func(by int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, n := range needs {
			if b.on[n] += by; b.on[n] > 1 {
				b.log = append(b.log, "two on at once that need "+n)
			}
		}
	}
	return Kind{
		Name: name, Needs: needs, Longest: longest,
		Start: func(_ context.Context, d *Dice) (string, error) {
			note(1)
			b.mu.Lock()
			defer b.mu.Unlock()
			return fmt.Sprint("drew ", d.Below(1000)), b.broken
		},
		Stop: func(ctx context.Context) error {
			note(-1)
			return ctx.Err() // mending must not be called off
		},
	}
}

func (b *breakers) kinds() []Kind {
	return []Kind{
		b.kind("kill redis", 2*time.Second, "redis"), b.kind("fill redis", 3*time.Second, "redis"),
		b.kind("kill postgres", 2*time.Second, "postgres"), b.kind("cut", 4*time.Second), b.kind("flush scripts", 0, "redis"),
	}
}

func TestScheduleDependsOnTheSeedAlone(t *testing.T) {
	t.Parallel()
	kinds := (&breakers{on: map[string]int{}}).kinds()
	one, same, other := Plan(7, time.Minute, 5*time.Second, kinds), Plan(7, time.Minute, 5*time.Second, kinds), Plan(8, time.Minute, 5*time.Second, kinds)
	require.Equal(t, one.String(), same.String())
	require.NotEqual(t, one.String(), other.String())
	require.Contains(t, one.String(), "schedule of seed 7, 1m0s:")
}

func TestScheduleHasEveryKindAndKeepsThemApart(t *testing.T) {
	t.Parallel()
	kinds := (&breakers{on: map[string]int{}}).kinds()
	for seed := range uint64(200) {
		s := Plan(seed, time.Minute, 5*time.Second, kinds)
		require.Equal(t, len(kinds), s.Kinds())
		require.GreaterOrEqual(t, len(s.Events), 10)
		for i, a := range s.Events {
			require.LessOrEqual(t, a.At+a.For, s.Total)
			for _, b := range s.Events[i+1:] {
				apart := b.At >= a.At+a.For+recovery || a.At >= b.At+b.For+recovery
				require.True(t, apart || a.Kind != b.Kind && !shares(s.kinds[a.Kind].Needs, s.kinds[b.Kind].Needs), "%v and %v", a, b)
			}
		}
	}
}

func TestRunBreaksAndMendsByTheSchedule(t *testing.T) {
	t.Parallel()
	b := &breakers{on: map[string]int{}}
	kinds := []Kind{b.kind("a", 20*time.Millisecond, "redis"), b.kind("b", 20*time.Millisecond, "redis"), b.kind("c", 0, "postgres")}
	var mu sync.Mutex
	told := 0
	run := func() []string {
		s := Plan(3, 2*time.Second, time.Second, kinds)
		happened, err := s.Run(t.Context(), func(Happened) {
			mu.Lock()
			defer mu.Unlock()
			told++
		})
		require.NoError(t, err)
		require.Len(t, happened, len(s.Events))
		var what []string
		for _, h := range happened {
			require.False(t, h.Ended.Before(h.Began.Add(h.For)))
			what = append(what, h.Kind+" "+h.What)
		}
		return what
	}
	first := run()
	require.Equal(t, 2*len(first), told)
	require.Equal(t, first, run(), "the draws of an event are not the seed's")
	require.Empty(t, b.log)
	require.Equal(t, map[string]int{"redis": 0, "postgres": 0}, b.on)
}

func TestRunMendsWhatIsOnWhenItIsCalledOff(t *testing.T) {
	t.Parallel()
	b := &breakers{on: map[string]int{}}
	k := b.kind("long", time.Hour, "redis")
	k.Shortest = time.Hour
	s := Schedule{Events: []Planned{{For: time.Hour, Kind: "long"}, {At: time.Hour, Kind: "long"}}, kinds: map[string]Kind{"long": k}, dice: NewDice(1)}
	ctx, cancel := context.WithCancel(t.Context())
	happened, err := s.Run(ctx, func(Happened) { cancel() })
	require.NoError(t, err)
	require.Len(t, happened, 1)
	require.Equal(t, 0, b.on["redis"])
}

func TestFaultThatDoesNotComeAboutIsAnError(t *testing.T) {
	t.Parallel()
	b := &breakers{on: map[string]int{}, broken: errors.New("no such server")}
	s := Plan(1, 100*time.Millisecond, time.Second, []Kind{b.kind("a", 0)})
	_, err := s.Run(t.Context(), nil)
	require.ErrorIs(t, err, b.broken)
	require.ErrorContains(t, err, "fault a")
}

func TestDiceOfAnActorDependOnNobodyElse(t *testing.T) {
	t.Parallel()
	draws := func(before int) (all []int) {
		d := NewDice(9)
		for range before {
			d.Float()
		}
		ann := d.Of("ann")
		for range 10 {
			all = append(all, ann.Below(1000))
		}
		return all
	}
	require.Equal(t, draws(0), draws(5))
	require.NotEqual(t, draws(0)[0], NewDice(9).Of("bob").Below(1000))
	require.NotEqual(t, draws(0)[0], NewDice(9).Of("bob").Of("ann").Below(1000), "two of one name share their draws")
}
