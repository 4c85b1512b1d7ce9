package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
)

// keysRotate is one step of a change of keys. There are three, because a process
// can verify only what it has read: a key has to be everywhere before it signs,
// and has to stay as long as something that it signed is good.
type keysRotate struct {
	Kind
	Step string `arg:"" enum:"add,promote,retire" help:"add: a new key that verifies, at the end. promote: the last key signs from now on. retire: the last key goes."`
	File string `arg:"" help:"The file with the keys."`
}

// Help says when to take which step.
func (*keysRotate) Help() string {
	return `  linekeeper keys rotate add keys
  (all processes have read it: 5 s, or at once after SIGHUP)
  linekeeper keys rotate promote keys
  (24 h later, when the last queue ticket of the old key has ended)
  linekeeper keys rotate retire keys

Each step writes the whole file anew, in one move: a process reads the old one or
the new one. Where the file reaches the processes by a way of its own (a secret
of an orchestrator), wait until it has arrived.`
}

// Run does the step and says what comes next.
func (c *keysRotate) Run(std streams) error {
	text, err := config.ReadSecret(c.File)
	if err != nil {
		return err
	}
	if _, err := credential.ParseRing(text); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	keys := strings.Split(text, ",")
	last := len(keys) - 1
	next := ""
	switch c.Step {
	case "add":
		keys = append(keys, c.key())
		next = "when all processes have read it (5 s), promote it"
	case "promote":
		if last == 0 {
			return errors.New(c.File + " has one key: add another first")
		}
		keys = slices.Insert(keys[:last], 0, keys[last])
		next = "retire the last key in 24 h, when the last queue ticket that it signed has ended"
	case "retire":
		if last == 0 {
			return errors.New(c.File + " has one key, which signs")
		}
		keys = keys[:last]
		next = "done"
	}
	ring, err := credential.ParseRing(strings.Join(keys, ","))
	if err != nil {
		return err
	}
	if err := replaceFile(c.File, strings.Join(keys, ",")+"\n"); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%s: %s; the first signs. Next: %s\n", c.File, ring, next)
	return err
}

// replaceFile writes a file in one move, readable by whom it was.
func replaceFile(path, text string) (err error) {
	old, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".keys-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(old.Mode().Perm()), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
