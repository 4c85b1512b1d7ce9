package admin

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/ratelimit"
)

// failuresLimit is how many failed authentications one address may have: ten at
// once, and one each six seconds.
var failuresLimit = ratelimit.Limit{Algorithm: ratelimit.Token, N: 10, Per: time.Minute}

// failingAddresses bounds what is remembered of a flood from many addresses.
const failingAddresses = 8192

// What becomes of a request without a credential that is known, for Options.Failed.
const (
	failedUnknown = "unknown" // 401
	failedLimited = "limited" // 429: one of too many of its address
)

func newFailures() *ratelimit.Local[string] {
	return ratelimit.NewLocal[string](failuresLimit, failingAddresses, time.Now)
}

// unknown answers who could not be told. Too many of them from one address are
// put off, and leave no more lines in the log.
//
// A credential that is known passes all the same. With 256 random bits it is not
// guessed at any rate; but one script with an old token must not keep everybody
// else at its address from pausing a sale.
func (s *server) unknown(w http.ResponseWriter, r *http.Request, from netip.Addr) {
	// A network of IPv6 is one customer's, and has more addresses than can be counted.
	reply := s.failures.Allow(clientip.Network(from, 32, 64).String())
	if !reply.Allowed {
		s.failed(failedLimited)
		problem.Write(w, r, problem.New("rate-limited").WithRetryAfter(reply.RetryAfter).WithDetail(
			"Too many requests of your address had no valid credential. One that is valid is served as before."))
		return
	}
	s.failed(failedUnknown)
	s.Log.WarnContext(r.Context(), "operator not known", "from", from.String(), "method", r.Method, "requestId", problem.RequestID(r))
	problem.Write(w, r, problem.New("unauthorized"))
}

func (s *server) failed(result string) {
	if s.Failed != nil {
		s.Failed(result)
	}
}
