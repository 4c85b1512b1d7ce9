package sim

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/scheduler/controller"
)

// short is a run to look at.
func shortRun(t *testing.T) Result {
	t.Helper()
	p := plan(t, "outage")
	p.Room.Lanes = []Lane{{Name: "vip", Weight: 7, Arrivals: 60, Target: time.Second}, {Name: "standard", Weight: 3, Arrivals: 200}}
	p.Shape.Length = 14 * time.Minute
	return Run(p)
}

func TestTheCSVHasALineForEachRoundAndAddsUp(t *testing.T) {
	t.Parallel()
	r := shortRun(t)
	var b bytes.Buffer
	require.NoError(t, r.WriteCSV(&b))
	rows, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+int(r.Plan.Shape.Length/controller.RoundLength))
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	var placed int64
	for _, row := range rows[1:] {
		n, err := strconv.ParseInt(row[column["placed"]], 10, 64)
		require.NoError(t, err)
		placed += n
	}
	require.Equal(t, r.Placed, placed)
	require.Contains(t, column, "waiting_vip")
	require.Equal(t, "out", rows[len(rows)-1][column["verdict"]])
}

func TestThePictureIsXMLWithEveryCurve(t *testing.T) {
	t.Parallel()
	r := shortRun(t)
	var b bytes.Buffer
	require.NoError(t, r.WriteSVG(&b))
	text := b.String()
	for _, name := range []string{"vip", "standard", "let through", "orders sent", "what the database bears", "<title>"} {
		require.Contains(t, text, name)
	}
	require.Equal(t, 6, strings.Count(text, "<polyline"))
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
	require.NotContains(t, text, "NaN")
}

func TestTheSummarySaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := plan(t, "steady")
	p.Room.Fixed, p.Shape.Length, p.Room.Capacity = true, 8*time.Minute, 100_000
	p.Room.Lanes[0].Target = time.Second
	r := Run(p)
	var b bytes.Buffer
	require.NoError(t, r.WriteText(&b))
	for _, part := range []string{"OVERSHOOT", "fixed", "100000 inside", "no oscillation"} {
		require.Contains(t, b.String(), part)
	}
	r.Swings, r.Lanes[0].P95 = 9, time.Minute
	b.Reset()
	require.NoError(t, r.WriteText(&b))
	require.Contains(t, b.String(), "OSCILLATES")
	require.Contains(t, b.String(), "MISSED")

	body, err := json.Marshal(r.Summary())
	require.NoError(t, err)
	require.Contains(t, string(body), `"oscillates":true`)
	require.Contains(t, string(body), `"wantedSeconds":1,"met":false`)
}
