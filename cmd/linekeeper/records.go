package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	operators "github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/room"
)

type productCmd struct {
	Get productGet `cmd:"" help:"Show a product."`
	Set productSet `cmd:"" help:"Make a product, or say anew what is left of it and what it costs."`
}

// SKUArg is a product on the command line.
type SKUArg struct {
	SKU string `arg:"" name:"sku" help:"The product's SKU."`
}

// Check refuses what no product can be called.
func (a SKUArg) Check() error {
	if !room.ValidSKU(a.SKU) {
		return fmt.Errorf("%q can't be a SKU: it must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", a.SKU)
	}
	return nil
}

type productGet struct {
	operators.Remote
	SKUArg
	output
}

// Run makes the call and prints the answer.
func (c *productGet) Run(ctx context.Context, std streams) error {
	v, err := c.Client().GetProduct(ctx, c.SKU)
	return c.shown(std, v, err)
}

type productSet struct {
	operators.Remote
	SKUArg
	Fields []string `arg:"" sep:"none" name:"field=value" help:"stock=N, and of a new product priceCents=N and currency=EUR too."`
	seenVersion
	output
	fields map[string]json.RawMessage
}

// Check reads the fields before anything is sent.
func (c *productSet) Check() (err error) {
	c.fields, err = operators.ParseProduct(c.Fields)
	return errors.Join(c.Remote.Check(), c.SKUArg.Check(), each(err))
}

// Run makes the call and prints the answer.
func (c *productSet) Run(ctx context.Context, std streams) error {
	v, err := c.Client().PutProduct(ctx, c.SKU, c.IfVersion, c.fields)
	return c.shown(std, v, err)
}

type outboxCmd struct {
	List    outboxList    `cmd:"" help:"List events that orders have left, by default the dead ones, which need you."`
	Requeue outboxRequeue `cmd:"" help:"Give a dead event all its attempts again."`
}

type outboxList struct {
	operators.Remote
	Status string `enum:"dead,pending,done" default:"dead" help:"Which events: ${enum}."`
	Limit  int    `default:"50" help:"How many at most, up to 200."`
	After  int64  `placeholder:"ID" help:"Go on behind this event."`
	output
}

// Run makes the call and prints the answer.
func (c *outboxList) Run(ctx context.Context, std streams) error {
	v, err := c.Client().Outbox(ctx, operators.Page{Filter: c.Status, Limit: c.Limit, From: c.After})
	return c.shown(std, v, err)
}

type outboxRequeue struct {
	operators.Remote
	ID int64 `arg:"" help:"The event's id, as the list has it."`
}

// Run makes the call, and says that it is done.
func (c *outboxRequeue) Run(ctx context.Context, std streams) error {
	if err := c.Client().Requeue(ctx, c.ID); err != nil {
		return err
	}
	_, err := fmt.Fprintf(std.out, "event %d is pending again\n", c.ID)
	return err
}

type auditCmd struct {
	operators.Remote
	Target string `placeholder:"NAME" help:"Only of this room, SKU, or outbox/ID."`
	Limit  int    `default:"50" help:"How many at most, up to 200."`
	Before int64  `placeholder:"ID" help:"Go on before this change."`
	output
}

// Run makes the call and prints the answer.
func (c *auditCmd) Run(ctx context.Context, std streams) error {
	v, err := c.Client().Audit(ctx, operators.Page{Filter: c.Target, Limit: c.Limit, From: c.Before})
	return c.shown(std, v, err)
}
