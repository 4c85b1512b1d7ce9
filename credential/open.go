package credential

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/linekeeper/linekeeper/queue"
)

// openDomain keeps what is sealed here apart from all that is signed: no JWT has a
// line end in it.
const openDomain = "linekeeper-open-grant\n"

// OpenGrant completes g, which names room, sale, generation and member, to the grant
// with which its member passes while Redis is out of reach. It is good for at most
// ttl, and at least half of it. Asked again within half a ttl, any process with the
// same key gives the same: who asks twice can order once. now is the time of
// Postgres, because that of Redis can't be had.
//
// The id is 128 bits of a hash that only the holder of the key can make.
func (r *Ring) OpenGrant(g queue.Grant, now time.Time, ttl time.Duration) (queue.Grant, error) {
	k, ok := r.now().byID[r.SigningKeyID()]
	if !ok {
		return queue.Grant{}, fmt.Errorf("open grant in room %q: no keys", g.Room)
	}
	step := max(int64(ttl/time.Second)/2, 1)
	from := now.Unix() - now.Unix()%step
	// Neither a room nor a member has a line end in it.
	text := fmt.Sprintf("%s%s\n%d\n%d\n%s\n%d", openDomain, g.Room, g.Sale, g.Generation, g.Member, from)
	seal, err := k.seal(text)
	if err != nil {
		return queue.Grant{}, fmt.Errorf("open grant in room %q: %w", g.Room, err)
	}
	sum := sha256.Sum256(seal)
	g.ID = uuid.UUID(sum[:16]).String()
	g.IssuedAt, g.Expiry = time.Unix(from, 0).UTC(), time.Unix(from, 0).Add(ttl.Truncate(time.Second)).UTC()
	g.Place, g.Open, g.Picked, g.KeyID = queue.Place{}, true, true, k.id
	return g, nil
}
