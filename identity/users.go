package identity

import "context"

// Users reads the user tokens of an application.
type Users struct {
	*Verifier
	MemberClaim string
	LaneClaim   string // empty: tokens say nothing of a lane
}

// User returns whose a token is and, if it speaks of a lane, what it calls it:
// anything but one name is no lane. A token that names not exactly one member is
// ErrInvalid, as others are that Verify refuses. Whether it can be a member's id
// is for the caller to say.
func (u Users) User(ctx context.Context, token string) (member string, lanes []string, err error) {
	claims, err := u.Verify(ctx, token)
	if err != nil {
		return "", nil, err
	}
	member, ok := claims.One(u.MemberClaim)
	if !ok {
		return "", nil, ErrInvalid
	}
	return member, claims[u.LaneClaim], nil
}
