package credential

import (
	"encoding/base64"
	"encoding/json"
)

// webKey is a public key as RFC 8037 section 2 writes it.
type webKey struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	Use   string `json:"use"`
	Alg   string `json:"alg"`
	ID    string `json:"kid"`
	X     string `json:"x"`
}

// JWKS is the JSON Web Key Set (RFC 7517) of the ring's Ed25519 keys, in their
// order: with it others verify entry tokens and can't make any. HS256 keys are
// secrets and not in it.
func (r *Ring) JWKS() []byte {
	set := struct {
		Keys []webKey `json:"keys"`
	}{[]webKey{}}
	for _, k := range r.now().keys {
		if k.public != nil {
			set.Keys = append(set.Keys, webKey{"OKP", "Ed25519", "sig", k.method.Alg(), k.id, base64.RawURLEncoding.EncodeToString(k.public)})
		}
	}
	b, _ := json.Marshal(set) // strings alone
	return b
}
