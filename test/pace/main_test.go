package pace

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/linekeeper/linekeeper/test/harness"
)

var (
	crowdSize = flag.Int("crowd", 0, "how many real members poll; 0: as few as show that it works")
	lasts     = flag.Duration("for", 0, "how long they do")
	cores     = flag.Int("cores", 1, "GOMAXPROCS of the process that they ask")
	conns     = flag.Int("connections", 512, "over how many connections they ask")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *lasts == 0 {
		*lasts = 5 * time.Second
	}
	os.Exit(harness.Run(m))
}
