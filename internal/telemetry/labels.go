package telemetry

import (
	"net/http"
	"strconv"
	"sync"
	"unicode/utf8"
)

// other is the label of whatever has no label of its own.
const other = "other"

const (
	maxRooms  = 200
	maxRoutes = 100
	maxWords  = 50 // lanes, results, reasons, script names, ...: constants, or an operator's
)

// limit lets the first max values through and calls the rest other. Values are
// never let go again: their series stay as long as the process.
type limit struct {
	max  int
	mu   sync.RWMutex
	seen map[string]bool
}

func newLimit(max int) *limit { return &limit{max: max, seen: map[string]bool{}} }

// label is value, or other.
func (l *limit) label(value string) string {
	l.mu.RLock()
	known := l.seen[value]
	l.mu.RUnlock()
	if known || l.admit(value) {
		return value
	}
	return other
}

// admit refuses what is not UTF-8 as well, because Prometheus panics at it.
func (l *limit) admit(value string) bool {
	if !utf8.ValidString(value) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[value] && len(l.seen) >= l.max {
		return false
	}
	l.seen[value] = true
	return true
}

// method lets the methods of HTTP that are in use through; a client may send
// any word.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
		http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return other
}

// code names the codes that HTTP has; a handler could write any number.
func code(status int) string {
	if status < 100 || status > 599 {
		return other
	}
	return strconv.Itoa(status)
}
