package identity

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// keysAge is how old a set grows before it is read again.
	keysAge = 5 * time.Minute
	// askAgain is how soon after one read an unknown key may cause another. It is
	// what a flood of made-up keys can cost the source, and what a new key may
	// have to wait.
	askAgain = 10 * time.Second
	// readWithin bounds one read of the source.
	readWithin = 5 * time.Second
)

// cached is the set of keys of a source, as it was last read well.
type cached struct {
	source Source
	log    *slog.Logger
	now    func() time.Time
	set    atomic.Pointer[keySet]
	lock   chan struct{} // held by who reads; a channel, so that who waits can give up
	tried  time.Time     // when a read last began, under lock
	failed bool          // whether it was said that reading fails, under lock
}

func newCached(source Source, log *slog.Logger) *cached {
	return &cached{source: source, log: log, now: time.Now, lock: make(chan struct{}, 1)}
}

// newer reads the source again for somebody who can't use the set there is, unless
// that was tried a moment ago. It returns what is in force then, which may be the
// same set, or none.
func (c *cached) newer(ctx context.Context) *keySet {
	select {
	case c.lock <- struct{}{}:
	case <-ctx.Done():
		return c.set.Load()
	}
	defer func() { <-c.lock }()
	if c.tried.IsZero() || c.now().Sub(c.tried) >= askAgain {
		c.read(ctx)
	}
	return c.set.Load()
}

// read replaces the set by what the source says now. What can't be read changes
// nothing. The lock must be held.
func (c *cached) read(ctx context.Context) {
	c.tried = c.now()
	// Others wait for the answer too: it must not end with the client that asked.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin)
	defer cancel()
	text, err := c.source(ctx)
	old := c.set.Load()
	if err == nil && old != nil && bytes.Equal(text, old.text) {
		c.failed = false
		return // and what it has verified stays so
	}
	var set *keySet
	if err == nil {
		set, err = parseKeys(text)
	}
	if err != nil {
		if !c.failed {
			c.log.ErrorContext(ctx, "keys of tokens not read, those in force stay", "err", err)
		}
		c.failed = true
		return
	}
	c.failed = false
	c.set.Store(set)
	c.log.InfoContext(ctx, "keys of tokens read", "keys", len(set.byName))
}

// run reads the source by age until ctx ends; until it has been read once, as
// often as an unknown key may ask.
func (c *cached) run(ctx context.Context) error {
	for {
		select {
		case c.lock <- struct{}{}:
			c.read(ctx)
			<-c.lock
		case <-ctx.Done():
			return nil
		}
		pause := keysAge
		if c.set.Load() == nil {
			pause = askAgain
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}
