package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	operators "github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/room"
)

type roomCmd struct {
	List    roomList    `cmd:"" help:"List all rooms."`
	Create  roomCreate  `cmd:"" help:"Make a room. What is not said has its default."`
	Get     roomGet     `cmd:"" help:"Show the settings of a room."`
	Set     roomSet     `cmd:"" help:"Change settings. In force within a second on every process."`
	Pause   roomPause   `cmd:"" help:"Let nobody through. People still enter, and keep their places."`
	Resume  roomResume  `cmd:"" help:"End a pause, a drain and an off."`
	Drain   roomDrain   `cmd:"" help:"Let nobody enter. Those in line are served."`
	Off     roomOff     `cmd:"" help:"Let everybody pass, as if there were no waiting room. Ends a pause and a drain."`
	Release roomRelease `cmd:"" help:"Let some of those in line go at once, beyond the rate."`
	Flush   roomFlush   `cmd:"" help:"Send everybody away and begin a new sale. Can't be undone."`
	Delete  roomDelete  `cmd:"" help:"Delete a room. Everybody in it loses the place; orders stay."`
	Stats   roomStats   `cmd:"" help:"Show the line as it is at this moment."`
	Apply   roomApply   `cmd:"" help:"Make rooms as a file says, and show what changes. Never deletes."`
}

// output is how a command prints what it got.
type output struct {
	Output operators.Format `short:"o" enum:"table,json" default:"table" help:"How to print: table, or json as the API gives it."`
}

// shown prints the answer of a call.
func (o output) shown(std streams, v operators.View, err error) error {
	if err != nil {
		return err
	}
	return v.Print(std.out, o.Output)
}

// RoomArg is a room on the command line. It is exported because package config
// passes over embedded structs that are not.
type RoomArg struct {
	Room string `arg:"" help:"Name of the room."`
}

// Check refuses what no room can be called.
func (a RoomArg) Check() error {
	if !room.ValidName(a.Room) {
		return fmt.Errorf("%q can't be the name of a room: it must match ^[a-z0-9][a-z0-9_-]{0,63}$", a.Room)
	}
	return nil
}

// seenVersion is the version that a change was made from.
type seenVersion struct {
	IfVersion int64 `placeholder:"N" help:"Change it only if it is still at this version."`
}

type roomList struct {
	operators.Remote
	output
}

// Run makes the call and prints the answer.
func (c *roomList) Run(ctx context.Context, std streams) error {
	v, err := c.Client().ListRooms(ctx)
	return c.shown(std, v, err)
}

type roomGet struct {
	operators.Remote
	RoomArg
	output
}

// Run makes the call and prints the answer.
func (c *roomGet) Run(ctx context.Context, std streams) error {
	v, err := c.Client().GetRoom(ctx, c.Room)
	return c.shown(std, v, err)
}

type roomStats struct {
	operators.Remote
	RoomArg
	output
}

// Run makes the call and prints the answer.
func (c *roomStats) Run(ctx context.Context, std streams) error {
	v, err := c.Client().Stats(ctx, c.Room)
	return c.shown(std, v, err)
}

type roomCreate struct {
	operators.Remote
	RoomArg
	Settings []string `arg:"" optional:"" sep:"none" name:"setting=value" help:"Settings, such as batchSize=100 or message.en=\"Soon\"."`
	output
	patch json.RawMessage
}

// Check reads the settings, so that what is wrong with them is told before
// anything is sent.
func (c *roomCreate) Check() (err error) {
	c.patch, err = operators.ParseAssignments(c.Settings)
	return errors.Join(c.Remote.Check(), c.RoomArg.Check(), each(err))
}

// Run makes the call and prints the answer.
func (c *roomCreate) Run(ctx context.Context, std streams) error {
	v, err := c.Client().CreateRoom(ctx, c.Room, c.patch)
	return c.shown(std, v, err)
}

type roomSet struct {
	operators.Remote
	RoomArg
	Settings []string `arg:"" sep:"none" name:"setting=value" help:"Settings, such as batchSize=100 or message.en=\"Soon\". An empty value gives the default back."`
	seenVersion
	output
	patch json.RawMessage
}

// Check is that of roomCreate.
func (c *roomSet) Check() (err error) {
	c.patch, err = operators.ParseAssignments(c.Settings)
	return errors.Join(c.Remote.Check(), c.RoomArg.Check(), each(err))
}

// Run makes the call and prints the answer.
func (c *roomSet) Run(ctx context.Context, std streams) error {
	v, err := c.Client().PatchRoom(ctx, c.Room, c.IfVersion, c.patch)
	return c.shown(std, v, err)
}

