package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const program = `package main

import (
	"fmt"
	"time"
)

func main() {
	began := time.Now()
	time.Sleep(10 * time.Millisecond)
	fmt.Println(began.Unix(), time.Since(began) < time.Minute && time.Since(began) >= 10*time.Millisecond)
}
`

// The program is all of what needs the standard library anew, so this takes
// seconds where the product takes minutes.
func TestWallClockOfAProcessIsOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	main, empty, overlay, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "none.json"), filepath.Join(dir, "clock.json"), filepath.Join(dir, "clock")
	require.NoError(t, os.WriteFile(main, []byte(program), 0o600))
	require.NoError(t, os.WriteFile(empty, []byte(`{"Replace":{"/nowhere/a.go":"/nowhere/b.go"}}`), 0o600))
	require.NoError(t, run([]string{"-overlay", empty, "-o", overlay}))
	out, err := exec.Command("go", "build", "-overlay", overlay, "-o", binary, main).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for ahead, want := range map[string]time.Duration{"": 0, "600": 10 * time.Minute, "-600": -10 * time.Minute} {
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), "LINEKEEPER_WALL_CLOCK_AHEAD="+ahead)
		out, err := cmd.Output()
		require.NoError(t, err)
		said := strings.Fields(string(out))
		seconds, err := strconv.ParseInt(said[0], 10, 64)
		require.NoError(t, err)
		require.InDelta(t, want.Seconds(), time.Until(time.Unix(seconds, 0)).Seconds(), 30)
		require.Equal(t, "true", said[1], "monotonic time has moved, too")
	}
	b, err := os.ReadFile(overlay)
	require.NoError(t, err)
	var doc struct{ Replace map[string]string }
	require.NoError(t, json.Unmarshal(b, &doc))
	require.Len(t, doc.Replace, 2, "what was replaced before is replaced still")
}

func TestEditThatHasNoPlaceIsAnError(t *testing.T) {
	t.Parallel()
	_, err := moved("package time\n")
	require.ErrorContains(t, err, "0 times")
	require.Error(t, run([]string{"-overlay", "x"}))
	require.Error(t, run([]string{"-overlay", filepath.Join(t.TempDir(), "x"), "-o", "y"}))
}
