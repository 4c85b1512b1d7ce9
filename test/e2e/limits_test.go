package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// byDefault are the settings of limits left out again.
func byDefault() []string {
	var unset []string
	for _, s := range harness.Unlimited {
		name, _, _ := strings.Cut(s, "=")
		unset = append(unset, name+"=") // set to nothing is not set
	}
	return unset
}

// Two processes have one count of newcomers, and each its own of polls.
func TestProcessesShareTheLimitsThatAreOnByDefault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.start(byDefault()...), w.start(byDefault()...)
	w.open(settings{"paused": true})
	first := w.shopper()
	began := time.Now()
	first.enter(a).is(201)
	for range 29 {
		w.shopper().enter(a).is(201)
		w.shopper().enter(b).is(201)
	}
	last := w.shopper().enter(b).is(201)
	require.Equal(t, `"enter-address";q=60;w=60`, last.header.Get("RateLimit-Policy"))
	for _, p := range []*process{a, b} {
		refused := w.shopper().enter(p)
		if time.Since(began) > time.Minute {
			t.Skip("the machine is too slow for 60 enters in a minute")
		}
		refused.is(429, "rate-limited")
		require.Equal(t, `"enter-address";r=0;t=`+refused.header.Get("Retry-After"), refused.header.Get("RateLimit"))
	}
	first.enter(b).is(200)
	text := w.ask("GET", b.admin+"/metrics", http.Header{"Authorization": {"Bearer " + w.adminToken}}, "").is(200)
	require.Contains(t, string(text.body), `linekeeper_ratelimit_decisions_total{algorithm="sliding",policy="enter-address",result="refused"} 1`)
}
