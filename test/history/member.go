package history

// kind is a state of architecture.md, section 2, as the room's keys have it.
type kind string

const (
	nowhere    kind = "NOT_ENTERED"
	waiting    kind = "WAITING"
	away       kind = "AWAY"
	processing kind = "processing"
	ready      kind = "READY"
	claimed    kind = "CLAIMED"
	ended      kind = "ended" // NOT_ENTERED or CONSUMED, with an outcome
)

// kind is where the member is. Who is in several places, which is a fault that
// I9 sees, is in the first of them.
func (m *Member) kind() kind {
	switch {
	case len(m.Lanes) > 0:
		return waiting
	case m.Processing > 0 || m.Held != nil:
		return processing
	case m.Away > 0 || m.AwayPlace != nil:
		return away
	case m.Claimed > 0 || m.Grant != nil && m.Grant.Claim != "":
		return claimed
	case m.Ready > 0 || m.Grant != nil:
		return ready
	case m.Done > 0 || m.Outcome != nil:
		return ended
	}
	return nowhere
}

// placed tells kinds that have a place: a member who has one is in the room.
func (k kind) placed() bool { return k != nowhere && k != ended }

// place is the place that the member has, or had before the grant. It is the
// zero Place for whoever has none.
func (m *Member) place() Place {
	switch {
	case len(m.Lanes) > 0:
		return Place{m.Lanes[0], m.Score}
	case m.Held != nil:
		return m.Held.Place
	case m.AwayPlace != nil:
		return *m.AwayPlace
	case m.Grant != nil:
		return m.Grant.Place
	}
	return Place{}
}

func (m *Member) grantID() string {
	if m.Grant == nil {
		return ""
	}
	return m.Grant.ID
}

func (m *Member) claimID() string {
	if m.Grant == nil {
		return ""
	}
	return m.Grant.Claim
}

func (m *Member) outcome() Outcome {
	if m.Outcome == nil {
		return Outcome{}
	}
	return *m.Outcome
}

// same tells whether two members are alike in all keys.
func (m *Member) same(o *Member) bool {
	if len(m.Lanes) != len(o.Lanes) || m.Score != o.Score || m.Seen != o.Seen || m.Away != o.Away || m.Processing != o.Processing ||
		m.Ready != o.Ready || m.Claimed != o.Claimed || m.Done != o.Done {
		return false
	}
	for i := range m.Lanes {
		if m.Lanes[i] != o.Lanes[i] {
			return false
		}
	}
	return equal(m.AwayPlace, o.AwayPlace) && equal(m.Held, o.Held) && equal(m.Grant, o.Grant) && equal(m.Outcome, o.Outcome)
}

func equal[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// live tells what the member adds to ready + claimed + processing at a time, as
// reserve counts them: a grant that is over no longer counts, a lease that is
// over still does.
func (m *Member) live(now int64) int64 {
	var n int64
	if m.Ready > now {
		n++
	}
	if m.Claimed > 0 {
		n++
	}
	if m.Processing > 0 {
		n++
	}
	return n
}
