package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/linekeeper/linekeeper/credential"
	operators "github.com/linekeeper/linekeeper/internal/cli"
	"github.com/linekeeper/linekeeper/internal/config"
)

type keysCmd struct {
	New    keysNew    `cmd:"" help:"Make a signing key, as LINEKEEPER_KEYS wants it."`
	List   keysList   `cmd:"" help:"List the ids of the keys in LINEKEEPER_KEYS, never the keys."`
	Rotate keysRotate `cmd:"" help:"Do one step of a change of keys in a file that LINEKEEPER_KEYS_FILE names."`
}

// Kind is which sort of key is made.
type Kind struct {
	Ed25519 bool `name:"ed25519" help:"A key whose tokens others can verify, by /.well-known/jwks.json, and can't make."`
}

func (k Kind) key() string {
	if k.Ed25519 {
		return credential.GenerateEd25519Key()
	}
	return credential.GenerateKey()
}

type keysNew struct{ Kind }

// Run prints what it makes, once.
func (c *keysNew) Run(std streams) error {
	_, err := fmt.Fprintln(std.out, c.key())
	return err
}

// Keyring is the setting that signs and verifies. It is exported because
// package config passes over embedded structs that are not.
type Keyring struct {
	Keys config.Secret `env:"LINEKEEPER_KEYS" placeholder:"SECRET" help:"Signing keys, kid:base64[,kid:base64]. Not taken from the command line."`
}

// Check reports missing and malformed keys.
func (k Keyring) Check() error {
	if k.Keys == "" {
		return errors.New("LINEKEEPER_KEYS: is required")
	}
	_, err := credential.ParseRing(k.Keys.Reveal())
	return named("LINEKEEPER_KEYS", err)
}

type keysList struct {
	Keyring
	output
}

// Run shows ids alone.
func (c *keysList) Run(std streams) error {
	ring, err := credential.ParseRing(c.Keys.Reveal())
	if err != nil {
		return err
	}
	text, err := ring.MarshalJSON()
	if err != nil {
		return err
	}
	var ids []string
	if err := json.Unmarshal(text, &ids); err != nil {
		return err
	}
	v, err := operators.NewView(map[string]any{"keys": ids}, func(w io.Writer) {
		fmt.Fprintln(w, "KEY\tUSE")
		for i, id := range ids {
			use := "verifies"
			if i == 0 {
				use = "signs and verifies"
			}
			fmt.Fprintf(w, "%s\t%s\n", id, use)
		}
	})
	return c.shown(std, v, err)
}

type tokenCmd struct {
	Inspect tokenInspect `cmd:"" help:"Show what a queue ticket or entry token says, without judging who wrote it."`
	Verify  tokenVerify  `cmd:"" help:"Tell whether a key of LINEKEEPER_KEYS has signed a queue ticket or entry token."`
}

// FromInput is a token on standard input. A token is worth a place or an order,
// and everybody on the machine can read command lines.
type FromInput struct {
	Token string `arg:"" optional:"" default:"-" help:"- (standard input): a token is never taken from the command line."`
}

// Check refuses a token on the command line, without repeating it.
func (f FromInput) Check() error {
	if f.Token != "-" {
		return errors.New("a token is a secret, and everybody on the machine can read command lines: give it on standard input")
	}
	return nil
}

type tokenInspect struct {
	FromInput
	output
}

// Run shows the token, never its text.
func (c *tokenInspect) Run(std streams) error {
	_, t, err := operators.ReadToken(std.in)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	v, err := t.View(time.Now())
	return c.shown(std, v, err)
}

type tokenVerify struct {
	FromInput
	Keyring
	output
}

// Run decodes first: what is no token needs no key to be told so.
func (c *tokenVerify) Run(std streams) error {
	text, t, err := operators.ReadToken(std.in)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	ring, err := credential.ParseRing(c.Keys.Reveal())
	if err != nil {
		return err
	}
	_, ticket := ring.Ticket(text)
	_, grant := ring.Grant(text)
	if ticket != nil && grant != nil {
		return errors.New("not valid: no key of LINEKEEPER_KEYS has signed exactly this")
	}
	t.Verified = true
	v, err := t.View(time.Now())
	return c.shown(std, v, err)
}
