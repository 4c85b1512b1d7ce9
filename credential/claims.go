package credential

import (
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/golang-jwt/jwt/v5"

	"github.com/linekeeper/linekeeper/queue"
)

// claims is the payload of both credentials. Integers are int64 all the way,
// because a score is too large for a float that also has to be exact. The order
// of the fields is part of the format: see encodesTo.
type claims struct {
	Audience   string `json:"aud"`
	ID         string `json:"jti,omitempty"` // of the grant; a ticket has none
	Room       string `json:"room"`
	Sale       int64  `json:"sale"`
	Generation int64  `json:"gen"`
	Member     string `json:"sub"`
	Lane       int    `json:"lane"`
	Score      int64  `json:"score"`
	IssuedAt   int64  `json:"iat"`
	Expiry     int64  `json:"exp"`
	Granted    bool   `json:"granted,omitempty"` // of a ticket; a token goes without saying
	Work       int    `json:"work,omitempty"`    // of a ticket without a place
	Open       bool   `json:"open,omitempty"`    // of a token that the line knows nothing of
	Network    string `json:"net,omitempty"`     // in which it was given, as Bind has it
}

// GetAudience is what the library compares with the purpose at hand.
func (c *claims) GetAudience() (jwt.ClaimStrings, error) { return jwt.ClaimStrings{c.Audience}, nil }

// GetExpirationTime shows the library none, nor do the next two show theirs: it
// would compare them with this machine's clock, and nobody must lose to that.
func (*claims) GetExpirationTime() (*jwt.NumericDate, error) { return nil, nil }

// GetIssuedAt shows none.
func (*claims) GetIssuedAt() (*jwt.NumericDate, error) { return nil, nil }

// GetNotBefore shows none.
func (*claims) GetNotBefore() (*jwt.NumericDate, error) { return nil, nil }

// GetIssuer is empty: the key says who issued it.
func (*claims) GetIssuer() (string, error) { return "", nil }

// GetSubject is the member.
func (c *claims) GetSubject() (string, error) { return c.Member, nil }

// place is where the holder stands.
func (c *claims) place() queue.Place { return queue.Place{Lane: c.Lane, Score: c.Score} }

// check says what is wrong with the part that both credentials share. Like
// checkTicket and checkGrant, which begin with it, it runs before signing and
// after verifying: the key may be shared with others, who sign other things.
func (c *claims) check() error {
	// Who has a place stands in a sale and a generation that have begun.
	begun := min(c.Score, 1)
	switch {
	case !validRoom(c.Room):
		return errors.New("malformed room name")
	case !ValidMember(c.Member):
		return errors.New("malformed member id")
	case c.Lane < 0 || c.Lane >= queue.MaxLanes:
		return errors.New("no such lane")
	case !within(c.Score, 0, maxExact):
		return errors.New("score out of range")
	case !within(c.Sale, begun, maxExact) || !within(c.Generation, begun, maxExact):
		return errors.New("sale or generation out of range")
	case !within(c.IssuedAt, 1, maxSecond) || !within(c.Expiry, 1, maxSecond):
		return errors.New("time out of range")
	case !validBinding(c.Network):
		return errors.New("malformed network")
	}
	return nil
}

func within(n, low, high int64) bool { return low <= n && n <= high }

// encodesTo tells whether payload, a segment of a JWT, is what these claims are
// written as. It refuses in one go what encoding/json lets pass: unknown and
// repeated fields, other cases, white space, nulls.
func (c *claims) encodesTo(payload string) bool {
	b, err := json.Marshal(c)
	return err == nil && base64.RawURLEncoding.EncodeToString(b) == payload
}
