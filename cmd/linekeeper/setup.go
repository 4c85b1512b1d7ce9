package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
)

// secrets are what a process needs besides its servers, kept in a directory.
type secrets struct {
	keys       string // for LINEKEEPER_KEYS
	adminToken string // for the operator
	adminEntry string // for LINEKEEPER_ADMIN_TOKENS
}

// Files of a secrets directory.
const (
	keysFile       = "keys"
	adminTokenFile = "admin-token"
	adminEntryFile = "admin-tokens"
)

// openSecrets reads the secrets in dir, and makes those that are not there: a
// signing key, and an admin token whose owner is called name.
func openSecrets(dir, name string) (secrets, error) {
	var s secrets
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s, fmt.Errorf("secrets: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, adminEntryFile)); errors.Is(err, os.ErrNotExist) {
		token, entry, err := admin.NewToken(name, admin.Admin)
		if err != nil {
			return s, err
		}
		// The entry last: it is what says that both are there.
		for _, f := range []struct{ name, content string }{{adminTokenFile, token}, {adminEntryFile, entry}} {
			if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.content+"\n"), 0o600); err != nil {
				return s, fmt.Errorf("secrets: %w", err)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, keysFile)); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(filepath.Join(dir, keysFile), []byte(credential.GenerateKey()+"\n"), 0o600); err != nil {
			return s, fmt.Errorf("secrets: %w", err)
		}
	}
	for file, to := range map[string]*string{keysFile: &s.keys, adminTokenFile: &s.adminToken, adminEntryFile: &s.adminEntry} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return s, fmt.Errorf("secrets: %w", err)
		}
		*to = strings.TrimSpace(string(b))
	}
	return s, nil
}

// makeGoods makes a room `default` and a product `demo` to try things with,
// where there are none.
func makeGoods(ctx context.Context, store *roomstore.Store, by string) error {
	actor := room.Actor{Name: by, Role: admin.Admin.String(), Remote: "local"}
	if _, err := store.Create(ctx, "default", room.Defaults(), actor); err != nil && !errors.Is(err, room.ErrExists) {
		return err
	}
	if _, err := store.Product(ctx, "demo"); !errors.Is(err, room.ErrNotFound) {
		return err
	}
	_, _, err := store.PutProduct(ctx, room.Product{SKU: "demo", Stock: 100_000, PriceCents: 1990, Currency: "EUR"}, 0, actor)
	return err
}
