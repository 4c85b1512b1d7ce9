package credential

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
)

// bindingSize of what says in which network a credential was given, in bytes.
const bindingSize = 8

// Bind returns what a credential of member says of the network that it is given
// in: text that tells nothing of the network to whoever lacks the key kid, and
// that differs from member to member. It is empty for no network, and for a key
// that the ring does not have.
func (r *Ring) Bind(kid, member string, network netip.Prefix) string {
	k, ok := r.now().byID[kid]
	if !ok || !network.IsValid() {
		return ""
	}
	return k.bind(member, network)
}

// BoundTo tells whether a key of the ring has bound a credential of member to
// network. What is bound to none is good in all.
func (r *Ring) BoundTo(binding, member string, network netip.Prefix) bool {
	if binding == "" {
		return true
	}
	if !network.IsValid() {
		return false
	}
	for _, k := range r.now().keys {
		if hmac.Equal([]byte(k.bind(member, network)), []byte(binding)) {
			return true
		}
	}
	return false
}

// binder makes Bind of a secret. What is hashed begins with a word that no JWT
// begins with, so that no signature passes for it.
func binder(secret []byte) func(member string, network netip.Prefix) string {
	return func(member string, network netip.Prefix) string {
		mac := hmac.New(sha256.New, secret)
		where, _ := network.MarshalBinary() // of a fixed length for its kind of address, and it never fails
		mac.Write([]byte("linekeeper-network:"))
		mac.Write([]byte{byte(len(where))})
		mac.Write(where)
		mac.Write([]byte(member))
		return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:bindingSize])
	}
}

// validBinding takes the one spelling that Bind has, or none at all.
func validBinding(s string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return s == "" || err == nil && len(b) == bindingSize && len(s) == base64.RawURLEncoding.EncodedLen(bindingSize)
}
