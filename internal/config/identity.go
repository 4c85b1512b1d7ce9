package config

import (
	"fmt"
	"slices"
	"strings"
)

// UserTokens is what the application's user tokens must be, in identity jwt.
type UserTokens struct {
	JWTKeys        string `env:"LINEKEEPER_JWT_KEYS" placeholder:"FILE|URL" help:"Identity jwt: where the JWKS of the issuer of user tokens is: a file, an https address, or an http address of this machine. Read again every 5 minutes, and for an unknown key at most every 10 s."`
	JWTAlgorithms  Names  `env:"LINEKEEPER_JWT_ALGORITHMS" default:"RS256,ES256,EdDSA" help:"Identity jwt: the algorithms that user tokens may be signed with, of RS256, ES256, EdDSA and HS256 (whose key is a secret that can make tokens, too)."`
	JWTIssuer      string `env:"LINEKEEPER_JWT_ISSUER" placeholder:"TEXT" help:"Identity jwt: what iss must be."`
	JWTAudience    string `env:"LINEKEEPER_JWT_AUDIENCE" placeholder:"TEXT" help:"Identity jwt: what aud must be, or have among others."`
	JWTMemberClaim string `env:"LINEKEEPER_JWT_MEMBER_CLAIM" default:"sub" help:"Identity jwt: the claim that is the member's id."`
	JWTLaneClaim   string `env:"LINEKEEPER_JWT_LANE_CLAIM" placeholder:"NAME" help:"Identity jwt: the claim that names the lane to enter by; who has none goes to the first lane."`
}

// OperatorTokens is who may be an operator by the word of an OpenID provider.
type OperatorTokens struct {
	OIDCIssuer    string    `env:"LINEKEEPER_OIDC_ISSUER" placeholder:"URL" help:"OpenID provider whose tokens operators may show; none: admin tokens alone."`
	OIDCAudience  string    `env:"LINEKEEPER_OIDC_AUDIENCE" placeholder:"TEXT" help:"What aud of an operator's token must be, or have among others."`
	OIDCRoles     RoleNames `env:"LINEKEEPER_OIDC_ROLES" placeholder:"VALUE:ROLE,..." help:"Which values of the role claim make somebody a viewer, operator or admin; of several the highest counts."`
	OIDCRoleClaim string    `env:"LINEKEEPER_OIDC_ROLE_CLAIM" default:"groups" help:"The claim, a text or a list, that has the roles of an operator."`
	OIDCNameClaim string    `env:"LINEKEEPER_OIDC_NAME_CLAIM" default:"sub" help:"The claim that is an operator's name in the audit list, where it stands behind oidc:."`
}

// checkIdentity: a header that anybody may send names nobody, and a token that
// may be of any issuer or for anybody else does not either.
func (p Process) checkIdentity(ps *problems) {
	if p.Identity == IdentityHeader && len(p.TrustedProxies) == 0 {
		ps.add("LINEKEEPER_IDENTITY", "is header, which needs LINEKEEPER_TRUSTED_PROXIES")
	}
	if p.Identity == IdentityJWT {
		for _, s := range []struct{ name, value string }{
			{"LINEKEEPER_JWT_KEYS", p.JWTKeys}, {"LINEKEEPER_JWT_ISSUER", p.JWTIssuer}, {"LINEKEEPER_JWT_AUDIENCE", p.JWTAudience},
		} {
			if s.value == "" {
				ps.add(s.name, "must be there where LINEKEEPER_IDENTITY is jwt")
			}
		}
	}
	if p.OIDCIssuer != "" {
		if p.OIDCAudience == "" {
			ps.add("LINEKEEPER_OIDC_AUDIENCE", "must be there where LINEKEEPER_OIDC_ISSUER is")
		}
		if len(p.OIDCRoles) == 0 {
			ps.add("LINEKEEPER_OIDC_ROLES", "must be there where LINEKEEPER_OIDC_ISSUER is")
		}
	}
}

// Names is a list of words.
type Names []string

// UnmarshalText reads comma-separated words.
func (n *Names) UnmarshalText(text []byte) error {
	*n = nil
	for _, name := range strings.Split(string(text), ",") {
		if name = strings.TrimSpace(name); name == "" {
			return fmt.Errorf("%q has an empty word", text)
		}
		*n = append(*n, name)
	}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (n Names) MarshalText() ([]byte, error) { return []byte(strings.Join(n, ",")), nil }

// RoleNames are the roles of operators, by what a provider calls them.
type RoleNames map[string]string

// UnmarshalText reads value:role,... A value may have colons itself.
func (r *RoleNames) UnmarshalText(text []byte) error {
	*r = nil
	if len(text) == 0 {
		return nil
	}
	names := RoleNames{}
	for _, item := range strings.Split(string(text), ",") {
		item = strings.TrimSpace(item)
		i := strings.LastIndexByte(item, ':')
		if i < 1 {
			return fmt.Errorf("%q is not value:role", item)
		}
		value, role := item[:i], item[i+1:]
		if !slices.Contains([]string{"viewer", "operator", "admin"}, role) {
			return fmt.Errorf("%q has a role other than viewer, operator and admin", item)
		}
		if _, twice := names[value]; twice {
			return fmt.Errorf("%q is there twice", value)
		}
		names[value] = role
	}
	*r = names
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (r RoleNames) MarshalText() ([]byte, error) {
	var items []string
	for value, role := range r {
		items = append(items, value+":"+role)
	}
	slices.Sort(items)
	return []byte(strings.Join(items, ",")), nil
}
