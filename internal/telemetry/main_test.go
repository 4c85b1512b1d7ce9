package telemetry_test

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/telemetry"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// scrape returns the series of the project's own metrics, as a scraper sees
// them: name and labels -> value.
func scrape(t *testing.T, m *telemetry.Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body)
	series := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		at := strings.LastIndexByte(line, ' ')
		if name, ok := strings.CutPrefix(line[:at], "linekeeper_"); ok {
			series[name] = strings.TrimSpace(line[at:])
		}
	}
	return series
}
