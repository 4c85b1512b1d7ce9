package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

func memberPath(room, member string, more ...string) string {
	return roomPath(room, append([]string{"members", url.PathEscape(member)}, more...)...)
}

// GetMember says where a member of a room stands.
func (c *Client) GetMember(ctx context.Context, room, member string) (View, error) {
	return c.view(ctx, request{method: http.MethodGet, path: memberPath(room, member)}, memberRows)
}

// Evict takes the place or grant of a member away, for this sale. confirm must
// repeat the room's name.
func (c *Client) Evict(ctx context.Context, room, member, confirm string) (View, error) {
	return c.view(ctx, request{method: http.MethodDelete, path: memberPath(room, member), body: confirmation{confirm}}, memberRows)
}

// Block keeps a member out of the room for good. confirm must repeat its name.
func (c *Client) Block(ctx context.Context, room, member, confirm string) (View, error) {
	return c.view(ctx, request{method: http.MethodPut, path: memberPath(room, member, "block"), body: confirmation{confirm}}, memberRows)
}

// Unblock lets a member in again.
func (c *Client) Unblock(ctx context.Context, room, member string) (View, error) {
	return c.view(ctx, request{method: http.MethodDelete, path: memberPath(room, member, "block")}, memberRows)
}

// memberRows shows where a member is, and what keeps them from entering.
var memberRows = table(func(w io.Writer, v struct {
	Room        string     `json:"room"`
	Member      string     `json:"member"`
	State       string     `json:"state"`
	Lane        *string    `json:"lane"`
	Score       *int64     `json:"score"`
	Rank        *int64     `json:"rank"`
	InLine      *int64     `json:"inLine"`
	AwaySince   *time.Time `json:"awaySince"`
	ExpiresAt   *time.Time `json:"expiresAt"`
	ClaimEndsAt *time.Time `json:"claimEndsAt"`
	LastOutcome *string    `json:"lastOutcome"`
	OrderID     *string    `json:"orderId"`
	EndedAt     *time.Time `json:"endedAt"`
	Blocked     bool       `json:"blocked"`
	Evicted     bool       `json:"evicted"`
}) {
	line(w, "member", v.Member)
	line(w, "room", v.Room)
	line(w, "state", v.State)
	if v.Lane != nil && v.Score != nil {
		line(w, "lane "+*v.Lane, "score "+fmt.Sprint(*v.Score))
	}
	if v.Rank != nil && v.InLine != nil {
		line(w, "ahead", fmt.Sprintf("%d of %d in line", *v.Rank, *v.InLine))
	}
	for _, t := range []struct {
		name string
		at   *time.Time
	}{{"away since", v.AwaySince}, {"grant until", v.ExpiresAt}, {"order runs until", v.ClaimEndsAt}} {
		if t.at != nil {
			line(w, t.name, at(t.at))
		}
	}
	if v.OrderID != nil {
		line(w, "order", *v.OrderID)
	}
	if v.LastOutcome != nil {
		line(w, "last stay", *v.LastOutcome, at(v.EndedAt))
	}
	line(w, "kept out", cmp.Or(keptOut(v.Blocked, v.Evicted), "no"))
})

func keptOut(blocked, evicted bool) string {
	switch {
	case blocked:
		return "for good, until unblocked"
	case evicted:
		return "of this sale"
	}
	return ""
}
