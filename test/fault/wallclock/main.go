// Command wallclock adds to an overlay what lets the wall clock of a whole
// process be wrong: a copy of the standard library's time.Now that is as many
// seconds ahead as LINEKEEPER_WALL_CLOCK_AHEAD says, or behind.
//
//	go run ./test/fault/wallclock -overlay bin/.overlay/overlay.json -o bin/.overlay/clock.json
//	go build -tags faults -overlay bin/.overlay/clock.json ./cmd/linekeeper
//
// There is no other way: Go asks the kernel by itself, so nothing that is
// preloaded comes between, and wall clocks have no namespaces. Monotonic time
// stays as it is, as it does where an operator sets a clock. The price is that
// all packages are compiled anew, which takes minutes the first time.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wallclock:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("wallclock", flag.ContinueOnError)
	from := flags.String("overlay", "", "the overlay `FILE` to add to")
	to := flags.String("o", "", "where to write the overlay `FILE` with the addition, and the copy beside it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *from == "" || *to == "" || flags.NArg() > 0 {
		return errors.New("usage: wallclock -overlay FILE -o FILE")
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	src, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	edited, err := moved(string(src))
	if err != nil {
		return fmt.Errorf("%s: %w", original, err)
	}
	return add(*from, *to, original, edited)
}

// The edit: what stands in time.go exactly once, and what goes there.
const (
	asked      = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {\n"
	asked2     = "\tsec, nsec, mono := runtimeNow()\n\tsec += secondsAhead\n\tif mono == 0 {\n"
	imports    = "import (\n"
	importsToo = "import (\n\t\"syscall\"\n"

	// The package may import little, and strconv is not part of it.
	ahead = `
// secondsAhead is how far the wall clock of this process is off.
var secondsAhead = func() (n int64) {
	text, _ := syscall.Getenv("LINEKEEPER_WALL_CLOCK_AHEAD")
	for _, digit := range []byte(text) {
		if '0' <= digit && digit <= '9' {
			n = 10*n + int64(digit-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		n = -n
	}
	return n
}()
`
)

// moved is the source of time.go with a clock that can be wrong.
func moved(src string) ([]byte, error) {
	for _, e := range []struct{ old, new string }{{asked, asked2}, {imports, importsToo}} {
		if n := strings.Count(src, e.old); n != 1 {
			return nil, fmt.Errorf("this text stands there %d times, not once:\n%s", n, e.old)
		}
		src = strings.Replace(src, e.old, e.new, 1)
	}
	return format.Source([]byte(src + ahead))
}

// add writes the copy, and then the overlay that names it.
func add(from, to, original string, edited []byte) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var doc struct{ Replace map[string]string }
	if err := json.Unmarshal(b, &doc); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	to, err = filepath.Abs(to)
	if err != nil {
		return err
	}
	copied := filepath.Join(filepath.Dir(to), "time", "time.go")
	if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(copied, edited, 0o644); err != nil {
		return err
	}
	doc.Replace[original] = copied
	b, err = json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(b, '\n'), 0o644)
}
