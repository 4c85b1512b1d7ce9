package admin

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/room"
)

// entryKey finds the caller in a request's context, fromKey their address.
type (
	entryKey struct{}
	fromKey  struct{}
)

// lookupAgain is when to ask again who could not be looked up.
const lookupAgain = 5 * time.Second

// authenticate lets in who shows a known token. It comes before routing, so
// that strangers can't even find out what exists.
func (s *server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := s.Trusted.Of(r)
		e, err := s.owner(r.Context(), bearer(r))
		switch {
		case errors.Is(err, ErrNoOperator):
			s.unknown(w, r, from)
			return
		case err != nil: // nobody's fault who asks
			s.Log.WarnContext(r.Context(), "operator can't be looked up", "err", err, "requestId", problem.RequestID(r))
			problem.Write(w, r, problem.New("unavailable").WithRetryAfter(lookupAgain))
			return
		}
		ctx := context.WithValue(r.Context(), fromKey{}, from)
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, entryKey{}, e)))
	})
}

// bearer is the token of the one Authorization header; two are not a choice
// for us to make.
func bearer(r *http.Request) string {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// need lets pass who has at least this role.
func need(role Role) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e := caller(r)
			if e.role < role {
				problem.Write(w, r, problem.New("forbidden").WithDetail(
					"This needs the role "+role.String()+"; the token of "+e.name+" has the role "+e.role.String()+"."))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// caller is whose token the request shows. Outside of authenticate it is nobody,
// and nobody may do anything.
func caller(r *http.Request) entry {
	e, _ := r.Context().Value(entryKey{}).(entry)
	return e
}

// actor is who makes this request, for the audit. The address is the peer's, or
// what trusted proxies say: anything else could be anybody's invention.
func actor(r *http.Request, action string) room.Actor {
	e := caller(r)
	remote := r.RemoteAddr // of a peer without an address, such as a socket
	if from, ok := r.Context().Value(fromKey{}).(netip.Addr); ok && from.IsValid() {
		remote = from.String()
	}
	return room.Actor{Name: e.name, Role: e.role.String(), Remote: remote, RequestID: problem.RequestID(r), Action: action}
}
