package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// known keeps series that have been looked for, by what they were looked for by:
// finding one by its labels costs more than counting does. The zero known is empty.
// Keys have to be few.
type known[K comparable, S any] struct {
	mu     sync.Mutex
	series atomic.Pointer[map[K]S] // never changed, only replaced
}

// of is the series of a key, which find finds the first time.
func (k *known[K, S]) of(key K, find func(K) S) S {
	if m := k.series.Load(); m != nil {
		if s, ok := (*m)[key]; ok {
			return s
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := map[K]S{}
	if m := k.series.Load(); m != nil {
		next = maps.Clone(*m)
	}
	next[key] = find(key)
	k.series.Store(&next)
	return next[key]
}
