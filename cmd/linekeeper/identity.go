package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/identity"
	"github.com/linekeeper/linekeeper/internal/config"
)

// checkIdentity reports what can't be used of the settings for tokens of others.
func checkIdentity(conf config.Process) error {
	var errs []error
	for _, a := range conf.JWTAlgorithms {
		if !slices.Contains(identity.Algorithms, a) {
			errs = append(errs, fmt.Errorf("LINEKEEPER_JWT_ALGORITHMS: %q is not one of %v", a, identity.Algorithms))
		}
	}
	_, err := identity.From(conf.JWTKeys)
	errs = append(errs, named("LINEKEEPER_JWT_KEYS", err))
	if conf.OIDCIssuer != "" {
		errs = append(errs, named("LINEKEEPER_OIDC_ISSUER", identity.CheckURL(conf.OIDCIssuer)))
	}
	return errors.Join(errs...)
}

// verifiers are those of tokens that others issue; nil where there are none.
type verifiers struct {
	users     *identity.Users
	operators *operatorTokens
}

func newVerifiers(conf config.Process, log *slog.Logger) (v verifiers, err error) {
	if conf.Identity == config.IdentityJWT && conf.Roles.Has(config.RoleAPI) {
		source, err := identity.From(conf.JWTKeys)
		if err != nil {
			return verifiers{}, err
		}
		v.users = &identity.Users{MemberClaim: conf.JWTMemberClaim, LaneClaim: conf.JWTLaneClaim}
		v.users.Verifier = identity.New(identity.Config{
			Source: source, Algorithms: conf.JWTAlgorithms, Issuer: conf.JWTIssuer, Audience: conf.JWTAudience,
			Claims: []string{conf.JWTMemberClaim, conf.JWTLaneClaim},
		}, log.With("of", "users"))
	}
	if conf.OIDCIssuer != "" {
		v.operators = newOperatorTokens(conf, log)
	}
	return v, nil
}

// run keeps keys fresh.
func (v verifiers) run(ctx context.Context, g *errgroup.Group) {
	if v.users != nil {
		g.Go(func() error { return v.users.Run(ctx) })
	}
	if v.operators != nil {
		g.Go(func() error { return v.operators.tokens.Run(ctx) })
	}
}

// missing is what keeps a process from being ready: without the keys of users it
// would serve nobody, and should take over from none that has them.
func (v verifiers) missing() []string {
	if v.users != nil && !v.users.Verifier.Ready() {
		return []string{"user keys"}
	}
	return nil
}

// forMembers keeps a nil pointer from becoming an interface that is not nil; so
// does forOperators.
func (v verifiers) forMembers() api.Users {
	if v.users == nil {
		return nil
	}
	return v.users
}

func (v verifiers) forOperators() admin.Operators {
	if v.operators == nil {
		return nil
	}
	return v.operators
}

// operatorTokens knows operators by tokens of an OpenID provider.
type operatorTokens struct {
	tokens               *identity.Verifier
	nameClaim, roleClaim string
	roles                map[string]admin.Role
}

// oidcAlgorithms are those with public keys: a provider's set has no others.
var oidcAlgorithms = []string{"RS256", "ES256", "EdDSA"}

func newOperatorTokens(conf config.Process, log *slog.Logger) *operatorTokens {
	o := &operatorTokens{nameClaim: conf.OIDCNameClaim, roleClaim: conf.OIDCRoleClaim, roles: map[string]admin.Role{}}
	for value, name := range conf.OIDCRoles {
		o.roles[value], _ = admin.ParseRole(name) // the setting has none but good ones
	}
	o.tokens = identity.New(identity.Config{
		Source: identity.Discovered(conf.OIDCIssuer), Algorithms: oidcAlgorithms, Issuer: conf.OIDCIssuer,
		Audience: conf.OIDCAudience, Claims: []string{o.nameClaim, o.roleClaim},
	}, log.With("of", "operators"))
	return o
}

// operatorName is for the audit list and logs: it can't forge a line.
var operatorName = regexp.MustCompile(`^[!-~]{1,128}$`)

// Operator implements admin.Operators. A name of a provider stands behind oidc:,
// which no admin token's name has, so that nobody passes for somebody else.
func (o *operatorTokens) Operator(ctx context.Context, token string) (string, admin.Role, error) {
	claims, err := o.tokens.Verify(ctx, token)
	switch {
	case errors.Is(err, identity.ErrUnavailable):
		return "", 0, err
	case err != nil:
		return "", 0, admin.ErrNoOperator
	}
	var role admin.Role
	for _, value := range claims[o.roleClaim] {
		role = max(role, o.roles[value])
	}
	name, ok := claims.One(o.nameClaim)
	if !ok || !operatorName.MatchString(name) || role < admin.Viewer {
		return "", 0, admin.ErrNoOperator
	}
	return "oidc:" + name, role, nil
}
