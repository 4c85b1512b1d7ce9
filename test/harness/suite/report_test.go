package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reported is what a person sees of the events, and how many tests missed a
// program.
func reported(t *testing.T, events ...string) (string, int) {
	t.Helper()
	var out strings.Builder
	r := newReport(&out)
	require.NoError(t, r.read(strings.NewReader(strings.Join(events, "\n"))))
	missing := r.summary()
	return out.String(), missing
}

func TestAPassingPackageIsOneLine(t *testing.T) {
	t.Parallel()
	out, missing := reported(t,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: chatter\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Output":"PASS\n"}`,
		`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
		`{"Action":"pass","Package":"p"}`)
	require.Equal(t, "ok  \tp\t0.1s\nno test was skipped\n", out)
	require.Zero(t, missing)
}

func TestAFailureIsShownWithItsOutput(t *testing.T) {
	t.Parallel()
	out, _ := reported(t,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: got 2, want 1\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
		`{"Action":"fail","Package":"p"}`)
	require.Contains(t, out, "got 2, want 1")
	require.Contains(t, out, "FAIL\tp\t0.1s")
}

func TestAPanicShowsTheTestsItCutShort(t *testing.T) {
	t.Parallel()
	out, _ := reported(t,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: index out of range\n"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
		`{"Action":"fail","Package":"p"}`)
	require.Contains(t, out, "index out of range")
}

func TestABuildErrorIsShown(t *testing.T) {
	t.Parallel()
	out, _ := reported(t,
		`{"Action":"build-output","ImportPath":"p","Output":"p/a.go:1: undefined: x\n"}`,
		`{"Action":"build-fail","ImportPath":"p"}`)
	require.Contains(t, out, "undefined: x")
}

func TestSkipsAreListedWithTheirReasons(t *testing.T) {
	t.Parallel()
	out, missing := reported(t,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: missing part: postgres: not installed\n"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: only root can\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestC"}`,
		`{"Action":"skip","Package":"empty"}`)
	require.Equal(t, "skipped: 2\n"+
		"  p TestB: b_test.go:9: missing part: postgres: not installed\n"+
		"  p TestC: c_test.go:9: only root can\n", out)
	require.Equal(t, 1, missing)
}

func TestALineThatIsNoEventIsPassedOn(t *testing.T) {
	t.Parallel()
	out, _ := reported(t, "ld: warning", `{"Action":"start","Package":"p"}`)
	require.Contains(t, out, "ld: warning")
}
