package history

import (
	"fmt"
	"strings"
)

// step is a line about a step, and what it did to some of the members.
func (j *judge) step(m *moment, members ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "life %d step %d at %s: %s", m.line.index, m.at, j.redis(m.Now), m.Script)
	if m.Mode != "" {
		b.WriteString(" " + m.Mode)
	}
	args := strings.Join(m.Args, " ")
	if len(args) > 120 {
		args = args[:120] + "..."
	}
	fmt.Fprintf(&b, "(%s)", args)
	if m.Err != "" {
		fmt.Fprintf(&b, " failed: %s", m.Err)
	} else {
		fmt.Fprintf(&b, " -> %s", m.Word())
	}
	for _, v := range m.moves {
		for _, name := range members {
			if v.member == name {
				fmt.Fprintf(&b, "; %s: %s -> %s", name, j.member(v.before), j.member(v.after))
			}
		}
	}
	return b.String()
}

// member says where a member is.
func (j *judge) member(m *Member) string {
	switch k := m.kind(); k {
	case waiting:
		return fmt.Sprintf("WAITING in lane %v at %d", m.Lanes, m.Score)
	case processing:
		if m.Held == nil {
			return "processing without a place"
		}
		return fmt.Sprintf("processing from %d by %s until %s", m.Held.Score, m.Held.Step, j.redis(m.Processing))
	case away:
		return fmt.Sprintf("AWAY from %d since %s", m.place().Score, j.redis(m.Away))
	case ready, claimed:
		if m.Grant == nil {
			return string(k) + " without a grant"
		}
		s := fmt.Sprintf("%s %s until %s", k, m.Grant.ID, j.redis(m.Grant.Expiry))
		if m.Grant.Claim != "" {
			s += fmt.Sprintf(", claimed by %s until %s", m.Grant.Claim, j.redis(m.Claimed))
		}
		return s
	case ended:
		o := m.outcome()
		return fmt.Sprintf("ended %s grant %q order %q", o.Word, o.Grant, o.Order)
	}
	return string(nowhere)
}

// redis is a time of Redis, counted from the first step.
func (j *judge) redis(t int64) string {
	if t == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.6fs", float64(t-j.epoch)/second)
}

// call is a line about a call.
func (j *judge) call(c *call) string {
	over := "never"
	if c.over != never {
		over = fmt.Sprintf("%+.6fs", float64(c.over-j.start)/1e9)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "op %d %s by %s at %s, %+.6fs to %s: %s %s", c.Op, c.F, c.Member, c.Node, float64(c.begun-j.start)/1e9, over, c.class, c.code)
	for _, f := range []struct{ name, value string }{
		{"grant", c.Grant}, {"key", c.Key}, {"content", c.Content}, {"status", c.Status}, {"order", c.OrderID}, {"outcome", c.Outcome},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, " %s=%s", f.name, f.value)
		}
	}
	if c.Score > 0 {
		fmt.Fprintf(&b, " score=%d", c.Score)
	}
	if c.Status == "WAITING" {
		fmt.Fprintf(&b, " rank=%d total=%d", c.Rank, c.Total)
	}
	if c.Replayed {
		b.WriteString(" replayed")
	}
	if c.Forged {
		b.WriteString(" forged")
	}
	return b.String()
}

// told is a line about each of some calls.
func (j *judge) told(calls []*call) []string {
	const enough = 12
	var out []string
	for _, c := range calls[:min(len(calls), enough)] {
		out = append(out, j.call(c))
	}
	return out
}

// row is a line about an order.
func row(o *OrderRow) string {
	what := "order"
	if o.Void {
		what = "void row"
	}
	return fmt.Sprintf("%s %s: grant %s member %s room %s sale %d generation %d key %q content %s", what, o.ID, o.Grant, o.Member,
		o.Room, o.Sale, o.Generation, o.Key, o.Content)
}
