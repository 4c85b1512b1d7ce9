package admin

import (
	"net/http"

	"github.com/linekeeper/linekeeper/room"
)

// releaseByHand lets some of those in line go at once, beyond the rate. Two calls
// are two releases; of two copies with one If-Match the second is refused.
func (s *server) releaseByHand(w http.ResponseWriter, r *http.Request) error {
	name, count, err := wish(w, r, room.ParseRelease)
	if err != nil {
		return err
	}
	version, _ := ifMatch(r)
	after, err := s.Store.Release(r.Context(), name, count, version, actor(r, "room.release"))
	if err != nil {
		return err
	}
	return writeVersioned(w, http.StatusOK, after.Version, after)
}

// wish is the room that a call is about, and what its body asks for, as parse reads it.
func wish[T any](w http.ResponseWriter, r *http.Request, parse func([]byte) (T, error)) (name string, want T, err error) {
	if name, err = roomName(r); err != nil {
		return name, want, err
	}
	body, err := readBody(w, r, jsonType)
	if err != nil {
		return name, want, err
	}
	want, err = parse(body)
	return name, want, err
}
