package api

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/work"
)

const workHeader = "X-Proof-Of-Work"

var errProofOfWork = errors.New("api: proof of work not good")

// proofOfWork asks newcomers to have spent computing time. The puzzle is the hash
// of the ticket, which says itself how many bits were asked for: so a solution is
// good for one member of one room in one sale, and its price is not the client's
// to choose.
type proofOfWork struct{}

func (proofOfWork) wanted(v *view) bool { return v.settings.ProofOfWorkBits > 0 }

// shown refuses at once what can't have been good with the ticket beside it.
func (proofOfWork) shown(n newcomer) error {
	nonces := n.request.Header.Values(workHeader)
	switch {
	case len(nonces) == 0:
		return errMustShow
	case len(nonces) > 1 || !work.ValidNonce(nonces[0]):
		return errProofOfWork
	case !n.hasTicket || n.ticket.Work == 0:
		return fmt.Errorf("%w: %w", errProofOfWork, errShownLate) // the ticket may be that of the place by now
	case !work.Done(work.Of(n.text), nonces[0], n.ticket.Work):
		return errProofOfWork
	case !n.asked():
		return fmt.Errorf("%w: %w", errProofOfWork, errShownLate)
	}
	return nil
}

func (proofOfWork) confirmed(newcomer) error { return nil }

func (proofOfWork) ask(n newcomer, m *spec.MustShow) {
	t := n.ticket
	m.ProofOfWork = &spec.ProofOfWork{Algorithm: spec.Sha256, Bits: t.Work, Challenge: work.Of(n.text), ExpiresAt: n.until().UTC()}
}

// workBits is how many bits a newcomer is asked for now: one more than the least
// where more come than are usual, and one more each time that has doubled.
func (v *view) workBits() int {
	least, most := v.settings.ProofOfWorkBits, v.settings.ProofOfWorkMaxBits
	usual := float64(v.settings.ProofOfWorkRate)
	if least == 0 || most <= least || v.newcomers <= usual {
		return least
	}
	return min(most, least+1+int(math.Log2(v.newcomers/usual)))
}

// newcomersOver is the time over which newcomers are counted, by weights that fall
// off: a burst shows within a second, and is forgotten within ten.
const newcomersOver = 3 * time.Second

// countNewcomers measures how many places a second are made, by all processes
// together. What counts is places and not requests: those are free, and would let
// anybody make it dear for everybody.
func (v *view) countNewcomers(last *view) {
	if v.settings.ProofOfWorkMaxBits == 0 || last == nil || last.Generation != v.Generation {
		return
	}
	v.newcomers = last.newcomers
	if since := v.Snapshot.Now.Sub(last.Snapshot.Now).Seconds(); since > 0 {
		rate := float64(v.made()-last.made()) / since
		v.newcomers += (rate - v.newcomers) * -math.Expm1(-since/newcomersOver.Seconds())
	}
}

// made is how many places have been made in this generation; those that came back
// are not new.
func (v *view) made() int64 { return v.Counters["entered"] - v.Counters["restored"] }
