package telemetry

import (
	"io"
	"log/slog"
)

// Logger writes JSON lines of at least level to w. Configuration parses the
// level, which is a slog.Level there, too.
func Logger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}