// each makes an error of every problem, so that each has a line.
func each(err error) error {
	var problems room.Problems
	if !errors.As(err, &problems) {
		return err
	}
	var all []error
	for _, p := range problems {
		all = append(all, errors.New(p.Field+" "+p.Detail))
	}
	return errors.Join(all...)
}

// turn is a switch of a room.
type turn struct {
	operators.Remote
	RoomArg
	seenVersion
	output
}

func (c *turn) do(ctx context.Context, std streams, verb string) error {
	v, err := c.Client().Turn(ctx, c.Room, verb, c.IfVersion)
	return c.shown(std, v, err)
}

// Check is needed because turn is embedded, and not exported.
func (c *turn) Check() error { return errors.Join(c.Remote.Check(), c.RoomArg.Check()) }

type roomPause struct{ turn }

// Run makes the call and prints the answer.
func (c *roomPause) Run(ctx context.Context, std streams) error { return c.do(ctx, std, "pause") }

type roomResume struct{ turn }

// Run makes the call and prints the answer.
func (c *roomResume) Run(ctx context.Context, std streams) error { return c.do(ctx, std, "resume") }

type roomDrain struct{ turn }

// Run makes the call and prints the answer.
func (c *roomDrain) Run(ctx context.Context, std streams) error { return c.do(ctx, std, "drain") }

type roomOff struct{ turn }

// Run makes the call and prints the answer.
func (c *roomOff) Run(ctx context.Context, std streams) error { return c.do(ctx, std, "off") }

type roomRelease struct {
	operators.Remote
	RoomArg
	Count int `required:"" placeholder:"N" help:"How many, 1 to 10000."`
	seenVersion
	output
}

// Check refuses a number that the API would refuse.
func (c *roomRelease) Check() error {
	var count error
	if c.Count < 1 || c.Count > room.MaxRelease {
		count = fmt.Errorf("--count: must be 1 to %d, is %d", room.MaxRelease, c.Count)
	}
	return errors.Join(c.Remote.Check(), c.RoomArg.Check(), count)
}

// Run makes the call and prints the answer.
func (c *roomRelease) Run(ctx context.Context, std streams) error {
	v, err := c.Client().Release(ctx, c.Room, c.Count, c.IfVersion)
	return c.shown(std, v, err)
}

// confirmed is a room that something is done to which can't be undone.
type confirmed struct {
	operators.Remote
	RoomArg
	Confirm string `required:"" placeholder:"ROOM" help:"The room's name again, so that a line from the shell's history hits no other room."`
}

// Check wants the name twice, and the same.
func (c *confirmed) Check() error {
	var differs error
	if c.Confirm != c.Room {
		differs = fmt.Errorf("--confirm: is %q, not the room's name %s again", c.Confirm, c.Room)
	}
	return errors.Join(c.Remote.Check(), c.RoomArg.Check(), differs)
}

type roomFlush struct {
	confirmed
	output
}

// Run makes the call and prints the answer.
func (c *roomFlush) Run(ctx context.Context, std streams) error {
	v, err := c.Client().Flush(ctx, c.Room, c.Confirm)
	return c.shown(std, v, err)
}

type roomDelete struct{ confirmed }

// Run makes the call, and says that it is done.
func (c *roomDelete) Run(ctx context.Context, std streams) error {
	if err := c.Client().DeleteRoom(ctx, c.Room, c.Confirm); err != nil {
		return err
	}
	_, err := fmt.Fprintf(std.out, "room %s is deleted\n", c.Room)
	return err
}

type roomApply struct {
	operators.Remote
	File   string `short:"f" required:"" placeholder:"FILE" help:"YAML file with rooms and their settings; - for standard input."`
	DryRun bool   `help:"Only show what would change."`
	output
}

// Run shows the plan, then does it.
func (c *roomApply) Run(ctx context.Context, std streams) error {
	rooms, err := c.read(std.in)
	if err != nil {
		return misuse{c.named(err)}
	}
	client := c.Client()
	plan, err := client.Plan(ctx, rooms)
	if err != nil {
		return err
	}
	v, err := plan.View()
	if err := c.shown(std, v, err); err != nil || c.DryRun {
		return err
	}
	return client.Apply(ctx, plan)
}

// named puts the file in front of everything that is wrong with it.
func (c *roomApply) named(err error) error {
	name := c.File
	if name == "-" {
		name = "standard input"
	}
	var all []error
	for _, e := range leaves(err) {
		all = append(all, fmt.Errorf("%s: %w", name, e))
	}
	return errors.Join(all...)
}

func (c *roomApply) read(in io.Reader) (operators.Rooms, error) {
	if c.File == "-" {
		return operators.ReadRooms(in)
	}
	f, err := os.Open(c.File)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err // the file is named already
		}
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return operators.ReadRooms(f)
}
