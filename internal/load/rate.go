package load

import (
	"encoding/json"
	"fmt"
	"time"
)

// look is one snapshot of the room, by an operator.
type look struct {
	asked, answered time.Duration // of the run
	at              time.Time     // by the clock of Redis, at which all of it was true
	generation      int64
	term            int64
	version         int64
	charged         int64 // grants that count against the rate
	back            int64 // who came back to a place in line, ever
	processing      int64
	own             rate // the most that may be in force
	rate            rate // the most in force then or shortly before
}

// rate is how many are let through per interval.
type rate struct {
	batch    int
	interval time.Duration
}

// most is a rate that bounds both.
func (r rate) most(other rate) rate {
	return rate{max(r.batch, other.batch), min(r.interval, other.interval)}
}

// perSecond is the rate in a second.
func (r rate) perSecond() float64 { return float64(r.batch) / r.interval.Seconds() }

// settings are those of a room that bound its rate.
type settings struct {
	version    int64
	batch      int
	interval   time.Duration
	processing time.Duration // how long one admission may take
}

func readSettings(body []byte) (s settings, err error) {
	var v struct {
		Version  int64 `json:"version"`
		Settings struct {
			BatchSize                int   `json:"batchSize"`
			IntervalMs               int64 `json:"intervalMs"`
			ProcessingTimeoutSeconds int64 `json:"processingTimeoutSeconds"`
		} `json:"settings"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return s, fmt.Errorf("read the settings of the room: %w", err)
	}
	if v.Settings.BatchSize < 1 || v.Settings.IntervalMs < 1 {
		return s, fmt.Errorf("the operators' API shows no batchSize and intervalMs of the room")
	}
	return settings{v.Version, v.Settings.BatchSize, time.Duration(v.Settings.IntervalMs) * time.Millisecond,
		time.Duration(v.Settings.ProcessingTimeoutSeconds) * time.Second}, nil
}

func readLook(body []byte) (l look, err error) {
	var v struct {
		Generation int64     `json:"generation"`
		Term       int64     `json:"term"`
		Version    int64     `json:"version"`
		RedisTime  time.Time `json:"redisTime"`
		Sizes      struct {
			Processing int64 `json:"processing"`
		} `json:"sizes"`
		Lanes []struct {
			Admitted int64 `json:"admitted"`
		} `json:"lanes"`
		Counters map[string]int64 `json:"counters"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return l, fmt.Errorf("read the snapshot of the room: %w", err)
	}
	l = look{at: v.RedisTime, generation: v.Generation, term: v.Term, version: v.Version, processing: v.Sizes.Processing}
	for i, lane := range v.Lanes {
		l.charged += lane.Admitted
		l.back += v.Counters[fmt.Sprint("back", i)]
	}
	// Whom a room lets through while it is off, and whom operators release by hand,
	// the rate does not bound.
	l.charged -= v.Counters["passed_off"] + v.Counters["released"]
	l.back += v.Counters["restored"] + v.Counters["lifted"]
	return l, nil
}

// clockStep is what a time read to the millisecond may be wrong by, at both ends.
const clockStep = 2 * time.Millisecond

// fullest is the fullest of all windows that end at the last of these looks:
// grants as a part of what the rate allows, at most batch x w / interval + batch
// in any window w. Looks over which the clock of Redis went back, or the room lost
// its data, are no window.
func fullest(looks []look) (part float64, window string) {
	now := looks[len(looks)-1]
	most := now.rate
	for i := len(looks) - 2; i >= 0; i-- {
		from := looks[i]
		if from.generation != now.generation || from.at.After(looks[i+1].at) {
			break
		}
		most = most.most(from.rate)
		w := now.at.Sub(from.at)
		allowed := float64(most.batch) * (1 + float64(w+clockStep)/float64(most.interval))
		if p := float64(now.charged-from.charged) / allowed; p > part {
			part = p
			window = fmt.Sprintf("%d were let through within %v, where at most %d every %v allow %.0f", now.charged-from.charged, w.Round(time.Millisecond), most.batch, most.interval, allowed)
		}
	}
	return part, window
}
