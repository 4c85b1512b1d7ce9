package fault

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Metrics is what a process says of itself, in the text format of Prometheus.
type Metrics string

// Metrics asks the process that serves for its metrics.
func (p *Process) Metrics(ctx context.Context, client *http.Client) (Metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Admin+"/metrics", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics: %s", resp.Status)
	}
	return Metrics(b), err
}

// Value is that of one series, which is named as the text has it, labels and all.
// It is an error if there is none.
func (m Metrics) Value(series string) (float64, error) {
	_, rest, found := strings.Cut("\n"+string(m), "\n"+series+" ")
	if !found {
		return 0, fmt.Errorf("no metric %s", series)
	}
	value, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseFloat(value, 64)
}
