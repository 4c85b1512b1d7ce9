//go:build faults

package point_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/fault/point"
	"github.com/linekeeper/linekeeper/test/harness"
)

const (
	envTell = "LINEKEEPER_TEST_TELL" // the mutant whose story a child process tells
	envAddr = "LINEKEEPER_TEST_ADDR" // of the Redis to tell it on
	envDSN  = "LINEKEEPER_TEST_DSN"  // of the database, for stories of orders
)

func TestMain(m *testing.M) {
	if name := os.Getenv(envPass); name != "" {
		point.At(context.Background(), name)
		fmt.Print("passed")
		return
	}
	if name := os.Getenv(envTell); name != "" {
		fmt.Print(tell(name, os.Getenv(envAddr), os.Getenv(envDSN)))
		return
	}
	os.Exit(harness.Run(m))
}

// tell says what comes of a story in this process, with whatever mutant is alive
// in it.
func tell(name, addr, dsn string) string {
	for _, s := range orderStories {
		if s.mutant == name {
			at := newTill(context.Background(), dsn)
			s.tell(at)
			return at.told
		}
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	for _, s := range stories {
		if s.mutant == name {
			at := newStage(context.Background(), rdb, fmt.Sprint("r", os.Getpid()))
			s.tell(at)
			return at.told
		}
	}
	return "there is no such story"
}

// told is what a child process, with a mutant alive in it or none, tells.
func told(t *testing.T, mutant, name string, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, envTell+"="+name, point.EnvMutant+"="+mutant)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// A mutant that does nothing would be counted as one that the checker has
// missed; one that does something else proves nothing about its promise.
func TestAMutantDoesWhatItsNameSays(t *testing.T) {
	var shown []string
	for _, s := range stories {
		shown = append(shown, s.mutant)
		t.Run(s.mutant, func(t *testing.T) {
			t.Parallel()
			addr := envAddr + "=" + harness.Redis(t).Options().Addr
			require.Equal(t, s.sound, told(t, "", s.mutant, addr), "the product")
			require.Equal(t, s.wrong, told(t, s.mutant, s.mutant, addr), "the mutant")
		})
	}
	for _, s := range orderStories {
		shown = append(shown, s.mutant)
		t.Run(s.mutant, func(t *testing.T) {
			t.Parallel()
			dsn := envDSN + "=" + harness.DSN(t)
			require.Equal(t, s.sound, told(t, "", s.mutant, dsn), "the product")
			_, err := harness.Database(t).Exec(t.Context(), "TRUNCATE orders, outbox")
			require.NoError(t, err)
			require.Equal(t, s.wrong, told(t, s.mutant, s.mutant, dsn), "the mutant")
		})
	}
	var all []string
	for _, m := range point.Mutants() {
		all = append(all, m.Name)
	}
	require.ElementsMatch(t, all, shown, "mutants without a story, or stories without a mutant")
}
