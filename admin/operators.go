package admin

import (
	"context"
	"errors"
)

// ErrNoOperator is what Operators.Operator returns for a token that is nobody's.
var ErrNoOperator = errors.New("admin: no operator's token")

// Operators tells whose bearer token something is that is none of Tokens.
type Operators interface {
	// Operator returns the owner of a token that is good at this moment, with the
	// name for the audit list and a role; ErrNoOperator for every token that is not.
	// Any other error leaves open whether it is.
	Operator(ctx context.Context, token string) (name string, role Role, err error)
}

// owner is whose token this is. Admin tokens come first: they need nobody else.
func (s *server) owner(ctx context.Context, token string) (entry, error) {
	if e, ok := s.Tokens.find(token); ok {
		return e, nil
	}
	if s.Operators == nil || token == "" {
		return entry{}, ErrNoOperator
	}
	name, role, err := s.Operators.Operator(ctx, token)
	return entry{name: name, role: role}, err
}
