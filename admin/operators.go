package admin

import "context"

// Operators tells whose bearer token something is that is none of Tokens.
type Operators interface {
	// Operator returns the owner of a token that is good at this moment, with the
	// name for the audit list and a role; ok is false for every other token.
	Operator(ctx context.Context, token string) (name string, role Role, ok bool)
}

// owner is whose token this is. Admin tokens come first: they need nobody else.
func (s *server) owner(ctx context.Context, token string) (entry, bool) {
	e, ok := s.Tokens.find(token)
	if ok || s.Operators == nil {
		return e, ok
	}
	name, role, ok := s.Operators.Operator(ctx, token)
	return entry{name: name, role: role}, ok
}
