package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/linekeeper/linekeeper/credential"
	operators "github.com/linekeeper/linekeeper/internal/cli"
)

type memberCmd struct {
	Get     memberGet     `cmd:"" help:"Show where a member stands, and whether they are kept out."`
	Evict   memberEvict   `cmd:"" help:"Take a member's place or grant away, and keep them out of this sale. Can't be undone."`
	Block   memberBlock   `cmd:"" help:"Take a member's place or grant away, and keep them out for good."`
	Unblock memberUnblock `cmd:"" help:"Let a member in again who was blocked or evicted."`
}

// MemberArg is a member on the command line.
type MemberArg struct {
	Member string `arg:"" help:"The member's id."`
}

// Check refuses what no member can be called.
func (a MemberArg) Check() error {
	if !credential.ValidMember(a.Member) {
		return fmt.Errorf("%q can't be the id of a member: it must be 1 to 128 printable ASCII characters without spaces", a.Member)
	}
	return nil
}

// aMember is a member of a room.
type aMember struct {
	operators.Remote
	RoomArg
	MemberArg
	output
}

// Check is needed because aMember is embedded, and not exported.
func (c *aMember) Check() error {
	return errors.Join(c.Remote.Check(), c.RoomArg.Check(), c.MemberArg.Check())
}

type memberGet struct{ aMember }

// Run makes the call and prints the answer.
func (c *memberGet) Run(ctx context.Context, std streams) error {
	v, err := c.Client().GetMember(ctx, c.Room, c.Member)
	return c.shown(std, v, err)
}

type memberUnblock struct{ aMember }

// Run makes the call and prints the answer.
func (c *memberUnblock) Run(ctx context.Context, std streams) error {
	v, err := c.Client().Unblock(ctx, c.Room, c.Member)
	return c.shown(std, v, err)
}

// confirmedMember is a member whose place is taken away.
type confirmedMember struct {
	confirmed
	MemberArg
	output
}

// Check is that of confirmed, and of the member.
func (c *confirmedMember) Check() error {
	return errors.Join(c.confirmed.Check(), c.MemberArg.Check())
}

type memberEvict struct{ confirmedMember }

// Run makes the call and prints the answer.
func (c *memberEvict) Run(ctx context.Context, std streams) error {
	v, err := c.Client().Evict(ctx, c.Room, c.Member, c.Confirm)
	return c.shown(std, v, err)
}

type memberBlock struct{ confirmedMember }

// Run makes the call and prints the answer.
func (c *memberBlock) Run(ctx context.Context, std streams) error {
	v, err := c.Client().Block(ctx, c.Room, c.Member, c.Confirm)
	return c.shown(std, v, err)
}
