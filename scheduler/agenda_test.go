package scheduler

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAgendaGivesEntriesInTheOrderOfTheirLastTimes(t *testing.T) {
	t.Parallel()
	var a agenda
	now := time.Now()
	entries := make([]*entry, 200)
	for i := range entries {
		entries[i] = newEntry(func(context.Context, time.Time) {})
		a.at(entries[i], now.Add(rand.N(time.Hour)))
	}
	for range 2000 {
		a.at(entries[rand.N(200)], now.Add(rand.N(time.Hour)))
	}
	for _, e := range entries[:50] {
		a.drop(e)
	}
	a.hasten(entries[199], now)
	a.hasten(entries[0], now) // is not on the agenda, and stays off

	require.LessOrEqual(t, a.wait(now), time.Duration(0))
	require.Same(t, entries[199], a.next(now))
	last, got := now, 1
	for e := a.next(now.Add(time.Hour)); e != nil; e = a.next(now.Add(time.Hour)) {
		require.False(t, e.due.Before(last))
		last, got = e.due, got+1
	}
	require.Equal(t, 150, got)
	require.Equal(t, time.Hour, a.wait(now), "nothing is left")
}
