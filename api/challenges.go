package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/work"
)

// Challenges is an outside service that tells people from programs.
type Challenges interface {
	// Passed tells whether the service vouches for a response. ticket names the one
	// use that may be made of it: a repeat with the same one is answered alike. An
	// error means that it is not known.
	Passed(ctx context.Context, response, ticket string, from netip.Addr) (bool, error)
}

const (
	challengeHeader = "X-Challenge-Response"
	maxResponse     = 2048
	// challengeCalls is how many responses a process asks about at once, and
	// challengeTimeout how long one may take: a flood of rubbish waits for itself.
	challengeCalls   = 64
	challengeTimeout = 4 * time.Second
	// quiet is how long the service must not have failed before a failure is news.
	quiet = 10 * time.Second
)

var (
	errChallenge      = errors.New("api: challenge not passed")
	errChallengesAway = errors.New("api: nobody to say whether a challenge was passed")
)

// outside asks newcomers to have passed a challenge of a service that is none of
// ours. Without its word nobody enters.
type outside struct {
	service Challenges
	trusted clientip.Trusted
	calls   *semaphore.Weighted
	failed  atomic.Int64 // when it last did, in nanoseconds
	log     *slog.Logger
}

func newOutside(o Options) *outside {
	return &outside{service: o.Challenges, trusted: o.Trusted, log: o.Log, calls: semaphore.NewWeighted(challengeCalls)}
}

func (*outside) wanted(v *view) bool { return v.settings.OutsideChallenge }

// shown wants a ticket beside the response, which is used up with it.
func (*outside) shown(n newcomer) error {
	responses := n.request.Header.Values(challengeHeader)
	switch {
	case len(responses) == 0 || !n.asked():
		return errMustShow
	case len(responses) > 1 || !validResponse(responses[0]):
		return errChallenge
	}
	return nil
}

func validResponse(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= maxResponse
}

func (o *outside) confirmed(n newcomer) error {
	ok, err := o.passed(n)
	if errors.Is(n.request.Context().Err(), context.Canceled) {
		return context.Canceled // the newcomer has gone: it says nothing of the service
	}
	switch {
	case err != nil:
		o.tell(n.request.Context(), err)
		return fmt.Errorf("%w: %w", errChallengesAway, err)
	case !ok:
		return errChallenge
	}
	return nil
}

func (o *outside) passed(n newcomer) (bool, error) {
	if o.service == nil {
		return false, errors.New("this process has no service for challenges")
	}
	ctx, cancel := context.WithTimeout(n.request.Context(), challengeTimeout)
	defer cancel()
	if err := o.calls.Acquire(ctx, 1); err != nil {
		return false, fmt.Errorf("wait to ask about a challenge: %w", err)
	}
	defer o.calls.Release(1)
	return o.service.Passed(ctx, n.request.Header.Get(challengeHeader), work.Of(n.text), o.trusted.Of(n.request))
}

// tell says that the service does not answer, unless it has not answered for a
// while: a crowd would say it a thousand times a second.
func (o *outside) tell(ctx context.Context, err error) {
	now := time.Now().UnixNano()
	if last := o.failed.Swap(now); now-last > quiet.Nanoseconds() {
		o.log.WarnContext(ctx, "challenges can not be judged, nobody new enters rooms that want one", "err", err)
	}
}

func (*outside) ask(_ newcomer, m *spec.MustShow) { m.ChallengeResponse = true }
