package e2e

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// A draw through two processes, from the commitment to the command that checks
// what was published; the seed is nowhere before that.
func TestADrawIsPublishedAndVerifiedByTheCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	loud := []string{"LINEKEEPER_LOG_LEVEL=debug", "LINEKEEPER_LOG_TRANSITIONS=true"}
	a, b := w.start(loud...), w.start(loud...)
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
	w.open(settings{"draw": true, "admitsAt": in(time.Hour), "batchSize": 1000})
	public := func(p *process, path string) answer {
		return w.ask("GET", p.public+"/v1/rooms/"+room+"/draw"+path, nil, "")
	}
	var promised, known spec.Draw
	require.NoError(t, json.Unmarshal(public(a, "").is(200).body, &promised))
	require.Equal(t, spec.DrawState("open"), promised.State)
	shoppers := make([]*shopper, 60)
	for i := range shoppers {
		shoppers[i] = w.shopper()
		p := shoppers[i].enter([]*process{a, b}[i%2]).is(201).position()
		require.Nil(t, p.Rank)
		require.Nil(t, p.Score)
	}
	public(b, "/entrants").is(409, "draw-not-over")
	seed := sql[string](w, "SELECT seed FROM draws WHERE room = $1", room)
	w.keptSecret(a, b, map[string]string{"seed of the draw": seed})
	w.patch(a, settings{"admitsAt": in(0)})

	ann := shoppers[0]
	ann.until(b, queue.Ready)
	late := w.shopper()
	late.enter(a).is(201)
	for _, p := range []*process{b, a} { // what each knows may be a second old
		harness.Eventually(t, 5*time.Second, "the draw is listed", func() bool {
			require.NoError(t, json.Unmarshal(public(p, "").is(200).body, &known))
			return known.State == "listed"
		})
	}
	require.Equal(t, promised.Commitment, known.Commitment)
	require.EqualValues(t, 60, *known.Entrants)
	require.Equal(t, seed, *known.Seed)

	list := filepath.Join(t.TempDir(), "entrants.jsonl")
	document := public(b, "/entrants").is(200).body
	require.NoError(t, os.WriteFile(list, document, 0o600))
	member := memberOf(t, ann.ticket)
	verify := func(file string, more ...string) (int, string) {
		code, out, said := tool(t, nil, append([]string{"draw", "verify", file, "--member", member}, more...)...)
		return code, out + said
	}
	code, said := verify(list, "--commitment", promised.Commitment, "--root", *known.Root)
	require.Equal(t, 0, code, said)
	require.Contains(t, said, "60, each once")
	proof := filepath.Join(t.TempDir(), "proof.json")
	require.NoError(t, os.WriteFile(proof, ann.proof(b).is(200).body, 0o600))
	code, said = verify(proof, "--commitment", promised.Commitment, "--root", *known.Root)
	require.Equal(t, 0, code, said)
	late.proof(a).is(404, "not-drawn")

	for what, change := range map[string][2]string{
		"a rank": {`"rank":3}`, `"rank":4}`}, "the seed": {seed, strings.Repeat("0", 64)},
	} {
		changed := strings.Replace(string(document), change[0], change[1], 1)
		require.NotEqual(t, string(document), changed)
		require.NoError(t, os.WriteFile(list, []byte(changed), 0o600))
		code, said := verify(list, "--commitment", promised.Commitment)
		require.Equal(t, 1, code, "%s was changed: %s", what, said)
	}
}

// proof is that of the shopper's place in the draw.
func (s *shopper) proof(p *process) answer {
	return s.w.ask("GET", p.public+"/v1/rooms/"+room+"/draw/proof", map[string][]string{"X-Queue-Ticket": {s.ticket}}, "")
}

// memberOf reads whom a ticket names.
func memberOf(t *testing.T, ticket string) string {
	t.Helper()
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(ticket, ".")[1])
	require.NoError(t, err)
	var v struct {
		Member string `json:"sub"`
	}
	require.NoError(t, json.Unmarshal(claims, &v))
	require.NotEmpty(t, v.Member)
	return v.Member
}
