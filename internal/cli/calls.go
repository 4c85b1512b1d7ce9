package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// confirmation is the body of what can't be undone.
type confirmation struct {
	Confirm string `json:"confirm"`
}

// view makes the call and says how a table shows its answer.
func (c *Client) view(ctx context.Context, r request, rows rows) (View, error) {
	a, err := c.do(ctx, r)
	return View{Body: a.body, rows: rows}, err
}

// ListRooms gives all rooms.
func (c *Client) ListRooms(ctx context.Context) (View, error) {
	return c.view(ctx, request{method: http.MethodGet, path: "/rooms"}, listRows)
}

// GetRoom gives one room with its settings.
func (c *Client) GetRoom(ctx context.Context, name string) (View, error) {
	return c.view(ctx, request{method: http.MethodGet, path: roomPath(name)}, roomRows)
}

// Stats gives a room as Redis has it now.
func (c *Client) Stats(ctx context.Context, name string) (View, error) {
	return c.view(ctx, request{method: http.MethodGet, path: roomPath(name, "snapshot")}, statsRows)
}

// CreateRoom makes a room with these settings, and defaults for the rest.
func (c *Client) CreateRoom(ctx context.Context, name string, settings json.RawMessage) (View, error) {
	body := map[string]any{"name": name, "settings": settings}
	return c.view(ctx, request{method: http.MethodPost, path: "/rooms", body: body}, changedRows)
}

// PatchRoom changes settings by a JSON merge patch. version is that which the
// caller has seen; 0 changes whatever is there.
func (c *Client) PatchRoom(ctx context.Context, name string, version int64, patch json.RawMessage) (View, error) {
	return c.view(ctx, request{method: http.MethodPatch, path: roomPath(name), body: patch, version: seen(version)}, changedRows)
}

// Turn flips a switch of the room: pause, resume, drain or off. version is as in
// PatchRoom.
func (c *Client) Turn(ctx context.Context, name, verb string, version int64) (View, error) {
	return c.view(ctx, request{method: http.MethodPost, path: roomPath(name, verb), version: seen(version)}, changedRows)
}

// Release lets count of those in line go at once, beyond the rate. Two calls are
// two releases, unless both say the same version: then the second is refused.
func (c *Client) Release(ctx context.Context, name string, count int, version int64) (View, error) {
	body := map[string]int{"count": count}
	return c.view(ctx, request{method: http.MethodPost, path: roomPath(name, "release"), body: body, version: seen(version)}, changedRows)
}

// Flush sends everybody away and begins a new sale. confirm must repeat the name.
func (c *Client) Flush(ctx context.Context, name, confirm string) (View, error) {
	return c.view(ctx, request{method: http.MethodPost, path: roomPath(name, "flush"), body: confirmation{confirm}}, changedRows)
}

// DeleteRoom takes the room away. confirm must repeat the name.
func (c *Client) DeleteRoom(ctx context.Context, name, confirm string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: roomPath(name), body: confirmation{confirm}})
	return err
}

// GetProduct gives one product.
func (c *Client) GetProduct(ctx context.Context, sku string) (View, error) {
	return c.view(ctx, request{method: http.MethodGet, path: "/products/" + url.PathEscape(sku)}, productRows)
}

// Page is a part of a list.
type Page struct {
	Filter string // status of the outbox, target of the audit list; "" for the API's own choice
	Limit  int    // 0: the API's own choice
	From   int64  // the cursor that the page before gave; 0: the beginning
}

// query leaves out what the API decides by itself.
func (p Page) query(filter, cursor string) string {
	q := url.Values{}
	if p.Filter != "" {
		q.Set(filter, p.Filter)
	}
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.From > 0 {
		q.Set(cursor, strconv.FormatInt(p.From, 10))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// Outbox lists events of one status, lowest id first.
func (c *Client) Outbox(ctx context.Context, p Page) (View, error) {
	return c.view(ctx, request{method: http.MethodGet, path: "/outbox" + p.query("status", "after")}, outboxRows)
}

// Requeue gives a dead event all its attempts again.
func (c *Client) Requeue(ctx context.Context, id int64) error {
	_, err := c.do(ctx, request{method: http.MethodPost, path: fmt.Sprintf("/outbox/%d/requeue", id)})
	return err
}

// Audit lists changes, newest first.
func (c *Client) Audit(ctx context.Context, p Page) (View, error) {
	return c.view(ctx, request{method: http.MethodGet, path: "/audit" + p.query("target", "before")}, auditRows)
}
