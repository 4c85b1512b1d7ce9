package scheduler_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/linekeeper/linekeeper/test/harness"
)

// silence is a logger for clients whose server is killed: they talk a lot.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silence{})
	code := harness.Run(m)
	if err := goleak.Find(); err != nil && code == 0 {
		println("left behind by the tests:", err.Error())
		code = 1
	}
	os.Exit(code)
}
