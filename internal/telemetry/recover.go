package telemetry

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// Recover logs a panic of a handler once, with its stack, and lets onPanic
// answer. Where the handler has begun its answer, the connection is broken
// instead: a client must not take half an answer for a whole one.
func Recover(log *slog.Logger, onPanic http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			defer func() {
				if v := recover(); v != nil {
					recovered(log, v, r)
					if ww.Status() != 0 { // a status has been sent
						panic(http.ErrAbortHandler)
					}
					onPanic(w, r)
				}
			}()
			next.ServeHTTP(ww, r)
		})
	}
}

// recovered logs v, unless it is how net/http asks to break a connection. The
// route is logged, not the path, which is the client's to choose.
func recovered(log *slog.Logger, v any, r *http.Request) {
	if v == http.ErrAbortHandler {
		panic(v)
	}
	log.LogAttrs(r.Context(), slog.LevelError, "request handler panicked",
		slog.String("panic", fmt.Sprint(v)),
		slog.String("method", r.Method),
		slog.String("route", chi.RouteContext(r.Context()).RoutePattern()),
		slog.String("stack", string(debug.Stack())))
}
