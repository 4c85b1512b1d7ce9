package admin

import (
	"net/http"

	"github.com/linekeeper/linekeeper/room"
)

// releaseByHand lets some of those in line go at once, beyond the rate. Two calls
// are two releases; of two copies with one If-Match the second is refused.
func (s *server) releaseByHand(w http.ResponseWriter, r *http.Request) error {
	name, err := roomName(r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r, jsonType)
	if err != nil {
		return err
	}
	count, err := room.ParseRelease(body)
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
