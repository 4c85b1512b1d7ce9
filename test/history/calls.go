package history

import (
	"cmp"
	"math"
	"slices"
)

// call is one call, from its beginning to its end.
type call struct {
	Event       // what was asked; of the answer what Event has room for
	class  Type // OK, Fail or Unknown
	ended  bool // there was an end, of whatever class
	code   string
	begun  int64
	over   int64 // when the caller knew; never, where there was no end
	effect int64 // until when it may have had its effect: for ever, where nobody knows
}

const never = math.MaxInt64

// callsOf pairs beginnings with ends, in the order of the beginnings. An end
// without a beginning is a call that began at its end: there is nothing else to
// go by.
func callsOf(events []Event) []call {
	byOp := make(map[int64]int, len(events)/2)
	calls := make([]call, 0, len(events)/2)
	open := func(e Event) *call {
		byOp[e.Op] = len(calls)
		calls = append(calls, call{Event: e, class: Unknown, begun: e.Mono, over: never, effect: never})
		return &calls[len(calls)-1]
	}
	for _, e := range events {
		if e.Type == Invoke {
			open(e)
			continue
		}
		at, known := byOp[e.Op]
		var c *call
		if known {
			c = &calls[at]
		} else {
			c = open(e)
		}
		c.end(e)
	}
	slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.begun, b.begun) })
	return calls
}

// end takes the answer in. What it repeats of the question may be left out.
func (c *call) end(e Event) {
	asked := c.Event
	c.Event = e
	for _, f := range []struct{ to, from *string }{
		{&c.Client, &asked.Client}, {&c.Node, &asked.Node}, {&c.Room, &asked.Room}, {&c.Member, &asked.Member},
		{&c.Lane, &asked.Lane}, {&c.Grant, &asked.Grant}, {&c.Key, &asked.Key}, {&c.Content, &asked.Content}, {&c.Note, &asked.Note},
	} {
		if *f.to == "" {
			*f.to = *f.from
		}
	}
	if c.F == "" {
		c.F = asked.F
	}
	c.Forged = c.Forged || asked.Forged
	c.class, c.ended, c.code, c.over = e.Type, true, e.Code, e.Mono
	c.effect = e.Mono
	// An order that was classed without ClassOf is classed by it here.
	if c.F == Order && c.class == Unknown && c.code == "unavailable" {
		c.class = Fail
	}
	if c.class == Unknown {
		c.effect = never
	}
}

// told tells an answer that says where its member stands.
func (c *call) told() bool {
	return c.class == OK && (c.F == Enter || c.F == Poll) && c.Status != ""
}
