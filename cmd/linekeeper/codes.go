package main

import (
	"context"
	"errors"
	"fmt"

	operators "github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/room"
)

type codeCmd struct {
	Create codeCreate `cmd:"" help:"Make access codes, and print them: this once, one a line."`
	List   codeList   `cmd:"" help:"List the access codes of a room, by their endings."`
	Revoke codeRevoke `cmd:"" help:"Make access codes count no more. Who has entered with one keeps the place."`
}

// RoomFlag is a room that a command is about by the way. It is exported because
// package config passes over embedded structs that are not.
type RoomFlag struct {
	Room string `required:"" placeholder:"NAME" help:"Name of the room."`
}

// Check is that of RoomArg.
func (f RoomFlag) Check() error { return RoomArg(f).Check() }

type codeCreate struct {
	operators.Remote
	RoomFlag
	Lane  string `placeholder:"NAME" help:"The lane that a code gives; none: it gives the right to enter alone."`
	Uses  int    `default:"1" help:"How many members may use each code, in each sale."`
	Count int    `default:"1" help:"How many codes."`
	output
}

// Check refuses numbers that the API would refuse.
func (c *codeCreate) Check() error {
	var count error
	if c.Count < 1 || c.Count > room.MaxCodes {
		count = fmt.Errorf("--count: must be from 1 to %d, got %d", room.MaxCodes, c.Count)
	}
	return errors.Join(c.Remote.Check(), c.RoomFlag.Check(), count)
}

// Run makes the call and prints the answer.
func (c *codeCreate) Run(ctx context.Context, std streams) error {
	v, err := c.Client().MakeCodes(ctx, c.Room, room.NewCodes{Lane: c.Lane, Uses: c.Uses, Count: c.Count})
	return c.shown(std, v, err)
}

type codeList struct {
	operators.Remote
	RoomFlag
	Limit int   `default:"50" help:"How many at most, up to 200."`
	After int64 `placeholder:"ID" help:"Go on behind this code."`
	output
}

// Run makes the call and prints the answer.
func (c *codeList) Run(ctx context.Context, std streams) error {
	v, err := c.Client().Codes(ctx, c.Room, operators.Page{Limit: c.Limit, From: c.After})
	return c.shown(std, v, err)
}

type codeRevoke struct {
	operators.Remote
	RoomFlag
	ID    int64 `placeholder:"ID" xor:"which" required:"" help:"One code, as the list has it."`
	Batch int64 `placeholder:"N" xor:"which" required:"" help:"All codes made together."`
	output
}

// Run makes the call and prints the answer.
func (c *codeRevoke) Run(ctx context.Context, std streams) error {
	v, err := c.Client().RevokeCodes(ctx, c.Room, room.Revocation{ID: c.ID, Batch: c.Batch})
	return c.shown(std, v, err)
}
