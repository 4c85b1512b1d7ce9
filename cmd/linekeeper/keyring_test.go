package main

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestKeysAreRotatedInThreeSteps(t *testing.T) {
	t.Parallel()
	s, file := newShell(t), filepath.Join(t.TempDir(), "keys")
	first := credential.GenerateKey()
	require.NoError(t, os.WriteFile(file, []byte(first+"\n"), 0o640))
	keys := func() []string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return strings.Split(strings.TrimSuffix(string(text), "\n"), ",")
	}
	for _, step := range []string{"promote", "retire"} {
		got := s.run("keys", "rotate", step, file)
		require.Equal(t, 1, got.code)
		require.Contains(t, got.err, "has one key")
	}
	require.Equal(t, []string{first}, keys())

	got := s.run("keys", "rotate", "add", file, "--ed25519")
	require.Equal(t, 0, got.code, got.err)
	require.Contains(t, got.out, "promote it")
	both := keys()
	require.Len(t, both, 2)
	require.Equal(t, first, both[0], "the old one signs")
	require.Contains(t, both[1], ":ed25519:")

	require.Equal(t, 0, s.run("keys", "rotate", "promote", file).code)
	require.Equal(t, []string{both[1], first}, keys())
	require.Equal(t, 0, s.run("keys", "rotate", "retire", file).code)
	require.Equal(t, []string{both[1]}, keys())

	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing is left beside it")
	for _, out := range []string{got.out, got.err} {
		require.NotContains(t, out, strings.Split(both[1], ":")[2], "no key is shown")
	}
}

func TestAFileOfKeysThatIsNoneStaysAsItIs(t *testing.T) {
	t.Parallel()
	s, file := newShell(t), filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, []byte("not a key"), 0o600))
	got := s.run("keys", "rotate", "add", file)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, file+": key 1")
	require.NotContains(t, got.err, "not a key")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "not a key", string(text))
	require.Equal(t, 1, s.run("keys", "rotate", "add", file+"2").code)
}

// ringOfFile is a keyring on a file, with what it logs.
func ringOfFile(t *testing.T, text string) (*keyring, string, *bytes.Buffer) {
	t.Helper()
	file, log := filepath.Join(t.TempDir(), "keys"), &bytes.Buffer{}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	ring, err := credential.ParseRing(text)
	require.NoError(t, err)
	return &keyring{ring: ring, file: file, found: text, log: slog.New(slog.NewTextHandler(log, nil))}, file, log
}

func TestKeysAreReadAgainWhenTheirFileHasChanged(t *testing.T) {
	t.Parallel()
	first, second := credential.GenerateKey(), credential.GenerateKey()
	k, file, log := ringOfFile(t, first)
	id := func(key string) string { return strings.Split(key, ":")[0] }
	k.reread()
	require.Empty(t, log.String(), "nothing has changed")

	for text, says := range map[string]string{"": "is empty", "x": "key 1", first + "," + first: "key 2"} {
		log.Reset()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		k.reread()
		k.reread()
		require.Equal(t, 1, strings.Count(log.String(), "not replaced"), "said once: %s", log)
		require.Contains(t, log.String(), says)
		require.Equal(t, id(first), k.ring.SigningKeyID(), "those in force stay")
	}
	for range 2 { // after a file that could not be used, and after another
		log.Reset()
		require.NoError(t, os.Remove(file))
		k.reread()
		k.reread()
		require.Equal(t, 1, strings.Count(log.String(), "not replaced"), "another fault is said too: %s", log)
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		k.reread()
	}

	require.NoError(t, os.WriteFile(file, []byte(second+","+first+"\n"), 0o600))
	k.reread()
	require.Equal(t, id(second), k.ring.SigningKeyID())
	require.True(t, k.ring.Has(id(first)))
	require.NotContains(t, log.String(), strings.Split(second, ":")[1])
}

func TestKeysAreReadAgainOnSIGHUP(t *testing.T) {
	first, second := credential.GenerateKey(), credential.GenerateKey()
	k, file, _ := ringOfFile(t, first)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- k.run(ctx) }()
	require.NoError(t, os.WriteFile(file, []byte(second), 0o600))
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // the last one may come when nobody listens
	harness.Eventually(t, keysEvery/2, "the new key signs before the file is looked at by itself", func() bool {
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		return k.ring.SigningKeyID() == strings.Split(second, ":")[0]
	})
	stop()
	require.NoError(t, <-ended)
}
