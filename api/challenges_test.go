package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/siteverify"
)

func verifying(t *testing.T) (*siteverify.Service, func(*api.Options)) {
	t.Helper()
	s := siteverify.Start(t)
	return s, func(o *api.Options) { o.Challenges = s.Client }
}

func challenging(s *room.Settings) { s.OutsideChallenge = true }

func response(text string) with { return header("X-Challenge-Response", text) }

// challenged is the ticket of a newcomer who is to pass a challenge and nothing else.
func (a answer) challenged() string {
	a.t.Helper()
	p := a.is(http.StatusOK).position()
	require.Equal(a.t, queue.NotEntered, p.Status)
	require.NotNil(a.t, p.MustShow)
	require.Nil(a.t, p.MustShow.ProofOfWork)
	require.True(a.t, p.MustShow.ChallengeResponse)
	return *p.QueueTicket
}

func TestWhoPassesTheOutsideChallengeEnters(t *testing.T) {
	t.Parallel()
	service, on := verifying(t)
	f := setUp(t, settings(challenging), options(on))
	before := f.dump()
	ann, bob := f.post().challenged(), f.post().challenged()
	f.post(response("human-1")).is(http.StatusOK).challenged() // of nobody yet, so it can't be used up
	require.Zero(t, service.Calls())
	for what, shown := range map[string][]with{
		"not passed": {response("robot")}, "empty": {response("")}, "long": {response("human" + strings.Repeat("x", 2048))},
		"two": {response("human-1"), response("human-2")}, "with a space": {response("human 1")},
	} {
		f.post(append(shown, ticket(ann))...).refused(http.StatusForbidden, "challenge-failed")
		require.Equal(t, before, f.dump(), what)
	}
	require.Equal(t, 1, service.Calls(), "what is malformed goes no further")

	entered := f.post(ticket(ann), response("human-1")).is(http.StatusCreated).position()
	f.post(ticket(bob), response("human-1")).refused(http.StatusForbidden, "challenge-failed")
	calls := service.Calls()
	again := f.post(ticket(ann), response("human-1")).is(http.StatusOK).position()
	require.Equal(t, entered.Score, again.Score, "one response is one place")
	require.Equal(t, entered.Score, f.post(ticket(*entered.QueueTicket)).is(http.StatusOK).position().Score)
	require.Equal(t, calls, service.Calls(), "nobody asks about who has a place")
	require.EqualValues(t, 1, f.rdb.ZCard(t.Context(), f.key("lane0")).Val())
}

func TestAResponseThatMadeNoPlaceIsGoodOnceMoreWithItsTicket(t *testing.T) {
	t.Parallel()
	_, on := verifying(t)
	f := setUp(t, settings(challenging), options(on))
	ann := f.post().challenged()
	f.deaf(on).post(ticket(ann), response("human-1")).refused(http.StatusServiceUnavailable, "unavailable")
	slow := f.serve(on, func(o *api.Options) { o.Line = failsToEnter{o.Line} })
	slow.post(ticket(ann), response("human-1")).refused(http.StatusServiceUnavailable, "unavailable")
	f.post(ticket(ann), response("human-1")).is(http.StatusCreated)
}

// failsToEnter is a line that can be read and makes no place.
type failsToEnter struct{ api.Line }

func (failsToEnter) EnterWith(context.Context, string, string, queue.Entry) (queue.Standing, error) {
	return queue.Standing{}, queue.ErrUnavailable
}

func TestWithoutTheWordOfTheServiceNobodyNewEnters(t *testing.T) {
	t.Parallel()
	service, on := verifying(t)
	var log bytes.Buffer
	logged := func(o *api.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) }
	f := setUp(t, settings(challenging), options(on), options(logged))
	ann, bob := f.post().challenged(), f.post().challenged()
	entered := *f.post(ticket(ann), response("human-1")).is(http.StatusCreated).position().QueueTicket
	service.Fail(true)
	before := f.dump()
	for range 3 {
		f.post(ticket(bob), response("human-2")).refused(http.StatusServiceUnavailable, "unavailable").after("5")
	}
	require.Equal(t, before, f.dump(), "it fails closed")
	f.post(ticket(entered)).is(http.StatusOK)
	f.get(ticket(entered)).is(http.StatusOK)
	service.Fail(false)
	f.post(ticket(bob), response("human-2")).is(http.StatusCreated)
	require.Equal(t, 1, strings.Count(log.String(), "challenges can not be judged"), "said once: %s", log.String())
	require.NotContains(t, log.String(), "human-")
	require.NotContains(t, log.String(), "s3cret")

	none := f.serve() // a process that has not been told of any service
	none.post(ticket(none.post().challenged()), response("human-3")).refused(http.StatusServiceUnavailable, "unavailable")
}

func TestProofAndChallengeAreShownTogetherAndTheCheapOneIsJudgedFirst(t *testing.T) {
	t.Parallel()
	service, on := verifying(t)
	f := setUp(t, settings(challenging), working(easy), options(on))
	text, puzzle := f.post().asked()
	again := f.post(ticket(text)).position()
	require.True(t, again.MustShow.ChallengeResponse)
	right := solved(t, puzzle)
	for _, shown := range [][]with{{right}, {response("human-1")}} {
		require.NotNil(t, f.post(append(shown, ticket(text))...).is(http.StatusOK).position().MustShow, "half is not enough")
	}
	f.post(ticket(text), unsolved(puzzle), response("human-1")).refused(http.StatusForbidden, "proof-of-work-invalid")
	require.Zero(t, service.Calls(), "who has not worked makes nobody ask")
	f.post(ticket(text), right, response("human-1")).is(http.StatusCreated)
	require.Equal(t, 1, service.Calls())
}

// hanging is a service that never answers, and counts how many ask at once.
type hanging struct {
	mu        sync.Mutex
	now, most int
}

func (h *hanging) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += n
	h.most = max(h.most, h.now)
}

func (h *hanging) Passed(ctx context.Context, _, _ string, _ netip.Addr) (bool, error) {
	h.count(1)
	defer h.count(-1)
	<-ctx.Done()
	return false, errors.New("no answer")
}

func TestAFloodOfResponsesAsksTheServiceSixtyFourTimesAtOnceAndNoMore(t *testing.T) {
	t.Parallel()
	service := &hanging{}
	f := setUp(t, settings(challenging), options(func(o *api.Options) { o.Challenges = service }))
	ann := f.post().challenged()
	var crowd errgroup.Group
	for range 100 {
		crowd.Go(func() error {
			a, err := f.try(t.Context(), "POST", f.entries, ticket(ann), response("rubbish"))
			if err == nil && a.status != http.StatusServiceUnavailable {
				err = fmt.Errorf("answered %d", a.status)
			}
			return err
		})
	}
	require.NoError(t, crowd.Wait(), "it takes four seconds at most")
	require.Equal(t, 64, service.most)
}
