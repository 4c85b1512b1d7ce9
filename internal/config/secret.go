package config

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "REDACTED"

// Secret is a setting that never shows: however it is printed, marshalled or
// logged, it reads REDACTED, or nothing when it is empty.
type Secret string

// Reveal gives the secret itself, to the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format hides the secret from every verb: without it %d, or %x, or any wrong
// verb would print the text.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText hides the secret from JSON, YAML and map keys alike.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// UnmarshalText takes the secret as it is.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}
