package scheduler_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) {
	code := harness.Run(m)
	if err := goleak.Find(); err != nil && code == 0 {
		println("left behind by the tests:", err.Error())
		code = 1
	}
	os.Exit(code)
}
