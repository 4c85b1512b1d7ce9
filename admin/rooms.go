package admin

import (
	"net/http"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/room"
)

func (s *server) listRooms(w http.ResponseWriter, r *http.Request) error {
	rooms, err := s.Store.List(r.Context())
	if err != nil {
		return err
	}
	if rooms == nil {
		rooms = []room.Room{} // [] and not null
	}
	return write(w, http.StatusOK, map[string]any{"rooms": rooms})
}

// createRoom takes the settings along, so that a room is never open for a
// moment with the defaults.
func (s *server) createRoom(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, jsonType)
	if err != nil {
		return err
	}
	name, settings, err := room.ParseNew(body)
	if err != nil {
		return err
	}
	made, err := s.Store.Create(r.Context(), name, settings, actor(r, "room.create"))
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/admin/v1/rooms/"+name)
	return writeVersioned(w, http.StatusCreated, made.Version, made)
}

func (s *server) getRoom(w http.ResponseWriter, r *http.Request) error {
	name, err := roomName(r)
	if err != nil {
		return err
	}
	found, err := s.Store.Get(r.Context(), name)
	if err != nil {
		return err
	}
	return writeVersioned(w, http.StatusOK, found.Version, found)
}

// patchRoom asks for If-Match: without it the slower of two operators would
// undo what the other has just done and never know.
func (s *server) patchRoom(w http.ResponseWriter, r *http.Request) error {
	name, err := roomName(r)
	if err != nil {
		return err
	}
	version, given := ifMatch(r)
	if !given {
		return refusal{problem.New("precondition-required")}
	}
	patch, err := readBody(w, r, patchType, jsonType)
	if err != nil {
		return err
	}
	change := func(cur room.Settings) (room.Settings, error) { return room.MergePatch(cur, patch) }
	updated, err := s.Store.Update(r.Context(), name, version, change, actor(r, "room.update"))
	if err != nil {
		return err
	}
	return writeVersioned(w, http.StatusOK, updated.Version, updated)
}

// turn is a call that flips switches of the settings. Without If-Match it acts
// on whatever is in force: whoever pauses in an emergency does not look first.
func (s *server) turn(action string, flip func(*room.Settings)) handler {
	change := func(cur room.Settings) (room.Settings, error) {
		flip(&cur)
		return cur, nil
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		name, err := roomName(r)
		if err != nil {
			return err
		}
		if err := noBody(w, r); err != nil {
			return err
		}
		version, _ := ifMatch(r)
		updated, err := s.Store.Update(r.Context(), name, version, change, actor(r, action))
		if err != nil {
			return err
		}
		return writeVersioned(w, http.StatusOK, updated.Version, updated)
	}
}

// pause leaves the line open: people enter and keep their places.
func pause(s *room.Settings) { s.Paused = true }

// resume ends a pause, a drain and an off: the room runs as if none had been.
func resume(s *room.Settings) { s.Paused, s.Draining, s.Off = false, false, false }

// drain leaves a pause alone: those in line are served once it ends.
func drain(s *room.Settings) { s.Draining = true }

// off lets everybody pass, also in a room that is paused or draining: these
// would win over it, and whoever switches off means what they say last.
func off(s *room.Settings) { s.Paused, s.Draining, s.Off = false, false, true }

// flushRoom shows the new sale; members see it once a scheduler has begun it.
func (s *server) flushRoom(w http.ResponseWriter, r *http.Request) error {
	name, err := roomName(r)
	if err != nil {
		return err
	}
	if err := readConfirmed(w, r, name); err != nil {
		return err
	}
	flushed, err := s.Store.Flush(r.Context(), name, actor(r, "room.flush"))
	if err != nil {
		return err
	}
	return writeVersioned(w, http.StatusOK, flushed.Version, flushed)
}

// deleteRoom answers the second of two deletes with 404, because the room's
// name may be another room's by then.
func (s *server) deleteRoom(w http.ResponseWriter, r *http.Request) error {
	name, err := roomName(r)
	if err != nil {
		return err
	}
	if err := readConfirmed(w, r, name); err != nil {
		return err
	}
	if err := s.Store.Delete(r.Context(), name, actor(r, "room.delete")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
