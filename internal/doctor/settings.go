package doctor

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/linekeeper/linekeeper/admin"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/internal/config"
)

// settings leaves the keys to their own check.
func settings(_ context.Context, e *exam) Finding {
	conf := e.Conf
	conf.Keys = "looked at elsewhere"
	if err := conf.Check(); err != nil {
		return fail("correct them; `linekeeper config print` shows where each comes from", "%s", oneLine(err))
	}
	return good("complete, roles %s", e.Conf.Roles)
}

func keys(_ context.Context, e *exam) Finding {
	const do = "make one with `linekeeper keys new` and give LINEKEEPER_KEYS to every process"
	if e.Conf.Keys == "" {
		if !e.Conf.Roles.Has(config.RoleAPI) {
			return good("none, and a process without the role api needs none")
		}
		return fail(do, "LINEKEEPER_KEYS is not set: no ticket and no token can be signed")
	}
	ring, err := credential.ParseRing(e.Conf.Keys.Reveal())
	if err != nil {
		return fail("correct LINEKEEPER_KEYS: kid:base64 of at least 32 bytes, comma-separated", "%s", oneLine(err))
	}
	var ids []string
	if text, err := ring.MarshalJSON(); err == nil {
		_ = json.Unmarshal(text, &ids) // a list of texts, by its promise
	}
	return good("%d; %s signs", len(ids), ring.SigningKeyID())
}

func adminTokens(_ context.Context, e *exam) Finding {
	const do = "make one with `linekeeper admin-token new NAME` and put its entry into LINEKEEPER_ADMIN_TOKENS"
	if _, err := admin.ParseTokens(e.Conf.AdminTokens.Reveal()); err != nil {
		return fail("correct LINEKEEPER_ADMIN_TOKENS: name:role:sha256hex, comma-separated", "%s", oneLine(err))
	}
	if e.Conf.AdminTokens == "" {
		return warn(do, "none: nobody can operate a room")
	}
	return good("%d", 1+strings.Count(e.Conf.AdminTokens.Reveal(), ","))
}

// Each member who polls over a connection of their own holds one file, and so
// does a proxy's pool: 10,000 is what a busy process sees, 4,096 what the first
// minute of a sale needs.
const fewFiles, tooFewFiles = 10_000, 4096

func openFiles(_ context.Context, e *exam) Finding {
	const raise = "raise the limit where the process is started: LimitNOFILE=65536 (systemd), ulimits nofile (compose), ulimit -n (shell)"
	n, err := e.OpenFiles()
	switch {
	case err != nil:
		return skipped("this system does not say: %v", err)
	case n < tooFewFiles:
		return fail(raise, "%d may be open; a process needs at least %d, better %d", n, tooFewFiles, fewFiles)
	case n < fewFiles:
		return warn(raise, "%d may be open; %d are better", n, fewFiles)
	}
	return good("%d may be open", n)
}

// oneLine joins what errors.Join, and drivers, put on several lines, and says
// nothing twice.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimRight(strings.TrimSpace(line), ":"); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
