package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
)

// memberPrefix sets the hashes apart from other hashes of the same ids. It is
// fixed, so that the lines of all replicas, and of next week, agree.
const memberPrefix = "linekeeper:member:"

// Transition is one change of a member's state.
type Transition struct {
	Member  string // hashed before it is written
	Room    string
	Lane    string
	From    string
	To      string
	Score   int64
	Grant   string // empty where there is none
	Waiting int64  // members in the lane, after the change
}

// Transitions logs changes of state. A nil one logs nothing, and costs
// nothing, so that callers need not ask whether it is on.
type Transitions struct{ log *slog.Logger }

// NewTransitions returns a log of changes, or nil if it is to be off.
func NewTransitions(log *slog.Logger, on bool) *Transitions {
	if !on {
		return nil
	}
	return &Transitions{log: log}
}

// On tells whether changes are logged, for callers to whom gathering a
// Transition is work.
func (t *Transitions) On() bool { return t != nil }

// Log writes one line for one change.
func (t *Transitions) Log(ctx context.Context, c Transition) {
	if t == nil {
		return
	}
	t.log.LogAttrs(ctx, slog.LevelInfo, "member changed state",
		slog.String("member", HashMember(c.Member)),
		slog.String("room", c.Room),
		slog.String("lane", c.Lane),
		slog.String("from", c.From),
		slog.String("to", c.To),
		slog.Int64("score", c.Score),
		slog.String("grant", c.Grant),
		slog.Int64("waiting", c.Waiting))
}

// HashMember is what stands for a member in logs: 12 hex digits, the same in
// every process. It follows one member through the lines without naming them;
// who knows all member ids can still tell which one it is.
func HashMember(member string) string {
	sum := sha256.Sum256([]byte(memberPrefix + member))
	return hex.EncodeToString(sum[:6])
}
