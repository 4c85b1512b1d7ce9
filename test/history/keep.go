package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// kept is a History in files: events as JSON lines, so that they can be read
// and cut by hand, and the rest each in one file.
func (h *History) files() []struct {
	name string
	v    any
} {
	return []struct {
		name string
		v    any
	}{{"room.json", &h.Room}, {"journal.json", &h.Journal}, {"final.json", &h.Final}, {"facts.json", &h.Facts}}
}

const eventsFile = "events.jsonl"

// Write keeps a history in a directory, which it makes.
func (h History) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep a history: %w", err)
	}
	f, err := os.Create(filepath.Join(dir, eventsFile))
	if err != nil {
		return fmt.Errorf("keep a history: %w", err)
	}
	_, err = WriteEvents(f, h.Events)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep the events of a history: %w", err)
	}
	for _, file := range h.files() {
		b, err := json.MarshalIndent(file.v, "", " ")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file.name), b, 0o644)
		}
		if err != nil {
			return fmt.Errorf("keep %s of a history: %w", file.name, err)
		}
	}
	return nil
}

// Read reads what Write has kept.
func Read(dir string) (History, error) {
	var h History
	f, err := os.Open(filepath.Join(dir, eventsFile))
	if err != nil {
		return h, fmt.Errorf("read a history: %w", err)
	}
	defer func() { _ = f.Close() }()
	if h.Events, err = ReadEvents(f); err != nil {
		return h, err
	}
	for _, file := range h.files() {
		b, err := os.ReadFile(filepath.Join(dir, file.name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // cut out by hand
		}
		if err == nil {
			err = json.Unmarshal(b, file.v)
		}
		if err != nil {
			return h, fmt.Errorf("read %s of a history: %w", file.name, err)
		}
	}
	return h, nil
}

// UnmarshalJSON reads a Step that was kept. Numbers of the reply stay whole.
func (s *Step) UnmarshalJSON(b []byte) error {
	type plain Step
	kept := struct {
		*plain
		Reply json.RawMessage
	}{plain: (*plain)(s)}
	if err := json.Unmarshal(b, &kept); err != nil {
		return err
	}
	p := &parser{}
	s.Reply = p.reply(kept.Reply)
	return p.err
}
