package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// looked is a look so many seconds after the beginning.
func looked(seconds float64, charged int64, change ...func(*look)) look {
	d := time.Duration(seconds * float64(time.Second))
	l := look{asked: d, answered: d, at: time.Unix(1000, 0).Add(d), generation: 1, term: 1, charged: charged, rate: rate{50, time.Second}}
	for _, c := range change {
		c(&l)
	}
	return l
}

func TestTheFullestWindowIsFound(t *testing.T) {
	t.Parallel()
	batch := func(n int) func(*look) { return func(l *look) { l.rate.batch = n } }
	for name, c := range map[string]struct {
		looks []look
		over  bool
	}{
		"a batch at once and the rate after it": {[]look{looked(0, 0), looked(0.1, 50), looked(10, 550)}, false},
		"one more":                              {[]look{looked(0, 0), looked(0.1, 50), looked(10, 551)}, true},
		"two batches in no time":                {[]look{looked(0, 0), looked(0.25, 100)}, true},
		"a short window within a long quiet":    {[]look{looked(0, 0), looked(100, 10), looked(100.25, 110)}, true},
		"a larger batch for a while":            {[]look{looked(0, 0), looked(1, 100, batch(500)), looked(2, 900)}, false},
		"its end long ago":                      {[]look{looked(0, 0, batch(500)), looked(1, 100), looked(2, 900)}, true},
		"a loss of data between":                {[]look{looked(0, 0), looked(0.1, 1000, func(l *look) { l.generation = 2 })}, false},
		"the clock goes back":                   {[]look{looked(0, 0), looked(5, 250), looked(0.5, 320)}, false},
	} {
		part, window := fullest(c.looks)
		require.Equal(t, c.over, part > 1, "%s: %v %s", name, part, window)
	}
}

func TestWhoWasReleasedOrPassedWhileOffDoesNotCount(t *testing.T) {
	t.Parallel()
	l, err := readLook([]byte(`{"generation":3,"term":9,"version":7,"redisTime":"2026-11-30T12:00:00Z","sizes":{"processing":4},
		"lanes":[{"admitted":100},{"admitted":50}],"counters":{"passed_off":30,"released":20,"back0":1,"back1":2,"restored":3,"lifted":4}}`))
	require.NoError(t, err)
	require.EqualValues(t, 100, l.charged)
	require.EqualValues(t, 10, l.back)
	require.EqualValues(t, 4, l.processing)
	_, err = readLook([]byte(`[]`))
	require.Error(t, err)
	_, err = readSettings([]byte(`{"settings":{}}`))
	require.Error(t, err)
}

func TestARankMayGrowByThoseWhoCameBackAndNoMore(t *testing.T) {
	t.Parallel()
	at := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	back := func(n int64) func(*look) { return func(l *look) { l.back = n } }
	quiet := []look{looked(0, 0), looked(1, 0), looked(2, 0)}
	for name, c := range map[string]struct {
		looks  []look
		broken int64
		left   int // not judged yet
	}{
		"nobody came back":              {quiet, 1, 0},
		"as many came back":             {[]look{looked(0, 0), looked(1, 0), looked(2, 0, back(3))}, 0, 0},
		"fewer came back":               {[]look{looked(0, 0), looked(1, 0), looked(2, 0, back(2))}, 1, 0},
		"they had come back before":     {[]look{looked(0, 0), looked(0.4, 0, back(3)), looked(2, 0, back(3))}, 1, 0},
		"they came back only later":     {[]look{looked(0, 0), looked(2, 0), looked(3, 0, back(3))}, 1, 0},
		"those taken were given back":   {[]look{looked(0, 0), looked(1, 0, func(l *look) { l.processing = 5 }), looked(2, 0)}, 0, 0},
		"another leader gave them back": {[]look{looked(0, 0), looked(2, 0, func(l *look) { l.term = 2 })}, 0, 0},
		"a loss of data":                {[]look{looked(0, 0), looked(2, 0, func(l *look) { l.generation = 2 })}, 0, 0},
		"not looked at before":          {[]look{looked(0.6, 0), looked(2, 0)}, 0, 0},
		"not looked at yet":             {[]look{looked(0, 0), looked(1, 0)}, 0, 1},
	} {
		j := newJudge(func() time.Duration { return 0 })
		j.rises = []rise{{who: 1, from: at(0.5), to: at(1.5), before: 7, after: 10}}
		j.explain(c.looks)
		require.Equal(t, c.broken, j.broken[rankFalls], name)
		require.Len(t, j.rises, c.left, name)
	}
}
