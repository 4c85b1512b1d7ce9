package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

const (
	maxKeys  = 100
	minRSA   = 2048 // bits
	minBytes = 32   // of a secret, as RFC 7518 section 3.2 has it
)

// keyName is what a key is found by: its id, and the one algorithm that it is
// used with. That is decided by what the key is, never by what a token says.
type keyName struct{ id, algorithm string }

// keySet is the keys of a source as it gave them at one time, and the tokens that
// they have verified: those go with the set.
type keySet struct {
	text     []byte
	byName   map[keyName]any
	alone    map[string]any // by algorithm, where the set has one key of it; for tokens without kid
	verified *verified
}

// parseKeys reads a JWKS. Keys that are of no use here, such as those to encrypt
// with, are passed over, as RFC 7517 section 5 wants it; a set without any other
// is an error.
func parseKeys(text []byte) (*keySet, error) {
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, errors.New("is not a JSON Web Key Set")
	}
	if len(doc.Keys) > maxKeys {
		return nil, fmt.Errorf("has %d keys, more than %d", len(doc.Keys), maxKeys)
	}
	s := &keySet{text: bytes.Clone(text), byName: map[keyName]any{}, alone: map[string]any{}, verified: newVerified()}
	count := map[string]int{}
	for _, raw := range doc.Keys {
		name, key, ok := parseKey(raw)
		if _, twice := s.byName[name]; !ok || twice {
			continue
		}
		s.byName[name], s.alone[name.algorithm] = key, key
		if count[name.algorithm]++; count[name.algorithm] > 1 {
			s.alone[name.algorithm] = nil
		}
	}
	if len(s.byName) == 0 {
		return nil, fmt.Errorf("has no key that could have signed with one of %v", Algorithms)
	}
	return s, nil
}

func parseKey(raw json.RawMessage) (keyName, any, bool) {
	var k jose.JSONWebKey
	if err := json.Unmarshal(raw, &k); err != nil || k.Use != "" && k.Use != "sig" {
		return keyName{}, nil, false
	}
	if _, secret := k.Key.([]byte); !secret {
		k = k.Public() // a set with private parts in it is somebody's mistake, and works
	}
	algorithm := algorithmOf(k.Key)
	// RFC 9864 has a name of its own for EdDSA with Ed25519.
	fits := k.Algorithm == "" || k.Algorithm == algorithm || k.Algorithm == "Ed25519" && algorithm == "EdDSA"
	return keyName{k.KeyID, algorithm}, k.Key, algorithm != "" && fits
}

// algorithmOf is the one algorithm that we use a key with; empty: none.
func algorithmOf(key any) string {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() >= minRSA {
			return "RS256"
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return "ES256"
		}
	case ed25519.PublicKey:
		return "EdDSA"
	case []byte:
		if len(k) >= minBytes {
			return "HS256"
		}
	}
	return ""
}

// find is the key for a token with that header; without a kid there must be no
// choice.
func (s *keySet) find(kid, algorithm string) (any, bool) {
	key := s.alone[algorithm]
	if kid != "" {
		key = s.byName[keyName{kid, algorithm}]
	}
	return key, key != nil
}
