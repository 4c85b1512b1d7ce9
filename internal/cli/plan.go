package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/linekeeper/linekeeper/room"
)

// Rooms is what a file says that rooms should be: a merge patch by name.
type Rooms map[string]json.RawMessage

// ReadRooms reads a declarative file and reports all that is wrong with it:
//
//	rooms:
//	  tickets:
//	    batchSize: 100
//	    opensAt: 2026-11-27T12:00:00Z
//
// A setting that is not named stays as it is, and has its default in a room that
// the file makes; null gives the default back. Rooms that are not named are
// nobody's business here.
func ReadRooms(r io.Reader) (Rooms, error) {
	var file struct {
		Rooms map[string]map[string]any `yaml:"rooms"`
	}
	d := yaml.NewDecoder(r)
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("can't be read: %s", strings.Join(strings.Fields(plain(err.Error())), " "))
	}
	if err := d.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("holds more than one document")
	}
	if len(file.Rooms) == 0 {
		return nil, errors.New("names no rooms; it must begin with `rooms:`")
	}
	rooms := Rooms{}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(file.Rooms)) {
		patch, err := wanted(name, file.Rooms[name])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("room %s: %w", plain(name), err))
		}
		rooms[name] = patch
	}
	return rooms, errors.Join(wrong...)
}

func wanted(name string, settings map[string]any) (json.RawMessage, error) {
	if !room.ValidName(name) {
		return nil, errors.New("no room can have this name")
	}
	if settings == nil {
		settings = map[string]any{} // a name alone: a room with the defaults
	}
	patch, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	return patch, problemsOf(settings, patch, nil)
}

// Step is what becomes of one room.
type Step struct {
	Room    string   `json:"room"`
	Action  string   `json:"action"`  // create, change, unchanged
	Changes []Change `json:"changes"` // of a new room: from the defaults
	version int64    // that the plan was made from
	patch   json.RawMessage
}

// Plan is what Apply will do, room by room, by name. Making one changes nothing.
type Plan []Step

// Plan compares what there is with what there should be.
func (c *Client) Plan(ctx context.Context, rooms Rooms) (Plan, error) {
	plan := Plan{}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		step, err := c.step(ctx, name, rooms[name])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("room %s: %w", name, err))
		}
		plan = append(plan, step)
	}
	return plan, errors.Join(wrong...)
}

func (c *Client) step(ctx context.Context, name string, patch json.RawMessage) (Step, error) {
	step := Step{Room: name, Action: "create", Changes: []Change{}, patch: patch}
	before, lives := room.Defaults(), false
	got, err := c.do(ctx, request{method: http.MethodGet, path: roomPath(name)})
	var no Refusal
	switch {
	case errors.As(err, &no) && no.Code == "room-not-found":
	case err != nil:
		return step, err
	default:
		var there room.Room
		if err := json.Unmarshal(got.body, &there); err != nil {
			return step, err
		}
		step.Action, step.version, before = "unchanged", there.Version, there.Settings
		lives = there.Generation > 0
	}
	after, err := room.MergePatch(before, patch)
	if err != nil {
		return step, err
	}
	if wrong := before.Continues(after); lives && len(wrong) > 0 {
		return step, wrong
	}
	changes, err := settingsDiff(before, after)
	if len(changes) > 0 {
		step.Changes = changes
		if step.Action == "unchanged" {
			step.Action = "change"
		}
	}
	return step, err
}

func settingsDiff(before, after room.Settings) ([]Change, error) {
	from, err := fieldsOf(before)
	if err != nil {
		return nil, err
	}
	to, err := fieldsOf(after)
	return diff(from, to), err
}

// Apply does what the plan says. A room that somebody has changed since is
// refused, and those before it stay done: apply again.
func (c *Client) Apply(ctx context.Context, plan Plan) error {
	for _, step := range plan {
		var err error
		switch step.Action {
		case "create":
			_, err = c.CreateRoom(ctx, step.Room, step.patch)
		case "change":
			_, err = c.PatchRoom(ctx, step.Room, step.version, step.patch)
		}
		if err != nil {
			return fmt.Errorf("room %s: %w", step.Room, err)
		}
	}
	return nil
}

// View shows the plan.
func (p Plan) View() (View, error) {
	body, err := json.Marshal(map[string]any{"plan": p})
	return View{Body: append(body, '\n'), rows: planRows}, err
}
