//go:build faults

package point

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed lua/journal.lua
var journal string

// unwatched scripts are not written down: two write nothing, and may not; the
// other is of no room.
var unwatched = map[string]bool{"snapshot": true, "entrants": true, "look": true, "raise": true}

// Script is what a script of package redisstore is replaced by: with the Lua of
// the mutant chosen, if it has any for this script, and wrapped in the journal.
func Script(name, src string) string {
	src = mutate(env.mutant, name, src)
	if unwatched[name] {
		return src
	}
	flags, body, found := strings.Cut(src, "\n")
	if !found || !strings.HasPrefix(flags, "#!lua") {
		panic(fmt.Sprintf("point: script %s does not begin with its flags", name))
	}
	// The body is a function of its own: its 200 local variables are its own,
	// and none of the journal's are in its sight.
	return flags + "\nlocal function body(redis)\n" + body + "\nend\nlocal NAME = '" + name + "'\n" + journal
}
