package cli

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/linekeeper/linekeeper/draw"
)

// Kinds of token, by their audience.
var kinds = map[string]string{"linekeeper-ticket": "queue ticket", "linekeeper-token": "entry token"}

// Token is what a queue ticket or an entry token says of itself.
type Token struct {
	Kind      string          `json:"kind"`
	Verified  bool            `json:"verified"` // false: anybody may have written it
	Algorithm string          `json:"algorithm"`
	KeyID     string          `json:"keyId"`
	Claims    json.RawMessage `json:"claims"` // as they stand in the token
}

// maxToken is above any token of ours.
const maxToken = 4096

// ReadToken reads one token and decodes it without any key. Its errors repeat
// nothing of the text, which may be another secret.
func ReadToken(r io.Reader) (text string, t Token, err error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxToken+1))
	if err != nil {
		return "", t, err
	}
	text = strings.TrimSpace(string(raw))
	parts := strings.Split(text, ".")
	if len(raw) > maxToken || len(parts) != 3 {
		return "", t, errors.New("is no queue ticket or entry token: those are three parts with dots between")
	}
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	var claims struct {
		Audience string `json:"aud"`
	}
	if decodePart(parts[0], &header) != nil || decodePart(parts[1], &claims) != nil || decodePart(parts[1], &t.Claims) != nil {
		return "", t, errors.New("is no queue ticket or entry token: its parts are not base64url of JSON")
	}
	if t.Kind = kinds[claims.Audience]; t.Kind == "" {
		return "", t, errors.New("is a token of something else than Linekeeper")
	}
	t.Algorithm, t.KeyID = header.Algorithm, header.KeyID
	return text, t, nil
}

func decodePart(part string, into any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// tokenClaims are the claims of both kinds.
type tokenClaims struct {
	Grant      string `json:"jti"`
	Room       string `json:"room"`
	Sale       int64  `json:"sale"`
	Generation int64  `json:"gen"`
	Member     string `json:"sub"`
	Lane       int    `json:"lane"`
	Score      int64  `json:"score"`
	IssuedAt   int64  `json:"iat"`
	Expiry     int64  `json:"exp"`
}

// View shows the token. now is this machine's clock, which only says about when
// the token ends: what counts is the clock of Redis.
func (t Token) View(now time.Time) (View, error) {
	var c tokenClaims
	if err := json.Unmarshal(t.Claims, &c); err != nil {
		return View{}, errors.New("the claims of the token are of other types than ours")
	}
	trust := "NOT VERIFIED: decoded without a key, so anybody may have written it"
	if t.Verified {
		trust = "verified: signed by key " + t.KeyID
	}
	return NewView(t, func(w io.Writer) {
		line(w, "kind", t.Kind)
		line(w, "signature", trust)
		line(w, "key", t.KeyID, t.Algorithm)
		line(w, "room", c.Room, fmt.Sprintf("sale %d, generation %d", c.Sale, c.Generation))
		line(w, "member", c.Member)
		if c.Grant != "" {
			line(w, "grant", c.Grant)
		}
		if c.Score > 0 {
			made := "entered " + time.UnixMicro(c.Score).UTC().Format(time.RFC3339)
			if draw.Drawn(c.Score) {
				made = "drawn"
			}
			line(w, "place", c.Score, fmt.Sprintf("lane %d, %s", c.Lane, made))
		}
		line(w, "issued", time.Unix(c.IssuedAt, 0).UTC().Format(time.RFC3339))
		line(w, "ends", time.Unix(c.Expiry, 0).UTC().Format(time.RFC3339), ending(time.Unix(c.Expiry, 0).Sub(now)))
	})
}

func ending(left time.Duration) string {
	if left <= 0 {
		return "it has ended, by this machine's clock"
	}
	return "in " + left.Round(time.Second).String() + ", by this machine's clock"
}
