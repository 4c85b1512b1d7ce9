package credential

import "log/slog"

// redacted stands in for a secret wherever it would be printed.
const redacted = "[redacted]"

// Token is a signed credential on its way to its member. Printing, logging or
// marshalling one shows "[redacted]": who has it can order, so it must not end
// up in a log by accident. The zero Token is empty.
type Token struct {
	// A closure, because fmt and the like walk into structs that hold a Token in
	// an unexported field, where they don't call its methods.
	reveal func() string
}

func newToken(s string) Token { return Token{reveal: func() string { return s }} }

// Reveal returns the text that the member is to get.
func (t Token) Reveal() string {
	if t.reveal == nil {
		return ""
	}
	return t.reveal()
}

// String hides the token.
func (Token) String() string { return redacted }

// GoString hides the token from %#v.
func (Token) GoString() string { return redacted }

// LogValue hides the token from slog.
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the token from JSON and other encodings.
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }
