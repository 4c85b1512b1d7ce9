//go:build faults

package verify

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(verify(m)) }

// verify runs the tests and says, last of all, what they have shown.
func verify(m *testing.M) int {
	flag.Parse()
	redis.SetLogger(mute{}) // it would tell of every connection that is broken on purpose
	code := harness.Run(m)
	if given("test.list") != "" {
		return code
	}
	whole := given("test.run") == "" && given("test.skip") == ""
	if wrong := tally.Wrong(whole && code == 0); wrong != "" {
		fmt.Fprintln(os.Stderr, "not verified:", wrong)
		code = max(code, 1)
	}
	fmt.Println(tally.String())
	return code
}

// mute is a logger that says nothing.
type mute struct{}

// Printf implements go-redis's logger.
func (mute) Printf(context.Context, string, ...any) {}

func given(name string) string { return flag.Lookup(name).Value.String() }
