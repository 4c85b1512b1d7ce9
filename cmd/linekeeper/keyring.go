package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
)

// keysEvery is how often the file of the signing keys is looked at. It is read
// whole: what replaces it may have the same time and size.
const keysEvery = 2 * time.Second

// keyring keeps the keys of a process as its file has them.
type keyring struct {
	ring  *credential.Ring
	file  string // empty: the keys are in the environment, and stay
	found string // when it was last looked at: the text, good or bad, or why there is none
	log   *slog.Logger
}

func newKeyring(ring *credential.Ring, conf config.Process, log *slog.Logger) *keyring {
	return &keyring{ring: ring, file: os.Getenv("LINEKEEPER_KEYS_FILE"), found: conf.Keys.Reveal(), log: log}
}

// run reads the file again when it has changed, and on SIGHUP, until ctx ends.
func (k *keyring) run(ctx context.Context) error {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGHUP)
	defer signal.Stop(asked)
	tick := time.NewTicker(keysEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-asked:
			if k.file == "" {
				k.log.Warn("SIGHUP: the signing keys are in the environment; LINEKEEPER_KEYS_FILE can be read again")
			}
		case <-tick.C:
		}
		k.reread()
	}
}

// reread replaces the keys, if there are others that can be read. Else those in
// force stay, and it is said once.
func (k *keyring) reread() {
	if k.file == "" {
		return
	}
	text, err := config.ReadSecret(k.file)
	found := text
	if err != nil {
		found = err.Error()
	}
	if found == k.found {
		return
	}
	k.found = found
	if err == nil {
		err = k.ring.Replace(text)
	}
	if err != nil {
		k.log.Error("signing keys not replaced, those in force stay", "keys", k.ring, "error", err)
		return
	}
	k.log.Info("signing keys replaced", "keys", k.ring)
}
